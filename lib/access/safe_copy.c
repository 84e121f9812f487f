// SPDX-License-Identifier: BSD-3-Clause
#include "access/safe_copy.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "access/cma.h"
#include "segment/alive.h"

#define BATCH 64

enum direction { LOAD, STORE };

/* The program may have closed the descriptor behind our back, or set a limit
 * that turns writes to it into SIGXFSZ. */
static bool file_usable(const struct oc_node *node, enum direction direction)
{
	struct rlimit limit;

	if (!oc_node_owns_fd(node))
		return false;
	return direction == STORE ||
	       (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur >= node->segment->bytes);
}

static int by_file(const struct oc_node *node, enum direction direction, char *shared,
		   struct oc_cursor *cursor, size_t len)
{
	off_t at = shared - (char *)node->segment;

	while (len) {
		struct iovec iov[BATCH];
		size_t bytes, n = oc_cursor_gather(cursor, iov, BATCH, len, &bytes);
		ssize_t moved;

		if (!n)
			return -EFAULT;
		moved = direction == LOAD ? pwritev(node->segment_fd, iov, (int)n, at)
					  : preadv(node->segment_fd, iov, (int)n, at);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved <= 0)
			return moved ? -errno : -EFAULT;
		oc_cursor_skip(cursor, (uint64_t)moved);
		at += moved;
		len -= (size_t)moved;
	}
	return 0;
}

/* CMA with oneself needs no permission but the system call's. */
static int by_cma(const struct oc_node *node, enum direction direction, char *shared,
		  struct oc_cursor *cursor, size_t len)
{
	struct iovec here = {.iov_base = shared, .iov_len = len};
	struct oc_cursor local;

	oc_cursor_init(&local, &here, 1, 0);
	while (len) {
		ssize_t moved = oc_cma_move(node, node->rank, direction == LOAD ? OC_GET : OC_PUT,
					    &local, cursor, len);

		if (moved < 0)
			return (int)moved;
		len -= (size_t)moved;
	}
	return 0;
}

static int copy(const struct oc_node *node, enum direction direction, char *shared,
		struct oc_cursor *cursor, size_t len)
{
	return file_usable(node, direction) ? by_file(node, direction, shared, cursor, len)
					    : by_cma(node, direction, shared, cursor, len);
}

int oc_safe_copy_load(const struct oc_node *node, void *shared, struct oc_cursor *from, size_t len)
{
	return copy(node, LOAD, shared, from, len);
}

int oc_safe_copy_store(const struct oc_node *node, struct oc_cursor *to, const void *shared,
		       size_t len)
{
	return copy(node, STORE, (char *)shared, to, len);
}
