// SPDX-License-Identifier: BSD-3-Clause
/*
 * Peers' memory through /proc/PID/mem: a mechanism that the tests alone have, to show that
 * this file and a line of the table are all that one takes to serve regions and MPI
 * collectives. It does what a mechanism may do: copies both ways, and pointers, to a
 * copy of what nobody writes while it is looked at.
 */
#include "access/mech.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define BATCH 64

static int open_memory(const struct oc_node *node, uint32_t peer)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/mem", node->peers[peer].pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	/* ESRCH: on its way out, it has no memory any more. */
	return fd >= 0 ? fd : errno == ENOENT || errno == ESRCH ? -EPIPE : -errno;
}

/* One contiguous piece of the peer's, as much as the file takes. */
static ssize_t move_piece(int fd, enum oc_direction direction, const struct iovec *there,
			  struct oc_cursor *local)
{
	struct iovec here[BATCH];
	off_t at = (off_t)(uintptr_t)there->iov_base;
	size_t bytes, n = oc_cursor_gather(local, here, BATCH, there->iov_len, &bytes);
	ssize_t moved;

	if (!n)
		return -EFAULT;
	moved = direction == OC_GET ? preadv(fd, here, (int)n, at) : pwritev(fd, here, (int)n, at);
	/* EIO: no such memory there; 0: none at all any more. */
	if (moved < 0)
		return errno == EIO ? -EFAULT : -errno;
	if (!moved)
		return -EPIPE;
	oc_cursor_skip(local, (uint64_t)moved);
	return moved;
}

static ssize_t proc_move(struct oc_node *node, const struct oc_target *target,
			 enum oc_direction direction, uint64_t offset, struct oc_cursor *local,
			 size_t len)
{
	struct oc_cursor remote;
	size_t done = 0;
	ssize_t moved = 0;
	int fd;

	if (!oc_mech_works(node, target->owner, OC_MECH_PROC))
		return -EOPNOTSUPP;
	fd = open_memory(node, target->owner);
	if (fd < 0)
		return fd;
	oc_cursor_init(&remote, target->segs, target->nsegs, offset);
	while (done < len) {
		struct iovec there;

		moved = -EFAULT;
		if (!oc_cursor_piece(&remote, &there))
			break;
		if (there.iov_len > len - done)
			there.iov_len = len - done;
		moved = move_piece(fd, direction, &there, local);
		if (moved < 0)
			break;
		oc_cursor_skip(&remote, (uint64_t)moved);
		done += (size_t)moved;
	}
	close(fd);
	return done ? (ssize_t)done : moved;
}

static int proc_at(struct oc_node *node, const struct oc_target *target,
		   enum oc_direction direction, uint64_t offset, size_t len, struct oc_view *view)
{
	struct iovec iov = {.iov_base = NULL, .iov_len = len};
	struct oc_cursor local;
	ssize_t moved;

	if (!target->kept || direction == OC_PUT)
		return -EOPNOTSUPP;
	iov.iov_base = malloc(len);
	if (!iov.iov_base)
		return -ENOMEM;
	oc_cursor_init(&local, &iov, 1, 0);
	moved = proc_move(node, target, OC_GET, offset, &local, len);
	if (moved != (ssize_t)len) {
		free(iov.iov_base);
		return moved < 0 ? (int)moved : -EFAULT;
	}
	view->at = view->hold = iov.iov_base;
	view->bytes = len;
	return 0;
}

static void proc_release(struct oc_view *view)
{
	free(view->hold);
}

/* Where it is allowed, it is the mechanism that the test is about. */
static uint32_t proc_offer(struct oc_node *node, const struct oc_want *want, int *place)
{
	return OC_MECH_PROC;
}

static void proc_explain(const struct oc_node *node, uint32_t peer, char *why, size_t size)
{
	int err = node->peers[peer].refusal[oc_mech_index(OC_MECH_PROC)];

	snprintf(why, size, "%s%s", err ? "/proc/PID/mem: " : "", err ? strerror(err) : "");
}

const struct oc_mech oc_mech_proc = {
	.means = "/proc/PID/mem",
	.bit = OC_MECH_PROC,
	.tried = true,
	.explain = proc_explain,
	.offer = proc_offer,
	.move = proc_move,
	.at = proc_at,
	.release = proc_release,
};
