// SPDX-License-Identifier: BSD-3-Clause
/*
 * The inline executor: the calling thread runs its plans, doing whichever step is ready
 * (steps.c), and waits only when none is.
 *
 * Who waits for one operation goes on with the others that are under way, for a peer may wait for
 * one of these and come to the first only then. Those further in never wait for a peer's steps:
 * what waits further out could not go on when its turn comes, and two ranks might do so crosswise.
 * They look whether what they would read is staged, and come back later. What is left to wait for
 * is an answer that each owner gives in whatever it waits (group->asking).
 */
#include "exec/inline.h"

#include <errno.h>
#include <string.h>

#include "exec/pieces.h"
#include "exec/remote.h"
#include "exec/slot.h"
#include "exec/steps.h"
#include "segment/alive.h"

#define LOOK_ALIVE 1024 /* looks at an operation between those at a peer's process */

/* Whether the plan is for this place in such a group, and stays within what it is bound to. */
static bool fits(const struct oc_op *op)
{
	const struct oc_plan *plan = op->plan;
	const struct oc_bind *bind = op->bind;

	return plan->shape.size == op->group->size && plan->shape.rank == op->group->rank &&
	       plan->need[OC_SLOT_SEND] <= bind->send_bytes &&
	       plan->need[OC_SLOT_RECV] <= bind->recv_bytes &&
	       plan->need[OC_SLOT_SCRATCH] <= bind->scratch_bytes && oc_pieces_fit(bind);
}

/* Addresses that no program has, such as NULL with a count. With a layout the base may be any. */
static bool is_nowhere(const void *at, uint64_t bytes, const void *layout)
{
	return bytes && !layout && (uintptr_t)at < 4096;
}

static bool has_buffers(const struct oc_op *op)
{
	const struct oc_bind *bind = op->bind;
	const uint64_t *need = op->plan->need;

	return !is_nowhere(bind->send, need[OC_SLOT_SEND], bind->send_layout) &&
	       !is_nowhere(bind->recv, need[OC_SLOT_RECV], bind->recv_layout);
}

static struct oc_op *op_of(struct oc_issued *issued)
{
	return (struct oc_op *)issued;
}

static void end(struct oc_op *op)
{
	oc_group_retire(op->group, &op->issued);
	oc_remote_end(op);
	oc_window_end(&op->window);
	oc_slot_end(op);
	if (op->room)
		oc_group_give_room(op->group, op->room);
	op->state = OC_OP_ENDED;
}

/* Its steps are done, or it has failed. */
static void stop(struct oc_op *op, int err)
{
	op->err = err;
	if (!err) {
		oc_store_policy_end(&op->stores);
		end(op);
		return;
	}
	oc_group_fail(op->group, op->issued.seq, err);
	op->state = OC_OP_QUITTING;
	/* What peers read in an eager plan is none of the caller's. */
	if (!op->offered || op->plan->shape.eager)
		end(op);
}

/* Which stores copies to slots begin with is the plan's to say; of short ones it is not known. */
static void begin_stores(struct oc_op *op)
{
	struct oc_group *group = op->group;
	const struct oc_shape *shape = &op->plan->shape;
	uint64_t send = op->bind->send_bytes, recv = op->bind->recv_bytes;

	if (shape->stream)
		oc_store_policy_begin(&op->stores, &group->stores, shape->coll, send + recv);
	else if (send >= OC_STORE_POLICY_FROM || recv >= OC_STORE_POLICY_FROM)
		oc_store_policy_begin(&op->stores, &group->brief, shape->coll, send + recv);
}

