/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_BOOTSTRAP_H
#define OC_BOOTSTRAP_H

/*
 * How processes find each other before they share any memory: a star of
 * AF_UNIX stream sockets with rank 0 in the middle. Used by oc_node_join()
 * alone, by one thread. Nothing is left in any file system: names are abstract
 * ones. Every wait is bounded, and the death of any rank ends all waits.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <onecopy/onecopy.h>

#include "base/wire.h"

struct oc_bootstrap {
	uint32_t rank;
	uint32_t nranks;
	struct oc_wire wire; /* rank 0: by rank, [0] is -1; the others: [0] alone */
	bool borrowed;	     /* the sockets are the caller's: never close them */
	uint32_t timeout_ms;
};

/* What rank 0 learns of each rank before there is a control segment. */
struct oc_arrival {
	uint64_t arena_size; /* 0: none */
	int arena_fd;	     /* -1: none; the receiver of the arrival owns it */
};

/*
 * Connects all ranks. @mine is what this rank announces; its descriptor stays
 * the caller's. On rank 0 @all[nranks] receives everybody's, [0] being a copy
 * of @mine (that one descriptor is not a duplicate). Errors as oc_node_join();
 * the others are told of rank 0's failure. oc_bootstrap_close() must follow
 * in any case.
 */
int oc_bootstrap_open(struct oc_bootstrap *boot, const struct oc_node_attr *attr,
		      const struct oc_arrival *mine, struct oc_arrival *all);
void oc_bootstrap_close(struct oc_bootstrap *boot);

/*
 * Collective: the same answer everywhere. Returns the status of the lowest rank
 * whose @status is negative, else 0; *@flags becomes the OR of all. -EPIPE
 * when a rank died, -ETIMEDOUT when one is late.
 */
int oc_bootstrap_agree(struct oc_bootstrap *boot, int status, uint32_t *flags);

/* Rank 0 to @peer, at most OC_WIRE_FDS descriptors. */
int oc_bootstrap_give(struct oc_bootstrap *boot, uint32_t peer, const int *fds, size_t count);

/* From rank 0: exactly @count descriptors, close-on-exec, now the caller's. */
int oc_bootstrap_take(struct oc_bootstrap *boot, int *fds, size_t count);

#endif
