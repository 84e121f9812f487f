// SPDX-License-Identifier: BSD-3-Clause
#include "access/access.h"

#include <errno.h>

#include "access/mech.h"
#include "segment/alive.h"

static void count(struct oc_moved *moved, const struct oc_mech *mech, size_t bytes)
{
	int index = __builtin_ctz(mech->bit);

	atomic_fetch_add_explicit(&moved->calls[index], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&moved->bytes[index], bytes, memory_order_relaxed);
}

static void count_demotion(struct oc_moved *moved)
{
	atomic_fetch_add_explicit(&moved->demotions, 1, memory_order_relaxed);
}

int oc_access_move(struct oc_node *node, const struct oc_target *target,
		   enum oc_direction direction, uint64_t offset, struct oc_cursor *local,
		   size_t len, struct oc_moved *moved)
{
	int err = -EOPNOTSUPP;
	size_t done = 0;

	for (uint32_t i = 0; i < OC_MECH_COUNT && done < len; i++) {
		const struct oc_mech *mech = oc_mech_table[i];
		ssize_t part;

		if (!oc_mech_allowed(node, mech))
			continue;
		part = mech->move(node, target, direction, offset + done, local, len - done);
		if (part == -EPIPE)
			return -EPIPE;
		if (part == -EOPNOTSUPP)
			continue;
		if (part > 0) {
			count(moved, mech, (size_t)part);
			done += (size_t)part;
		}
		if (done == len)
			return 0;
		err = part < 0 ? (int)part : -EFAULT;
		count_demotion(moved);
	}
	if (done == len)
		return 0;
	/* A process on its way out loses its memory before its life. */
	return oc_node_peer_alive(node, target->owner) ? err : -EPIPE;
}

void *oc_access_at(struct oc_node *node, const struct oc_target *target, uint64_t offset,
		   size_t *len)
{
	for (uint32_t i = 0; i < OC_MECH_COUNT; i++) {
		const struct oc_mech *mech = oc_mech_table[i];
		void *at = NULL;

		if (oc_mech_allowed(node, mech) && mech->flags & OC_MECH_POINTS)
			at = mech->at(node, target, offset, len);
		if (at)
			return at;
	}
	return NULL;
}

ssize_t oc_access_between(struct oc_node *node, const struct oc_target *dst, uint64_t dst_offset,
			  const struct oc_target *src, uint64_t src_offset, size_t len,
			  struct oc_moved *moved)
{
	for (uint32_t i = 0; i < OC_MECH_COUNT; i++) {
		const struct oc_mech *mech = oc_mech_table[i];
		ssize_t part = -EOPNOTSUPP;

		if (oc_mech_allowed(node, mech) && mech->flags & OC_MECH_BETWEEN)
			part = mech->between(node, dst, dst_offset, src, src_offset, len);
		if (part > 0) {
			count(moved, mech, (size_t)part);
			return part;
		}
		if (part == -EPIPE)
			return part;
		if (part != -EOPNOTSUPP)
			count_demotion(moved);
	}
	return -EOPNOTSUPP;
}