/* With a line of its own. */
static void start(struct oc_op *op)
{
	struct oc_group *group = op->group;
	const struct oc_plan *plan = op->plan;
	int err = op->err;

	op->line = oc_group_take_line(group, &op->issued);
	op->state = OC_OP_RUNNING;
	if (!err && !fits(op))
		err = -EINVAL;
	if (!err && !has_buffers(op))
		err = -EFAULT;
	if (!err) {
		op->room = oc_group_take_room(group, plan->nsteps);
		err = op->room ? 0 : -ENOMEM;
	}
	if (!err) {
		memset(op->room->done, 0, plan->nsteps);
		oc_window_begin(&op->window, group->node);
		op->window.urgent = plan->shape.eager;
		begin_stores(op);
		err = oc_slot_bind(op);
	}
	if (!err)
		err = oc_slot_offer(op);
	op->offered = !err;
	if (err)
		stop(op, err);
}

/* One that is gone has retired everything. */
static void bury(struct oc_group *group, uint32_t peer)
{
	group->over[peer] = UINT64_MAX;
}

/* Once in a while: costs a system call. */
static bool is_gone(struct oc_op *op, uint32_t peer)
{
	struct oc_group *group = op->group;

	return op->looks++ % LOOK_ALIVE == LOOK_ALIVE - 1 && peer != group->rank &&
	       !oc_node_peer_alive(group->node, group->node_rank[peer]);
}

static void look_alive(struct oc_op *op, uint32_t peer)
{
	if (is_gone(op, peer))
		bury(op->group, peer);
}

static bool try_start(struct oc_op *op)
{
	uint32_t peer;

	if (!oc_group_has_line(op->group, &op->issued, &peer)) {
		look_alive(op, peer);
		return false;
	}
	start(op);
	return true;
}

/* A pass in which nothing was ready: whether that will ever be, 0 or more, or -errno. */
static int despair(struct oc_op *op, uint32_t stuck)
{
	uint32_t peer = oc_steps_peer(op, stuck);
	int err = oc_op_look_around(op, op->looks);

	return !is_gone(op, peer) || err ? err : oc_steps_without(op, peer);
}

static bool try_steps(struct oc_op *op)
{
	uint32_t stuck;
	int moved = oc_slot_serve(op);

	if (!moved)
		moved = oc_steps_pass(op, &stuck);
	if (!moved && op->first < op->plan->nsteps)
		moved = despair(op, stuck);
	if (moved < 0 || op->first == op->plan->nsteps)
		stop(op, moved < 0 ? moved : 0);
	return moved;
}

static bool try_quit(struct oc_op *op)
{
	int peer = oc_group_inside(op->group, op->issued.seq);

	if (peer >= 0)
		look_alive(op, (uint32_t)peer);
	else
		end(op);
	return peer < 0;
}

/* Goes on with an operation as far as that is possible now. Whether it was. */
static bool advance(struct oc_op *op)
{
	bool moved = false;

	op->busy = true;
	if (op->state == OC_OP_ISSUED)
		moved = try_start(op);
	else if (op->state == OC_OP_RUNNING)
		moved = try_steps(op);
	else
		moved = try_quit(op);
	op->busy = false;
	return moved;
}

/* Goes on with all that are under way, but those somebody is at. Others may end meanwhile. */
static bool advance_all(struct oc_group *group)
{
	uint64_t last = 0;
	bool moved = false;

	for (;;) {
		struct oc_issued *at = group->first;

		while (at && (at->seq <= last || op_of(at)->busy))
			at = at->next;
		if (!at)
			return moved;
		last = at->seq;
		moved = advance(op_of(at)) || moved;
	}
}

static int turn(struct oc_op *op)
{
	struct oc_group *group = op->group;
	int err = op->state == OC_OP_RUNNING ? oc_slot_serve(op) : 0;

	if (group->first == &op->issued && !op->issued.next)
		return err;
	if (!group->asking) {
		if (advance_all(group))
			group->wait.turns = 0;
		return err;
	}
	for (struct oc_issued *at = group->first; at; at = at->next)
		if (at != &op->issued && op_of(at)->state == OC_OP_RUNNING)
			/* What it failed with it will find out again. */
			oc_slot_serve(op_of(at));
	return err;
}

