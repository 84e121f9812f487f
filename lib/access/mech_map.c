// SPDX-License-Identifier: BSD-3-Clause
/*
 * The kernel module shows the region here, and it is plain memory: one copy by
 * this core. The mapping costs a system call and an entry a page, so a region
 * is mapped when it comes again, and kept mapped (lib/access/map_cache.c); the first copy
 * of each is the kernel's (lib/access/mech_kcopy.c).
 *
 * A region is what its owner declared, to the byte, and mappings are of pages:
 * what lies before its first and behind its last whole page the kernel copies.
 *
 * If the owner replaces memory it had declared, the mapping goes on to show the
 * old pages. So after a copy the kernel is asked whether the region was still
 * good, and when it was not, another mechanism does the copy over again.
 */
#include "access/mech.h"

#include <errno.h>

#include "access/map_cache.h"
#include "bytes/copy.h"
#include "access/mech_kcopy.h"

/* One copy by means of a mapping. */
struct shown {
	const struct oc_target *target;
	enum oc_direction direction;
	uint64_t first; /* what is mapped: [first, end) of the region */
	uint64_t end;
	char *at; /* of byte @first */
	bool stream;
};

/* The whole pages of the region: none of one in several segments. */
static void find_pages(struct shown *it)
{
	uint64_t mask = oc_kdev_page_size() - 1;
	struct oc_cursor cursor;
	struct iovec piece;
	uint64_t base;

	it->first = it->end = 0;
	oc_cursor_init(&cursor, it->target->segs, it->target->nsegs, 0);
	if (it->target->nsegs != 1 || !oc_cursor_piece(&cursor, &piece) ||
	    piece.iov_len != it->target->bytes)
		return;
	base = (uintptr_t)piece.iov_base;
	it->first = (0 - base) & mask;
	it->end = ((base + piece.iov_len) & ~mask) - base;
	if (it->end > piece.iov_len || it->end <= it->first)
		it->first = it->end = 0;
}

/* Copies made once, and those of regions that show no page, are kcopy's if it
 * may do them. */
static bool wants_kcopy(const struct oc_node *node, const struct shown *it)
{
	const struct oc_target *target = it->target;

	if (!oc_mech_allowed(node, &oc_mech_kcopy) ||
	    !oc_kcopy_reaches(node, target, OC_MECH_KCOPY))
		return false;
	return it->first == it->end || target->flags & OC_REGION_SINGLEUSE ||
	       !(target->flags & OC_REGION_READ) || !oc_map_cache_seen(target->kernel);
}

/* From or to the mapped bytes at @from. */
static ssize_t copy_shown(const struct shown *it, char *from, struct oc_cursor *local, size_t len)
{
	size_t done = 0;

	while (done < len) {
		struct iovec here;
		size_t part = len - done;

		if (!oc_cursor_piece(local, &here))
			return done ? (ssize_t)done : -EFAULT;
		part = here.iov_len < part ? here.iov_len : part;
		if (it->direction == OC_GET)
			oc_copy_bytes(here.iov_base, from + done, part, it->stream);
		else
			oc_copy_bytes(from + done, here.iov_base, part, it->stream);
		oc_cursor_skip(local, part);
		done += part;
	}
	return (ssize_t)done;
}

static ssize_t copy_all(const struct shown *it, uint64_t offset, struct oc_cursor *local,
			size_t len)
{
	uint64_t at = offset, end = offset + len;

	while (at < end) {
		bool mapped = at >= it->first && at < it->end;
		uint64_t until = mapped ? it->end : at < it->first ? it->first : end;
		ssize_t moved;

		until = until < end ? until : end;
		if (mapped)
			moved = copy_shown(it, it->at + (at - it->first), local, until - at);
		else
			moved = oc_kcopy_move(it->direction, it->target, at, local, until - at);
		if (moved <= 0)
			return at > offset ? (ssize_t)(at - offset) : moved;
		at += (uint64_t)moved;
	}
	return (ssize_t)len;
}

static ssize_t map_move(struct oc_node *node, const struct oc_target *target,
			enum oc_direction direction, uint64_t offset, struct oc_cursor *local,
			size_t len)
{
	struct shown it = {
		.target = target, .direction = direction, .stream = len >= OC_MECH_STREAM_BYTES};
	bool write = target->flags & OC_REGION_WRITE;
	struct oc_cursor start = *local;
	struct oc_map_cache *map = NULL;
	ssize_t moved;
	int err = 0;

	/* What is kept can be a pointer, or cannot be mapped. */
	if (target->kept || !oc_kcopy_reaches(node, target, OC_MECH_MAP))
		return -EOPNOTSUPP;
	find_pages(&it);
	if (wants_kcopy(node, &it))
		return -EOPNOTSUPP;
	/* A mapping can be read: not if the region may not. */
	if (!(target->flags & OC_REGION_READ))
		it.first = it.end = 0;
	if (it.first < it.end)
		err = oc_map_cache_get(target->kernel, it.first, it.end - it.first, write, &map,
				       &it.at);
	if (err)
		return oc_kcopy_error(err);
	moved = copy_all(&it, offset, local, len);
	if (map)
		oc_map_cache_put(map);
	err = map ? oc_kdev_region_check(target->kernel) : 0;
	if (err)
		*local = start;
	return err ? oc_kcopy_error(err) : moved;
}

/* Of memory that its owner vouches for: the whole region around it, once for all slots in it. */
static int map_at(struct oc_node *node, const struct oc_target *target, enum oc_direction direction,
		  uint64_t offset, size_t len, struct oc_view *view)
{
	struct oc_map_cache *map;
	char *base;
	int err;

	if (!target->kept || !oc_kcopy_reaches(node, target, OC_MECH_MAP))
		return -EOPNOTSUPP;
	err = oc_map_cache_get(target->kernel, 0, target->kernel_bytes, direction == OC_PUT, &map,
			       &base);
	if (err)
		return (int)oc_kcopy_error(err);
	view->at = base + target->kernel_offset + offset;
	view->bytes = target->kernel_bytes - target->kernel_offset - offset;
	view->hold = map;
	return 0;
}

static void map_release(struct oc_view *view)
{
	oc_map_cache_put(view->hold);
}

static void map_explain(const struct oc_node *node, uint32_t peer, char *why, size_t size)
{
	oc_kcopy_explain(node, peer, OC_MECH_MAP, why, size);
}

const struct oc_mech oc_mech_map = {
	.means = "kernel module",
	.bit = OC_MECH_MAP,
	.tried = true,
	.ready = oc_kcopy_ready,
	.explain = map_explain,
	.offer = oc_kcopy_offer,
	.find = oc_kcopy_find,
	.move = map_move,
	.at = map_at,
	.release = map_release,
};
