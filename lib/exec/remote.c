// SPDX-License-Identifier: BSD-3-Clause
#include "exec/remote.h"

#include <errno.h>
#include <stdlib.h>

#include "access/cma.h"
#include "access/kdev.h"
#include "access/map_cache.h"
#include "access/pin_cache.h"
#include "base/env.h"
#include "exec/relay.h"

#define MAP_MIN	 ((size_t)16 << 10)  /* below this staging costs less than asking */
#define CALL_MIN ((size_t)128 << 10) /* below this a page-by-page read loses */

/* A slot of a peer, mapped for one operation. */
struct oc_remote {
	uint64_t seq; /* of the operation this is about */
	struct oc_map_cache *map;
	char *at; /* NULL: not to be mapped */
};

/* Receive slots are written by peers only in plans that have a way around it. */
static bool recv_is_written(const struct oc_op *op)
{
	const struct oc_plan *plan = op->plan;

	for (uint32_t i = 0; i < plan->nsteps; i++) {
		const struct oc_step *step = &oc_plan_steps(plan)[i];

		if (step->cond != OC_COND_ALWAYS &&
		    (step->cond_rank == OC_RANK_ALL || step->cond_rank == plan->shape.rank))
			return true;
	}
	return false;
}

static uint32_t offer_recv_kernel(struct oc_op *op)
{
	const struct oc_bind *bind = op->bind;
	uint32_t place;

	if (!(op->group->kernel & OC_MECH_MAP) || bind->recv_bytes < MAP_MIN || bind->recv_hole ||
	    !recv_is_written(op) ||
	    oc_pin_cache_get_reused(op->group->node, bind->recv, bind->recv_bytes, true, &place))
		return 0;
	op->recv_place = (int)place;
	op->line->recv = (uintptr_t)bind->recv;
	return OC_BOARD_RECV_MAP | place << OC_BOARD_RECV_PLACE;
}

/*
 * Two copies past the caches took half the time of one by CMA, which takes hold of
 * the pages one by one, wherever that was measured: docs/tuning.md. So CMA is for
 * whom staging is forbidden to.
 */
static bool copies_by_cma(const struct oc_op *op, size_t bytes)
{
	return op->group->cma && bytes >= CALL_MIN && !(oc_env()->mech & OC_MECH_STAGED);
}

/*
 * By CMA a copy into the slot is as good as one out of the peer's, so its peer can
 * do its share. What goes to all at once would be read once for each, and what is
 * folded would be copied once more: those plans' other way is the better one.
 */
static uint32_t offer_recv_cma(struct oc_op *op)
{
	const struct oc_bind *bind = op->bind;
	const struct oc_plan *plan = op->plan;
	const struct oc_step *steps = oc_plan_steps(plan);

	if (!copies_by_cma(op, bind->recv_bytes) || !recv_is_written(op))
		return 0;
	for (uint32_t i = 0; i < plan->nsteps; i++)
		if (steps[i].kind == OC_STEP_CALC ||
		    (steps[i].cond != OC_COND_ALWAYS && steps[i].cond_rank == OC_RANK_ALL))
			return 0;
	op->line->recv = (uintptr_t)bind->recv;
	return OC_BOARD_RECV_CMA;
}

static uint32_t offer_recv(struct oc_op *op)
{
	uint32_t flags = offer_recv_kernel(op);

	return flags ? flags : offer_recv_cma(op);
}

/*
 * Memory that is used once is worth a copy by system call where that beats
 * staging (bind->call), and nothing else; whatever comes again is mapped.
 */
static uint32_t offer_send_kernel(struct oc_op *op)
{
	const struct oc_bind *bind = op->bind;
	uint32_t kernel = op->group->kernel, place, flag = OC_BOARD_SEND_MAP;
	bool once = kernel & OC_MECH_KCOPY && bind->call && bind->send_bytes >= CALL_MIN;
	bool again = true;
	int err = -EAGAIN;

	if (once)
		err = oc_pin_cache_get(op->group->node, bind->send, bind->send_bytes, false, &place,
				       &again);
	else if (kernel & OC_MECH_MAP && bind->send_bytes >= MAP_MIN)
		err = oc_pin_cache_get_reused(op->group->node, bind->send, bind->send_bytes, false,
					      &place);
	if (err)
		return 0;
	if (!again || !(kernel & OC_MECH_MAP))
		flag = OC_BOARD_SEND_KCOPY;
	op->send_place = (int)place;
	return flag | place << OC_BOARD_SEND_PLACE;
}

