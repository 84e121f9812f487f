// SPDX-License-Identifier: BSD-3-Clause
#include "exec/relay.h"

#include <errno.h>

#include "bytes/copy.h"
#include "heap/heap.h"

/* Puts this rank's parcel up at the owner: one at a time. */
static int announce(struct oc_op *op, uint32_t peer)
{
	struct oc_board_line *line = oc_op_line(op, peer);
	uint32_t mine = (op->group->rank + 1) << OC_BOARD_ASK_PARCEL;

	for (;;) {
		uint32_t asked = atomic_load_explicit(&line->asked, memory_order_relaxed);
		int err;

		if (!(asked >> OC_BOARD_ASK_PARCEL) &&
		    atomic_compare_exchange_weak_explicit(&line->asked, &asked, asked | mine,
							  memory_order_release,
							  memory_order_relaxed))
			return 0;
		err = oc_op_idle_beside(op, peer);
		if (err)
			return err;
	}
}

/* The owner looks at what it is asked for whenever it waits. */
static int await_answer(struct oc_op *op, uint32_t peer)
{
	struct oc_board_line *line = oc_op_line(op, peer);

	while (atomic_load_explicit(&line->asked, memory_order_acquire) >> OC_BOARD_ASK_PARCEL ==
	       op->group->rank + 1) {
		int err = oc_op_idle_beside(op, peer);

		if (err)
			return err;
	}
	op->group->wait.turns = 0;
	return 0;
}

int oc_relay_move(struct oc_op *op, uint32_t peer, uint32_t slot, uint64_t off, void *here,
		  size_t len, bool put)
{
	struct oc_board_parcel *parcel = &op->group->me->parcel;
	char *box = oc_keep_take(&op->parcel, OC_OP_CHUNK), *at = here;
	int err = box ? 0 : -ENOMEM;

	/* There is one parcel a rank, which is this operation's. */
	op->group->asking = true;
	while (len && !err) {
		size_t part = len < OC_OP_CHUNK ? len : OC_OP_CHUNK;

		if (put)
			oc_copy_bytes(box, at, part, false);
		*parcel = (struct oc_board_parcel){
			.off = off,
			.slot = slot,
			.len = (uint32_t)part,
			.page = (uint32_t)(((uintptr_t)box - oc_heap_range.base) / OC_STAGE_PAGE),
			.put = put};
		err = announce(op, peer);
		if (!err)
			err = await_answer(op, peer);
		if (!err && !put)
			oc_copy_bytes(at, box, part, false);
		at += part;
		off += part;
		len -= part;
		oc_access_count(&oc_group_moved, OC_MECH_STAGED, part);
	}
	op->group->asking = false;
	return err;
}

/* What of this rank's a parcel may ask for: how many bytes, and where. */
static size_t own(const struct oc_op *op, uint32_t slot, struct oc_place *place)
{
	const struct oc_bind *bind = op->bind;

	*place = (struct oc_place){0};
	switch (slot) {
	case OC_SLOT_SEND:
		*place = oc_bind_place(bind, OC_SLOT_SEND, 0);
		return bind->send_bytes;
	case OC_SLOT_RECV:
		*place = oc_bind_place(bind, OC_SLOT_RECV, 0);
		return bind->recv_bytes;
	case OC_SLOT_SCRATCH:
		place->base = op->scratch.at;
		return op->scratch.bytes;
	case OC_SLOT_COUNT + OC_SLOT_SEND:
	case OC_SLOT_COUNT + OC_SLOT_RECV:
		place->base = op->layouts[slot - OC_SLOT_COUNT].at;
		return op->layouts[slot - OC_SLOT_COUNT].bytes;
	default:
		return 0;
	}
}

int oc_relay_serve(struct oc_op *op, uint32_t asker)
{
	const struct oc_board_parcel parcel = op->group->board[asker]->parcel;
	struct oc_place box = {0}, slot;
	size_t bytes = own(op, parcel.slot, &slot);

	if (parcel.off > bytes || parcel.len > bytes - parcel.off)
		return -EMSGSIZE;
	/* There is no other way, should the operation need all the room for itself. */
	op->window.urgent = true;
	box.base = oc_op_arena(op, asker, (uint64_t)parcel.page * OC_STAGE_PAGE, parcel.len);
	op->window.urgent = op->plan->shape.eager;
	if (!box.base)
		return -ENOMEM;
	slot.off = parcel.off;
	oc_layout_copy(parcel.put ? &slot : &box, parcel.put ? &box : &slot, parcel.len, false);
	atomic_fetch_and_explicit(&op->line->asked, (1u << OC_BOARD_ASK_PARCEL) - 1,
				  memory_order_release);
	return 0;
}
