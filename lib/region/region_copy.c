// SPDX-License-Identifier: BSD-3-Clause
/* Copies to, from and between regions, whatever mechanism does them. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "region/mech.h"
#include "region/region_ref.h"
#include "segment/alive.h"

/* Of a copy between two regions neither of which is a pointer here. */
#define BOUNCE_BYTES (256u << 10)

enum direction { GET, PUT };

static int total(const struct iovec *iov, size_t iovcnt, uint64_t *bytes)
{
	*bytes = 0;
	if (iovcnt && !iov)
		return -EINVAL;
	for (size_t i = 0; i < iovcnt; i++) {
		if (iov[i].iov_len > SSIZE_MAX - *bytes)
			return -EINVAL;
		*bytes += iov[i].iov_len;
	}
	return 0;
}

static uint64_t rest(const struct oc_region_ref *region, uint64_t offset)
{
	return offset < region->bytes ? region->bytes - offset : 0;
}

static void count(struct oc_node *node, uint32_t mech, size_t bytes)
{
	atomic_fetch_add_explicit(&node->mech_calls[mech], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&node->mech_bytes[mech], bytes, memory_order_relaxed);
}

/*
 * All of @len bytes or an error. Mechanisms that do not reach the region are
 * passed over; those that should and refuse are a demotion, and the next goes
 * on where they stopped.
 */
static int move(struct oc_node *node, const struct oc_region_ref *region, uint64_t offset,
		struct oc_cursor *local, size_t len, enum direction direction)
{
	int err = -EOPNOTSUPP;
	size_t done = 0;

	for (uint32_t i = 0; i < OC_MECH_COUNT && done < len; i++) {
		const struct oc_mech *mech = oc_mech_table[i];
		ssize_t moved;

		if (!oc_mech_allowed(node, mech))
			continue;
		if (direction == GET)
			moved = mech->get(node, region, offset + done, local, len - done);
		else
			moved = mech->put(node, region, offset + done, local, len - done);
		if (moved == -EPIPE)
			return -EPIPE;
		if (moved == -EOPNOTSUPP)
			continue;
		if (moved > 0) {
			count(node, i, (size_t)moved);
			done += (size_t)moved;
		}
		if (done == len)
			return 0;
		err = moved < 0 ? (int)moved : -EFAULT;
		atomic_fetch_add_explicit(&node->demotions, 1, memory_order_relaxed);
	}
	if (done == len)
		return 0;
	/* A process on its way out loses its memory before its life. */
	return oc_node_peer_alive(node, region->owner) ? err : -EPIPE;
}

static ssize_t transfer(oc_node *node, oc_cookie cookie, uint64_t offset, const struct iovec *iov,
			size_t iovcnt, enum direction direction)
{
	struct oc_region_ref region;
	struct oc_cursor local;
	uint64_t len;
	int err;

	if (!node || !oc_node_mine(node))
		return -EINVAL;
	err = total(iov, iovcnt, &len);
	if (err)
		return err;
	err = oc_region_acquire(node, cookie, direction == GET ? OC_REGION_READ : OC_REGION_WRITE,
				&region);
	if (err)
		return err;
	err = oc_region_consume(&region);
	if (len > rest(&region, offset))
		len = rest(&region, offset);
	if (!err) {
		oc_cursor_init(&local, iov, iovcnt, 0);
		err = move(node, &region, offset, &local, len, direction);
	}
	oc_region_release(&region);
	return err ? err : (ssize_t)len;
}

ssize_t oc_get(oc_node *node, oc_cookie src, uint64_t offset, const struct iovec *local,
	       size_t iovcnt)
{
	return transfer(node, src, offset, local, iovcnt, GET);
}

ssize_t oc_put(oc_node *node, oc_cookie dst, uint64_t offset, const struct iovec *local,
	       size_t iovcnt)
{
	return transfer(node, dst, offset, local, iovcnt, PUT);
}

/* The region as a pointer here, if an allowed mechanism can show it. */
static void *point(struct oc_node *node, const struct oc_region_ref *region, uint64_t offset,
		   size_t *len)
{
	for (uint32_t i = 0; i < OC_MECH_COUNT; i++) {
		const struct oc_mech *mech = oc_mech_table[i];
		void *at = NULL;

		if (oc_mech_allowed(node, mech) && mech->flags & OC_MECH_POINTS)
			at = mech->at(node, region, offset, len);
		if (at)
			return at;
	}
	return NULL;
}