static void issue(struct oc_op *op, struct oc_group *group, const struct oc_plan *plan,
		  const struct oc_bind *bind)
{
	*op = (struct oc_op){.group = group,
			     .plan = plan,
			     .bind = bind,
			     .turn = turn,
			     .all_direct = -1,
			     .send_place = -1,
			     .recv_place = -1};
	oc_group_issue(group, &op->issued);
}

/* A turn of waiting for @peer to retire what the operation's line was last used for. */
static void await_peer(struct oc_op *op, uint32_t peer)
{
	struct oc_group *group = op->group;
	/* Nobody is woken for a retirement, but when the peer goes on after it. */
	struct oc_board_line *next = oc_group_line(group, op->issued.seq + 1, peer);
	uint64_t word = atomic_load_explicit(&next->word, memory_order_relaxed);

	turn(op);
	if (oc_group_idle(group, peer, next, word) < 0)
		bury(group, peer);
}

/* One's own earlier operation on the line. */
static struct oc_op *line_owner(struct oc_op *op)
{
	struct oc_issued *at = op->group->first;

	while ((op->issued.seq - at->seq) % OC_BOARD_LINES)
		at = at->next;
	return op_of(at);
}

static void await_line(struct oc_op *op)
{
	uint32_t peer;

	while (!oc_group_has_line(op->group, &op->issued, &peer)) {
		if (peer == op->group->rank)
			oc_exec_wait(line_owner(op));
		else
			await_peer(op, peer);
	}
	op->group->wait.turns = 0;
	start(op);
}

static void run(struct oc_op *op)
{
	int err = 0;

	while (op->first < op->plan->nsteps && err >= 0) {
		uint32_t stuck;

		err = oc_steps_pass(op, &stuck);
		if (err > 0)
			op->group->wait.turns = 0;
		else if (!err && stuck < op->plan->nsteps)
			err = oc_steps_idle(op, stuck);
	}
	stop(op, err < 0 ? err : 0);
}

static void quit(struct oc_op *op)
{
	struct oc_group *group = op->group;
	int peer;

	while ((peer = oc_group_inside(group, op->issued.seq)) >= 0) {
		struct oc_board_line *line = oc_op_line(op, (uint32_t)peer);
		uint64_t word = atomic_load_explicit(&line->word, memory_order_acquire);

		turn(op);
		if (oc_group_inside(group, op->issued.seq) == peer &&
		    oc_group_idle(group, (uint32_t)peer, line, word) < 0)
			bury(group, (uint32_t)peer);
	}
	group->wait.turns = 0;
	end(op);
}

int oc_exec_wait(struct oc_op *op)
{
	op->busy = op->waits = true;
	if (op->state == OC_OP_ISSUED)
		await_line(op);
	if (op->state == OC_OP_RUNNING)
		run(op);
	if (op->state == OC_OP_QUITTING)
		quit(op);
	return op->err;
}

int oc_exec_inline(struct oc_group *group, const struct oc_plan *plan, const struct oc_bind *bind)
{
	struct oc_op op;

	issue(&op, group, plan, bind);
	return oc_exec_wait(&op);
}

void oc_exec_begin(struct oc_op *op, struct oc_group *group, const struct oc_plan *plan,
		   const struct oc_bind *bind)
{
	issue(op, group, plan, bind);
	advance(op);
}

bool oc_exec_test(struct oc_op *op, int *err)
{
	if (op->state != OC_OP_ENDED)
		advance_all(op->group);
	*err = op->state == OC_OP_ENDED ? op->err : 0;
	return op->state == OC_OP_ENDED;
}

void oc_exec_decline(struct oc_group *group, int err)
{
	static const struct oc_bind nothing;
	struct oc_op op;

	issue(&op, group, NULL, &nothing);
	op.err = err;
	oc_exec_wait(&op);
}
