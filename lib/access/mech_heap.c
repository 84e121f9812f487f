// SPDX-License-Identifier: BSD-3-Clause
/*
 * What lies in the owner's shared heap is plain memory here: one copy by this core, no
 * system call. So is all memory of this process itself.
 */
#include "access/mech.h"

#include <errno.h>
#include <stdio.h>

#include "bytes/copy.h"
#include "heap/heap.h"

/* Mapped at a time, where arenas are not mapped whole. */
#define PIECE_MAX ((size_t)64 << 20)

/* @piece is as the owner sees it, and made shorter. False when it is not all in its
 * arena, or cannot be mapped. */
static bool translate(struct oc_node *node, const struct oc_target *target, struct iovec *piece)
{
	uint64_t off = (uintptr_t)piece->iov_base - node->ranks[target->owner].arena_base;

	if (target->owner == node->rank)
		return true;
	if (piece->iov_len > PIECE_MAX)
		piece->iov_len = PIECE_MAX;
	piece->iov_base = oc_window_at(target->window, node, target->owner, off, piece->iov_len);
	return piece->iov_base;
}

static bool reaches(const struct oc_node *node, const struct oc_target *target)
{
	return target->owner == node->rank ||
	       (target->heap && node->peers[target->owner].arena_size);
}

static ssize_t heap_move(struct oc_node *node, const struct oc_target *target,
			 enum oc_direction direction, uint64_t offset, struct oc_cursor *local,
			 size_t len)
{
	bool stream = len >= OC_MECH_STREAM_BYTES;
	struct oc_cursor remote;
	size_t done = 0;

	if (!reaches(node, target))
		return -EOPNOTSUPP;
	oc_cursor_init(&remote, target->segs, target->nsegs, offset);
	while (done < len) {
		struct iovec here, there;
		size_t part = len - done;

		if (!oc_cursor_piece(local, &here) || !oc_cursor_piece(&remote, &there) ||
		    !translate(node, target, &there))
			return done ? (ssize_t)done : -EFAULT;
		part = here.iov_len < part ? here.iov_len : part;
		part = there.iov_len < part ? there.iov_len : part;
		if (direction == OC_GET)
			oc_copy_bytes(here.iov_base, there.iov_base, part, stream);
		else
			oc_copy_bytes(there.iov_base, here.iov_base, part, stream);
		oc_cursor_skip(local, part);
		oc_cursor_skip(&remote, part);
		done += part;
	}
	return (ssize_t)done;
}

static int heap_at(struct oc_node *node, const struct oc_target *target,
		   enum oc_direction direction, uint64_t offset, size_t len, struct oc_view *view)
{
	struct oc_cursor remote;
	struct iovec piece;

	if (!reaches(node, target))
		return -EOPNOTSUPP;
	oc_cursor_init(&remote, target->segs, target->nsegs, offset);
	if (!oc_cursor_piece(&remote, &piece) || !translate(node, target, &piece))
		return -EFAULT;
	view->at = piece.iov_base;
	view->bytes = piece.iov_len;
	return 0;
}

static void heap_explain(const struct oc_node *node, uint32_t peer, char *why, size_t size)
{
	why[0] = '\0';
	if (node->peers[peer].arena_size)
		return;
	if (peer == node->rank)
		snprintf(why, size, "%s", oc_heap_reason());
	else if (!node->ranks[peer].arena_size)
		snprintf(why, size, "rank %u has no shared heap", peer);
	else
		snprintf(why, size,
			 "a rank could not map all heaps (address space, see ulimit -v)");
}

const struct oc_mech oc_mech_heap = {
	.bit = OC_MECH_HEAP,
	.explain = heap_explain,
	.move = heap_move,
	.at = heap_at,
};