static int move_flat(struct oc_node *node, const struct oc_region_ref *region, uint64_t offset,
		     void *at, size_t len, enum direction direction)
{
	struct iovec iov = {.iov_base = at, .iov_len = len};
	struct oc_cursor local;

	oc_cursor_init(&local, &iov, 1, 0);
	return move(node, region, offset, &local, len, direction);
}

/* Lets a mechanism do it alone that needs no buffer here. */
static ssize_t move_between(struct oc_node *node, const struct oc_region_ref *dst,
			    uint64_t dst_offset, const struct oc_region_ref *src,
			    uint64_t src_offset, size_t len)
{
	for (uint32_t i = 0; i < OC_MECH_COUNT; i++) {
		const struct oc_mech *mech = oc_mech_table[i];
		ssize_t moved = -EOPNOTSUPP;

		if (oc_mech_allowed(node, mech) && mech->flags & OC_MECH_BETWEEN)
			moved = mech->between(node, dst, dst_offset, src, src_offset, len);
		if (moved > 0) {
			count(node, i, (size_t)moved);
			return moved;
		}
		if (moved == -EPIPE)
			return moved;
		if (moved != -EOPNOTSUPP)
			atomic_fetch_add_explicit(&node->demotions, 1, memory_order_relaxed);
	}
	return -EOPNOTSUPP;
}

/* The next part of a copy between regions: through a pointer to one of them
 * where there is one, else by a mechanism that takes both, else through *@bounce, made when first
 * needed. */
static int copy_part(struct oc_node *node, const struct oc_region_ref *dst, uint64_t dst_offset,
		     const struct oc_region_ref *src, uint64_t src_offset, size_t *len,
		     void **bounce)
{
	ssize_t moved;
	size_t piece;
	void *at = point(node, src, src_offset, &piece);
	int err;

	if (at) {
		*len = piece < *len ? piece : *len;
		return move_flat(node, dst, dst_offset, at, *len, PUT);
	}
	at = point(node, dst, dst_offset, &piece);
	if (at) {
		*len = piece < *len ? piece : *len;
		return move_flat(node, src, src_offset, at, *len, GET);
	}
	moved = move_between(node, dst, dst_offset, src, src_offset, *len);
	if (moved > 0) {
		*len = (size_t)moved;
		return 0;
	}
	if (moved == -EPIPE)
		return -EPIPE;
	if (!*bounce)
		*bounce = malloc(BOUNCE_BYTES);
	if (!*bounce)
		return -ENOMEM;
	*len = *len < BOUNCE_BYTES ? *len : BOUNCE_BYTES;
	err = move_flat(node, src, src_offset, *bounce, *len, GET);
	if (!err)
		err = move_flat(node, dst, dst_offset, *bounce, *len, PUT);
	return err;
}

static int copy_all(struct oc_node *node, const struct oc_region_ref *dst, uint64_t dst_offset,
		    const struct oc_region_ref *src, uint64_t src_offset, uint64_t len)
{
	void *bounce = NULL;
	uint64_t done = 0;
	int err = 0;

	while (done < len && !err) {
		size_t part = len - done;

		err = copy_part(node, dst, dst_offset + done, src, src_offset + done, &part,
				&bounce);
		done += part;
	}
	free(bounce);
	return err;
}

ssize_t oc_copy(oc_node *node, oc_cookie dst_cookie, uint64_t dst_offset, oc_cookie src_cookie,
		uint64_t src_offset, uint64_t len)
{
	struct oc_region_ref dst, src;
	uint64_t gap;
	int err;

	if (!node || !oc_node_mine(node))
		return -EINVAL;
	err = oc_region_acquire(node, src_cookie, OC_REGION_READ, &src);
	if (err)
		return err;
	err = oc_region_acquire(node, dst_cookie, OC_REGION_WRITE, &dst);
	if (err)
		goto release_src;
	len = rest(&src, src_offset) < len ? rest(&src, src_offset) : len;
	len = rest(&dst, dst_offset) < len ? rest(&dst, dst_offset) : len;
	gap = dst_offset < src_offset ? src_offset - dst_offset : dst_offset - src_offset;
	err = -EINVAL;
	if (src_cookie == dst_cookie && gap < len)
		goto release_dst;
	/* Only now: a call that fails on one of them uses neither up. */
	err = oc_region_consume(&src);
	if (!err && src_cookie != dst_cookie)
		err = oc_region_consume(&dst);
	if (!err)
		err = copy_all(node, &dst, dst_offset, &src, src_offset, len);
release_dst:
	oc_region_release(&dst);
release_src:
	oc_region_release(&src);
	return err ? err : (ssize_t)len;
}
