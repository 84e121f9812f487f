// SPDX-License-Identifier: BSD-3-Clause
/*
 * Where a slot is: memory of the shared heap is reached through the mapping of
 * its owner's arena. A send buffer elsewhere is either reached by another mechanism
 * (remote.c), or staged: its owner copies it into scratch memory of the arena, chunk by chunk, and
 * peers follow the count of bytes that are ready. A receive buffer elsewhere
 * is written by peers only where that is as good as a copy of its owner's; plans
 * carry a second way for the rest (OC_COND_*). With the kernel module both are as
 * good as in the heap: remote.c.
 *
 * A peer whose read is refused says so in the owner's line (`asked`). The owner,
 * which stays until all its readers are done, then stages as above.
 *
 * In an eager plan what peers read has been copied into the ring before READY, and so
 * have the tables of v-collectives.
 * The owner may be operations ahead then: a line of its board and a place in
 * the ring are used again at the same time, so what protects the first,
 * oc_group_has_line(), protects the second.
 */
#include "exec/slot.h"

#include <errno.h>
#include <string.h>

#include "access/private_pages.h"
#include "exec/pieces.h"
#include "exec/relay.h"
#include "exec/remote.h"
#include "heap/heap.h"
#include "heap/huge.h"
#include "heap/promote.h"
#include "heap/static_data.h"

static uint64_t arena_offset(const void *p)
{
	return (uintptr_t)p - oc_heap_range.base;
}

/* The first step that stages the send slot; NULL if no peer reads it. */
static const struct oc_step *send_stage(const struct oc_plan *plan)
{
	const struct oc_step *steps = oc_plan_steps(plan);

	for (uint32_t i = 0; i < plan->nsteps; i++)
		if (steps[i].kind == OC_STEP_STAGE)
			return &steps[i];
	return NULL;
}

/* This operation's place in the ring, or NULL. */
static char *ring_place(struct oc_op *op)
{
	char *ring = oc_keep_take(&op->group->ring, (size_t)OC_BOARD_LINES * OC_EAGER_MAX);

	return ring ? ring + op->issued.seq % OC_BOARD_LINES * OC_EAGER_MAX : NULL;
}

/* A peer may have nothing else to do with this rank, which does not wait for it then. */
static int place_table(struct oc_op *op)
{
	const struct oc_bind *bind = op->bind;
	char *place = ring_place(op);

	if (!place)
		return -ENOMEM;
	op->scratch = (struct oc_keep){.at = place, .bytes = bind->scratch_bytes};
	op->line->scratch = arena_offset(place);
	memcpy(place, bind->scratch_init, bind->scratch_bytes);
	return 0;
}

/* Peers look for it once an event is posted. */
int oc_slot_scratch(struct oc_op *op)
{
	if (op->scratch.at)
		return 0;
	if (!oc_keep_take(&op->scratch, op->bind->scratch_bytes))
		return -ENOMEM;
	op->line->scratch = arena_offset(op->scratch.at);
	return 0;
}

void oc_slot_end(struct oc_op *op)
{
	if (!op->bind->scratch_init)
		oc_keep_give(&op->scratch);
	oc_keep_give(&op->stage);
	oc_pieces_end(op);
	oc_keep_give(&op->parcel);
}

/* [off, off + len) of this rank's send slot to the same place in @stage. */
static void stage_bytes(struct oc_op *op, struct oc_store_turn *turn, char *stage, uint64_t off,
			size_t len)
{
	const struct oc_bind *bind = op->bind;

	if (bind->send_layout) {
		const struct oc_place to = {.base = stage + off};
		const struct oc_place from = oc_bind_place(bind, OC_SLOT_SEND, off);

		uint64_t since = oc_store_policy_clock(turn);

		oc_layout_copy(&to, &from, len, turn->past);
		oc_store_policy_add(turn, since, len);
	} else {
		oc_store_policy_copy(turn, stage + off, (const char *)bind->send + off, len);
	}
}

/*
 * Copies what the plan's STAGE steps name to this operation's place in the ring.
 * Readers want it at once, so that it had better be in a cache; but cores that share
 * none fetch its lines back from the last readers one by one, as in oc_slot_stage().
 */
