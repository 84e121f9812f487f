/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_WIRE_H
#define OC_WIRE_H

/* Whole messages and descriptors over AF_UNIX stream sockets, with a deadline
 * for every wait. Under lib/node/bootstrap.c; one thread. */

#include <stddef.h>
#include <stdint.h>

/* Descriptors one message may carry: SCM_MAX_FD of the kernel. */
#define OC_WIRE_FDS 253

struct oc_wire {
	int *fds; /* every socket of this rank, -1: not yet connected */
	uint32_t count;
	int64_t deadline; /* of sends, in oc_wire_now() time */
};

int64_t oc_wire_now(void); /* ms, CLOCK_MONOTONIC */
void oc_wire_nap(long ms); /* less than a second */

/*
 * Waits until @fd is ready for @events. Watches all other sockets for a hang-up
 * at the same time: who waits for a slow rank must hear of a dead one. -EPIPE,
 * -ETIMEDOUT, or what the system said.
 */
int oc_wire_wait(const struct oc_wire *wire, int fd, short events, int64_t deadline);

/* Sends @len bytes, and @nfds descriptors with the first of them. Errors as
 * oc_wire_wait(). */
int oc_wire_send(const struct oc_wire *wire, int fd, const void *buf, size_t len, const int *fds,
		 size_t nfds);

/* Reads exactly @len bytes. *@nfds is the room for descriptors, then how many
 * came; NULL for none. They are close-on-exec and the caller's; on failure none
 * is kept. -EMFILE when there was no number left for one, else as above. */
int oc_wire_recv(const struct oc_wire *wire, int fd, void *buf, size_t len, int *fds, size_t *nfds,
		 int64_t deadline);

#endif
