// SPDX-License-Identifier: BSD-3-Clause
/* Copies to, from and between regions, whatever mechanism does them. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "access/access.h"
#include "region/region_ref.h"

/* Of a copy between two regions neither of which is a pointer here. */
#define BOUNCE_BYTES (256u << 10)

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

static uint64_t rest(const struct oc_target *target, uint64_t offset)
{
	return offset < target->bytes ? target->bytes - offset : 0;
}

/* Who is cancelled in a copy would hold what others wait for. */
static int hold_cancellation(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static ssize_t transfer(oc_node *node, oc_cookie cookie, uint64_t offset, const struct iovec *iov,
			size_t iovcnt, enum oc_direction direction)
{
	struct oc_region_ref region;
	struct oc_cursor local;
	uint64_t len;
	int err, before;

	if (!node || !oc_node_mine(node))
		return -EINVAL;
	err = total(iov, iovcnt, &len);
	if (err)
		return err;
	before = hold_cancellation();
	err = oc_region_acquire(node, cookie,
				direction == OC_GET ? OC_REGION_READ : OC_REGION_WRITE, &region);
	if (err)
		goto restore;
	err = oc_region_consume(&region);
	if (len > rest(&region.target, offset))
		len = rest(&region.target, offset);
	if (!err) {
		oc_cursor_init(&local, iov, iovcnt, 0);
		err = oc_access_move(node, &region.target, direction, offset, &local, len,
				     &node->moved);
	}
	oc_region_release(&region);
restore:
	pthread_setcancelstate(before, NULL);
	return err ? err : (ssize_t)len;
}

ssize_t oc_get(oc_node *node, oc_cookie src, uint64_t offset, const struct iovec *local,
	       size_t iovcnt)
{
	return transfer(node, src, offset, local, iovcnt, OC_GET);
}

ssize_t oc_put(oc_node *node, oc_cookie dst, uint64_t offset, const struct iovec *local,
	       size_t iovcnt)
{
	return transfer(node, dst, offset, local, iovcnt, OC_PUT);
}

static int move_flat(struct oc_node *node, const struct oc_target *target, uint64_t offset,
		     void *at, size_t len, enum oc_direction direction)
{
	struct iovec iov = {.iov_base = at, .iov_len = len};
	struct oc_cursor local;

	oc_cursor_init(&local, &iov, 1, 0);
	return oc_access_move(node, target, direction, offset, &local, len, &node->moved);
}

/* The next part of a copy between regions: through a pointer to one of them
 * where there is one, else by a mechanism that takes both, else through *@bounce, made when first
 * needed. */
static int copy_part(struct oc_node *node, const struct oc_target *dst, uint64_t dst_offset,
		     const struct oc_target *src, uint64_t src_offset, size_t *len, void **bounce)
{
	struct oc_view view;
	ssize_t moved;
	int err;

	if (oc_access_at(node, src, OC_GET, src_offset, *len, &view)) {
		*len = view.bytes < *len ? view.bytes : *len;
		err = move_flat(node, dst, dst_offset, view.at, *len, OC_PUT);
		oc_access_release(&view);
		return err;
	}
	if (oc_access_at(node, dst, OC_PUT, dst_offset, *len, &view)) {
		*len = view.bytes < *len ? view.bytes : *len;
		err = move_flat(node, src, src_offset, view.at, *len, OC_GET);
		oc_access_release(&view);
		return err;
	}
	moved = oc_access_between(node, dst, dst_offset, src, src_offset, *len, &node->moved);
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
	err = move_flat(node, src, src_offset, *bounce, *len, OC_GET);
	if (!err)
		err = move_flat(node, dst, dst_offset, *bounce, *len, OC_PUT);
	return err;
}

static int copy_all(struct oc_node *node, const struct oc_target *dst, uint64_t dst_offset,
		    const struct oc_target *src, uint64_t src_offset, uint64_t len)
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
	int err, before;

	if (!node || !oc_node_mine(node))
		return -EINVAL;
	before = hold_cancellation();
	err = oc_region_acquire(node, src_cookie, OC_REGION_READ, &src);
	if (err)
		goto restore;
	err = oc_region_acquire(node, dst_cookie, OC_REGION_WRITE, &dst);
	if (err)
		goto release_src;
	len = rest(&src.target, src_offset) < len ? rest(&src.target, src_offset) : len;
	len = rest(&dst.target, dst_offset) < len ? rest(&dst.target, dst_offset) : len;
	gap = dst_offset < src_offset ? src_offset - dst_offset : dst_offset - src_offset;
	err = -EINVAL;
	if (src_cookie == dst_cookie && gap < len)
		goto release_dst;
	/* Only now: a call that fails on one of them uses neither up. */
	err = oc_region_consume(&src);
	if (!err && src_cookie != dst_cookie)
		err = oc_region_consume(&dst);
	if (!err)
		err = copy_all(node, &dst.target, dst_offset, &src.target, src_offset, len);
release_dst:
	oc_region_release(&dst);
release_src:
	oc_region_release(&src);
restore:
	pthread_setcancelstate(before, NULL);
	return err ? err : (ssize_t)len;
}