static int stage_eager(struct oc_op *op)
{
	struct oc_group *group = op->group;
	const struct oc_plan *plan = op->plan;
	char *place = ring_place(op);
	struct oc_store_turn turn;

	if (!place)
		return -ENOMEM;
	oc_store_policy_begin(&turn, &group->eager, plan->shape.coll, op->bind->send_bytes);
	for (uint32_t i = 0; i < plan->nsteps; i++) {
		const struct oc_step *step = &oc_plan_steps(plan)[i];

		if (step->kind != OC_STEP_STAGE)
			continue;
		stage_bytes(op, &turn, place, step->src.off, step->len);
	}
	oc_store_policy_end(&turn);
	op->line->stage_page = (uint32_t)(arena_offset(place) / OC_STAGE_PAGE);
	return 0;
}

/* Programs that allocate everything first fill it later, and may never allocate again.
 * Threads may count one operation for two: nothing depends on it. */
static void look_at_pages(const struct oc_op *op)
{
	static uint64_t operations;
	uint64_t n = __atomic_load_n(&operations, __ATOMIC_RELAXED) + 1;

	__atomic_store_n(&operations, n, __ATOMIC_RELAXED);
	if (!(n & (n - 1)))
		oc_heap_thp_settle();
	if (oc_heap_promote_look((op->bind->send_bytes + op->bind->recv_bytes) / 2))
		oc_private_pages_look(op->group->node);
}

/* Where in the arena peers may write the receive slot. The owner of an eager plan may be gone when
 * they look: nobody reads its layouts there. */
static uint64_t find_recv(const struct oc_op *op)
{
	if (op->plan->shape.eager && op->bind->recv_layout)
		return OC_PIECES_NOWHERE;
	return oc_pieces_find(op->bind, OC_SLOT_RECV);
}

int oc_slot_offer(struct oc_op *op)
{
	const struct oc_bind *bind = op->bind;
	struct oc_board_line *line = op->line;
	uint64_t ready = UINT64_MAX, recv = find_recv(op);
	uint32_t flags = oc_line_flags(line) & OC_BOARD_SOLE;

	look_at_pages(op);
	line->send = line->recv = 0;
	line->bytes = op->plan->shape.bytes;
	atomic_store_explicit(&line->asked, 0, memory_order_relaxed);
	if (op->plan->shape.eager) {
		int err = send_stage(op->plan) ? stage_eager(op) : 0;

		if (err)
			return err;
		flags |= OC_BOARD_SEND_STAGED;
	} else if (op->foreign) {
		ready = 0;
	} else if (op->send != OC_PIECES_NOWHERE) {
		flags |= OC_BOARD_SEND_HEAP;
		line->send = oc_pieces_offer(op, OC_SLOT_SEND, op->send);
		if (line->send == OC_PIECES_NOWHERE)
			return -ENOMEM;
	}
	if (recv != OC_PIECES_NOWHERE) {
		flags |= OC_BOARD_RECV_HEAP;
		line->recv = oc_pieces_offer(op, OC_SLOT_RECV, recv);
		if (line->recv == OC_PIECES_NOWHERE)
			return -ENOMEM;
		/* Peers may be about to write it. */
		if (bind->recv_whole)
			oc_pieces_place_recv(bind, recv);
	}
	if (!op->plan->shape.eager)
		oc_remote_offer(op, &flags);
	if (op->foreign && !(flags & OC_BOARD_SEND_AWAY))
		flags |= OC_BOARD_SEND_STAGED;
	atomic_store_explicit(&line->flags, flags, memory_order_relaxed);
	atomic_store_explicit(&line->ready, ready, memory_order_relaxed);
	oc_group_post(op->group, &op->issued, OC_EVENT_READY);
	return 0;
}

/*
 * Copies the send slot into the staging area, telling readers as it goes. Past
 * the caches at first: the area's lines are in the readers' from the last time, and
 * where cores share no cache, taking those away and handing them over one by one
 * costs up to five times what memory does (docs/tuning.md).
 */
static void stage_range(struct oc_op *op, struct oc_store_turn *turn, char *stage, size_t off,
			size_t end)
{
	struct oc_board_line *line = op->line;

	while (off < end) {
		size_t len = end - off < OC_OP_CHUNK ? end - off : OC_OP_CHUNK;

		stage_bytes(op, turn, stage, off, len);
		off += len;
		atomic_store_explicit(&line->ready, off, memory_order_release);
		oc_line_wake(line);
	}
}

