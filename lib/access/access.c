// SPDX-License-Identifier: BSD-3-Clause
#include "access/access.h"

#include <errno.h>

#include "access/mech.h"
#include "access/pin_cache.h"
#include "segment/alive.h"

static bool may(const struct oc_node *node, const struct oc_target *target,
		const struct oc_mech *mech)
{
	return target->mech & mech->bit && oc_mech_allowed(node, mech);
}

static void count(struct oc_moved *moved, const struct oc_mech *mech, size_t bytes)
{
	uint32_t index = oc_mech_index(mech->bit);

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

		if (!may(node, target, mech))
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

bool oc_access_at(struct oc_node *node, const struct oc_target *target, enum oc_direction direction,
		  uint64_t offset, size_t len, struct oc_view *view)
{
	for (uint32_t i = 0; i < OC_MECH_COUNT; i++) {
		const struct oc_mech *mech = oc_mech_table[i];

		*view = (struct oc_view){.mech = mech};
		if (may(node, target, mech) && mech->at &&
		    !mech->at(node, target, direction, offset, len, view))
			return true;
	}
	return false;
}

void oc_access_release(struct oc_view *view)
{
	if (view->mech->release)
		view->mech->release(view);
}

ssize_t oc_access_between(struct oc_node *node, const struct oc_target *dst, uint64_t dst_offset,
			  const struct oc_target *src, uint64_t src_offset, size_t len,
			  struct oc_moved *moved)
{
	for (uint32_t i = 0; i < OC_MECH_COUNT; i++) {
		const struct oc_mech *mech = oc_mech_table[i];
		ssize_t part = -EOPNOTSUPP;

		if (mech->between && may(node, dst, mech) && may(node, src, mech))
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

uint32_t oc_access_offer(struct oc_node *node, const struct oc_want *want, int *place)
{
	uint32_t mech = 0, by_address = 0;

	*place = -1;
	for (uint32_t i = 0; i < OC_MECH_COUNT; i++) {
		const struct oc_mech *it = oc_mech_table[i];

		if (!it->offer || !(want->mech & it->bit))
			continue;
		if (!it->find)
			by_address |= it->bit;
		if (!mech)
			mech = it->offer(node, want, place);
	}
	return mech ? mech | by_address : 0;
}

void oc_access_withdraw(struct oc_node *node, int place)
{
	oc_pin_cache_put(node, (uint32_t)place);
}

void oc_access_blame(struct oc_node *node, int place)
{
	oc_pin_cache_blame(node, (uint32_t)place);
}

void oc_access_find(const struct oc_node *node, struct oc_target *target, uint32_t place)
{
	for (uint32_t i = 0; i < OC_MECH_COUNT; i++)
		if (oc_mech_table[i]->find && target->mech & oc_mech_table[i]->bit)
			oc_mech_table[i]->find(node, target, place);
}