static uint32_t offer_send(struct oc_op *op)
{
	const struct oc_bind *bind = op->bind;
	uint32_t flags = 0;

	if (op->group->kernel)
		flags = offer_send_kernel(op);
	if (!flags && copies_by_cma(op, bind->send_bytes))
		flags = OC_BOARD_SEND_CMA;
	if (flags)
		op->line->send = (uintptr_t)bind->send;
	return flags;
}

void oc_remote_offer(struct oc_op *op, uint32_t *flags)
{
	/* First what must be writable: the send slot may be the same memory. */
	if (op->bind->recv && !(*flags & OC_BOARD_RECV_HEAP))
		*flags |= offer_recv(op);
	if (op->foreign)
		*flags |= offer_send(op);
}

void oc_remote_blame(struct oc_op *op, enum oc_slot slot)
{
	int place = slot == OC_SLOT_RECV ? op->recv_place : op->send_place;

	if (place >= 0)
		oc_pin_cache_blame(op->group->node, (uint32_t)place);
	else /* A refusal of CMA is about the processes. */
		op->group->cma = false;
}

void oc_remote_end(struct oc_op *op)
{
	struct oc_group *group = op->group;

	for (uint32_t i = 0; op->mapped && i < 2 * group->size; i++) {
		struct oc_remote *remote = &group->remote[i];

		if (remote->seq == group->seq && remote->map) {
			oc_map_cache_put(remote->map);
			remote->map = NULL;
			op->mapped--;
		}
	}
	if (op->send_place >= 0)
		oc_pin_cache_put(group->node, (uint32_t)op->send_place);
	if (op->recv_place >= 0)
		oc_pin_cache_put(group->node, (uint32_t)op->recv_place);
	op->send_place = op->recv_place = -1;
}

/* What the owner of a slot says about it. */
struct offer {
	uint64_t cookie; /* of the kernel region around it, or 0 */
	uint64_t bytes;	 /* of that */
	uint64_t offset; /* of the slot in that */
	uint64_t addr;	 /* of the slot in its owner's process */
	bool in_arena;	 /* it was not offered, as all peers reach arenas */
};

/* A slot that needed none of this, had its owner's arena been mapped. */
static bool is_in_arena(struct oc_op *op, uint32_t peer, enum oc_slot slot)
{
	uint32_t flags = oc_line_flags(oc_group_line(op->group, peer));

	if (slot == OC_SLOT_SEND)
		return !(flags & OC_BOARD_SEND_AWAY);
	return slot != OC_SLOT_RECV || flags & OC_BOARD_RECV_HEAP;
}

static bool look_up(struct oc_op *op, uint32_t peer, enum oc_slot slot, struct offer *offer)
{
	struct oc_group *group = op->group;
	struct oc_board_line *line = oc_group_line(group, peer);
	uint32_t flags = oc_line_flags(line);
	uint32_t shift = slot == OC_SLOT_RECV ? OC_BOARD_RECV_PLACE : OC_BOARD_SEND_PLACE;
	uint32_t kernel =
		slot == OC_SLOT_RECV ? OC_BOARD_RECV_MAP : OC_BOARD_SEND_MAP | OC_BOARD_SEND_KCOPY;
	uint32_t call = slot == OC_SLOT_RECV ? OC_BOARD_RECV_CMA : OC_BOARD_SEND_CMA;
	struct oc_pin_cache_entry *entry;

	if (is_in_arena(op, peer, slot)) {
		const struct oc_segment_rank *owner = &group->node->ranks[group->node_rank[peer]];

		*offer = (struct offer){.addr = owner->arena_base +
						oc_op_arena_offset(op, peer, slot),
					.in_arena = true};
		return true;
	}
	*offer = (struct offer){.addr = slot == OC_SLOT_RECV ? line->recv : line->send};
	if (!(flags & kernel))
		return flags & call;
	entry = &oc_pin_cache_area(group->node, group->node_rank[peer])
			 ->entry[flags >> shift & OC_BOARD_PLACE_MASK];
	offer->cookie = atomic_load_explicit(&entry->cookie, memory_order_acquire);
	offer->bytes = atomic_load_explicit(&entry->bytes, memory_order_relaxed);
	offer->offset = offer->addr - atomic_load_explicit(&entry->base, memory_order_relaxed);
	return offer->offset < offer->bytes;
}