int oc_slot_stage(struct oc_op *op)
{
	size_t bytes = op->bind->send_bytes;
	char *stage = oc_keep_take(&op->stage, bytes);
	const struct oc_step *step = send_stage(op->plan);
	size_t unread = step ? step->len : 0, gap = unread ? step->src.off : 0;
	struct oc_store_turn turn;

	if (!stage)
		return -ENOMEM;
	oc_store_policy_begin(&turn, &op->group->staging, op->plan->shape.coll, bytes);
	op->line->stage_page = (uint32_t)(arena_offset(stage) / OC_STAGE_PAGE);
	stage_range(op, &turn, stage, 0, gap);
	stage_range(op, &turn, stage, gap + unread, bytes);
	oc_store_policy_end(&turn);
	return 0;
}

/* Somebody could not read this rank's send slot: it will be so again. */
static int restage(struct oc_op *op)
{
	struct oc_board_line *line = op->line;
	uint32_t flags = oc_line_flags(line);

	if (!(flags & OC_BOARD_SEND_AWAY))
		return 0;
	oc_remote_blame(op, OC_SLOT_SEND);
	flags = (flags & ~(uint32_t)OC_BOARD_SEND_AWAY) | OC_BOARD_SEND_STAGED;
	atomic_store_explicit(&line->flags, flags, memory_order_release);
	return oc_slot_stage(op);
}

int oc_slot_serve(struct oc_op *op)
{
	uint32_t asked = atomic_load_explicit(&op->line->asked, memory_order_acquire);
	int err = 0;

	if (asked >> OC_BOARD_ASK_PARCEL) {
		uint32_t asker = (asked >> OC_BOARD_ASK_PARCEL) - 1;

		/* Of a slot in the arena it says nothing of the slot. */
		if (op->group->board[asker]->parcel.slot == OC_SLOT_RECV &&
		    oc_line_flags(op->line) & OC_BOARD_RECV_AWAY)
			oc_remote_blame(op, OC_SLOT_RECV);
		err = oc_relay_serve(op, asker);
	}
	return !err && asked & OC_BOARD_ASK_STAGE ? restage(op) : err;
}

int oc_slot_bind(struct oc_op *op)
{
	const struct oc_bind *bind = op->bind;

	op->send = oc_pieces_find(bind, OC_SLOT_SEND);
	op->foreign = op->send == OC_PIECES_NOWHERE && bind->send_bytes && !op->plan->shape.eager &&
		      send_stage(op->plan);
	op->line->scratch = 0;
	/* Most plans use the scratch slot only where a receive slot is out of reach,
	 * which shows later. */
	return bind->scratch_init ? place_table(op) : 0;
}

/* [off, off + len) of a peer's slot that is in its arena. */
static char *arena_at(struct oc_op *op, uint32_t peer, enum oc_slot slot, uint64_t off, size_t len)
{
	if (__builtin_expect(oc_pieces_has(op, peer, slot), 0))
		return oc_pieces_at(op, oc_ref(slot, peer, off), len);
	return oc_op_arena(op, peer, oc_op_arena_offset(op, peer, slot) + off, len);
}

/* Waits until bytes [0, end) of @peer's send slot may be read. */
static int wait_ready(struct oc_op *op, uint32_t peer, uint64_t end)
{
	struct oc_board_line *line = oc_op_line(op, peer);

	while (atomic_load_explicit(&line->ready, memory_order_acquire) < end) {
		int err = oc_op_idle_beside(op, peer);

		if (err)
			return err;
	}
	op->group->wait.turns = 0;
	return 0;
}

bool oc_slot_is_ready(const struct oc_op *op, uint32_t peer, uint64_t end)
{
	struct oc_board_line *line = oc_op_line(op, peer);

	return oc_line_flags(line) & OC_BOARD_SEND_AWAY ||
	       atomic_load_explicit(&line->ready, memory_order_acquire) >= end;
}