static struct oc_remote *remote_of(struct oc_group *group, uint32_t peer, enum oc_slot slot)
{
	if (!group->remote)
		group->remote = calloc(2 * (size_t)group->size, sizeof(*group->remote));
	if (!group->remote)
		return NULL;
	return &group->remote[slot == OC_SLOT_RECV ? group->size + peer : peer];
}

char *oc_remote_at(struct oc_op *op, uint32_t peer, enum oc_slot slot)
{
	struct oc_group *group = op->group;
	struct oc_remote *remote = remote_of(group, peer, slot);
	struct offer offer;
	char *base;

	if (!remote || remote->seq == group->seq)
		return remote ? remote->at : NULL;
	*remote = (struct oc_remote){.seq = group->seq};
	if (!look_up(op, peer, slot, &offer) || !offer.cookie ||
	    oc_map_cache_get(offer.cookie, 0, offer.bytes, slot == OC_SLOT_RECV, &remote->map,
			     &base))
		return NULL;
	op->mapped++;
	remote->at = base + offer.offset;
	return remote->at;
}

static int move(struct oc_op *op, enum oc_direction direction, uint32_t peer,
		const struct offer *offer, uint64_t off, void *here, size_t len)
{
	struct oc_group *group = op->group;
	struct iovec iov = {.iov_base = here, .iov_len = len};
	struct oc_cursor local;
	uint32_t rank = group->node_rank[peer];
	int err = -EOPNOTSUPP;

	if (offer->cookie) {
		oc_cursor_init(&local, &iov, 1, 0);
		if (oc_kdev_copy(direction, offer->cookie, offer->offset + off, &local, len) ==
		    (ssize_t)len) {
			oc_group_stats.kcopy_calls++;
			oc_group_stats.kcopy_bytes += len;
			return 0;
		}
	}
	if ((offer->cookie || offer->in_arena) && !group->cma)
		return err;
	err = direction == OC_GET ? oc_cma_read(group->node, rank, here, offer->addr + off, len)
				  : oc_cma_write(group->node, rank, here, offer->addr + off, len);
	if (!err) {
		oc_group_stats.cma_calls++;
		oc_group_stats.cma_bytes += len;
	}
	return err;
}

int oc_remote_get(struct oc_op *op, void *dst, uint32_t peer, enum oc_slot slot, uint64_t off,
		  size_t len)
{
	struct offer offer;
	int err;

	if (!look_up(op, peer, slot, &offer))
		return -EOPNOTSUPP;
	err = move(op, OC_GET, peer, &offer, off, dst, len);
	if (!err || !(slot == OC_SLOT_RECV || offer.in_arena))
		return err;
	/* In an eager plan the owner has gone on. */
	if (op->plan->shape.eager)
		return -ENOMEM;
	return oc_relay_move(op, peer, slot, off, dst, len, false);
}

int oc_remote_put(struct oc_op *op, uint32_t peer, uint64_t off, const void *src, size_t len)
{
	struct offer offer;

	void *from = (void *)(uintptr_t)src;

	if (!look_up(op, peer, OC_SLOT_RECV, &offer))
		return -EOPNOTSUPP;
	if (!move(op, OC_PUT, peer, &offer, off, from, len))
		return 0;
	return oc_relay_move(op, peer, OC_SLOT_RECV, off, from, len, true);
}