const char *oc_slot_send_at(struct oc_op *op, uint32_t peer, uint64_t off, size_t len)
{
	struct oc_board_line *line = oc_op_line(op, peer);
	uint32_t flags = oc_line_flags(line);

	if (flags & OC_BOARD_SEND_AWAY)
		return oc_remote_at(op, peer, OC_SLOT_SEND, off, len);
	if (atomic_load_explicit(&line->ready, memory_order_acquire) < off + len)
		return NULL;
	return arena_at(op, peer, OC_SLOT_SEND, off, len);
}

int oc_slot_await_send(struct oc_op *op, uint32_t peer, uint64_t off, size_t len, const char **at)
{
	uint32_t flags = oc_line_flags(oc_op_line(op, peer));
	int err = 0;

	if (!(flags & OC_BOARD_SEND_AWAY))
		err = wait_ready(op, peer, off + len);
	*at = err ? NULL : oc_slot_send_at(op, peer, off, len);
	return err;
}

/* Asks @peer to stage its send slot, and waits until it has begun. */
static int ask_to_stage(struct oc_op *op, uint32_t peer)
{
	struct oc_board_line *line = oc_op_line(op, peer);

	int err = 0;

	atomic_fetch_or_explicit(&line->asked, OC_BOARD_ASK_STAGE, memory_order_release);
	op->group->asking = true;
	/* The owner looks at this whenever it waits. */
	while (!err && oc_line_flags(line) & OC_BOARD_SEND_AWAY)
		err = oc_op_idle_beside(op, peer);
	op->group->asking = false;
	return err;
}

/* From the arena, following what is staged. */
static int read_arena(struct oc_op *op, char *dst, uint32_t peer, uint64_t off, size_t len,
		      struct oc_store_turn *stores)
{
	struct oc_board_line *line = oc_op_line(op, peer);

	oc_op_count(op, OC_SLOT_SEND, peer, len);
	while (len) {
		bool whole = atomic_load_explicit(&line->ready, memory_order_acquire) >= off + len;
		size_t part = whole || len < OC_OP_CHUNK ? len : OC_OP_CHUNK;
		int err = wait_ready(op, peer, off + part);
		const char *src = err ? NULL : arena_at(op, peer, OC_SLOT_SEND, off, part);

		if (src)
			oc_store_policy_copy(stores, dst, src, part);
		else if (!err)
			err = oc_remote_get(op, dst, peer, OC_SLOT_SEND, off, part);
		if (err)
			return err;
		dst += part;
		off += part;
		len -= part;
	}
	return 0;
}

int oc_slot_read(struct oc_op *op, void *dst, uint32_t peer, uint64_t off, size_t len,
		 struct oc_store_turn *stores)
{
	uint32_t flags = oc_line_flags(oc_op_line(op, peer));
	const char *src = NULL;
	int err = 0;

	if (flags & OC_BOARD_SEND_AWAY)
		src = oc_remote_at(op, peer, OC_SLOT_SEND, off, len);
	if (src) {
		oc_store_policy_copy(stores, dst, src, len);
		oc_op_count(op, OC_SLOT_SEND, peer, len);
		return 0;
	}
	if (flags & OC_BOARD_SEND_AWAY) {
		if (!oc_remote_get(op, dst, peer, OC_SLOT_SEND, off, len))
			return 0;
		err = ask_to_stage(op, peer);
	}
	return err ? err : read_arena(op, dst, peer, off, len, stores);
}

char *oc_slot_at(struct oc_op *op, struct oc_ref ref, size_t len)
{
	struct oc_group *group = op->group;
	struct oc_board_line *line = oc_op_line(op, ref.rank);

	if (ref.rank == group->rank) {
		if (__builtin_expect(oc_pieces_has(op, ref.rank, ref.slot), 0))
			return oc_pieces_at(op, ref, len);
		switch (ref.slot) {
		case OC_SLOT_SEND:
			return (char *)(uintptr_t)op->bind->send + ref.off;
		case OC_SLOT_RECV:
			return (char *)op->bind->recv + ref.off;
		default:
			return op->scratch.at + ref.off;
		}
	}
	if (ref.slot != OC_SLOT_RECV || !(oc_line_flags(line) & OC_BOARD_RECV_AWAY))
		return arena_at(op, ref.rank, ref.slot, ref.off, len);
	return oc_remote_at(op, ref.rank, OC_SLOT_RECV, ref.off, len);
}
