// SPDX-License-Identifier: BSD-3-Clause
/*
 * The inline executor: the calling thread runs its plan, doing whichever step
 * is ready, and waits only when none is. How it gets at slots: op.c.
 */
#include "exec/inline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/copy.h"
#include "exec/op.h"
#include "exec/pair.h"
#include "exec/remote.h"
#include "exec/slot.h"

/* Bytes of a slot, wherever it is, to memory here. */
static int read_slot(struct oc_op *op, void *dst, struct oc_ref src, size_t len)
{
	if (src.slot == OC_SLOT_SEND)
		return oc_slot_read(op, dst, src.rank, src.off, len, &op->stores);
	return oc_remote_get(op, dst, src.rank, src.slot, src.off, len);
}

/* The offset @rank's table gives for this rank. */
static int indexed(struct oc_op *op, uint32_t rank, uint64_t *off)
{
	return oc_pair_look_up(op, oc_ref(OC_SLOT_SCRATCH, rank, op->group->rank * sizeof(*off)),
			       off);
}

/* To a receive slot that is no memory here; @from is NULL if the source is none
 * either, and then a buffer is. */
static int write_slot(struct oc_op *op, struct oc_ref dst, struct oc_ref src, const char *from,
		      size_t len)
{
	char *temp;
	int err = 0;

	if (from)
		return oc_remote_put(op, dst.rank, dst.off, from, len);
	temp = malloc(OC_OP_CHUNK);
	if (!temp)
		return -ENOMEM;
	while (len && !err) {
		size_t part = len < OC_OP_CHUNK ? len : OC_OP_CHUNK;

		err = read_slot(op, temp, src, part);
		if (!err)
			err = oc_remote_put(op, dst.rank, dst.off, temp, part);
		src.off += part;
		dst.off += part;
		len -= part;
	}
	free(temp);
	return err;
}

static int move(struct oc_op *op, struct oc_ref dst, struct oc_ref src, size_t len)
{
	bool sent = src.rank != op->group->rank && src.slot == OC_SLOT_SEND;
	const char *from = sent ? NULL : oc_slot_at(op, src, len);
	char *to = oc_slot_at(op, dst, len);

	if (!to)
		return write_slot(op, dst, src, from, len);
	if (!from)
		return read_slot(op, to, src, len);
	if (to == from)
		return 0;
	oc_store_policy_copy(&op->stores, to, from, len);
	/* One of them is a slot of this rank. */
	oc_op_count(op, src.slot, src.rank, len);
	oc_op_count(op, dst.slot, dst.rank, len);
	return 0;
}

/* The same bytes to every rank, read once if all slots are memory here. */
static int copy_all(struct oc_op *op, const struct oc_step *step)
{
	struct oc_group *group = op->group;
	const char *from = oc_slot_at(op, step->src, step->len);
	struct oc_ref ref = step->dst;
	void *dst[OC_MAX_RANKS];
	bool memory = from;
	int err = 0;

	for (uint32_t p = 0; p < group->size; p++) {
		ref.rank = (uint16_t)p;
		dst[p] = oc_slot_at(op, ref, step->len);
		memory = memory && dst[p];
	}
	if (memory) {
		uint64_t since = oc_store_policy_clock(&op->stores);

		oc_copy_each(dst, group->size, from, step->len, op->stores.past);
		oc_store_policy_add(&op->stores, since, step->len * group->size);
	}
	for (uint32_t p = 0; p < group->size && !err; p++) {
		ref.rank = (uint16_t)p;
		if (memory)
			oc_op_count(op, ref.slot, p, step->len);
		else if (!memory && (p != step->src.rank || step->src.slot != ref.slot))
			err = move(op, ref, step->src, step->len);
	}
	return err;
}

static int run_copy(struct oc_op *op, const struct oc_step *step)
{
	struct oc_ref src = step->src, dst = step->dst;
	int err = 0;

	if (!step->len)
		return 0;
	if (dst.rank == OC_RANK_ALL)
		return copy_all(op, step);
	if (step->flags & OC_STEP_SRC_INDEXED)
		err = indexed(op, src.rank, &src.off);
	if (!err && step->flags & OC_STEP_DST_INDEXED)
		err = indexed(op, dst.rank, &dst.off);
	return err ? err : move(op, dst, src, step->len);
}

/* Collects the addresses a CALC folds, if all of them are memory now. */
static bool calc_sources(struct oc_op *op, const struct oc_step *step, const void **src)
{
	struct oc_group *group = op->group;

	for (uint32_t p = 0; p < group->size; p++) {
		if (p == group->rank)
			src[p] = (const char *)op->bind->send + step->src.off;
		else
			src[p] = oc_slot_send_at(op, p, step->src.off, step->len);
		if (!src[p])
			return false;
	}
	return true;
}

/* An operand of [off, off + len) in memory: where it is, or read to @temp. */
static int calc_operand(struct oc_op *op, uint32_t peer, uint64_t off, size_t len, char *temp,
			const void **src)
{
	struct oc_store_turn ordinary = {0}; /* it is read again at once */
	const char *at;
	int err = oc_slot_await_send(op, peer, off, len, &at);

	*src = at ? at : temp;
	if (at)
		oc_op_count(op, OC_SLOT_SEND, peer, len);
	return err || at ? err : oc_slot_read(op, temp, peer, off, len, &ordinary);
}

/* The operands, from @src on in rank order, to every destination. */
static void fold_memory(struct oc_op *op, void **dst, uint32_t ndst, const void **src, size_t len)
{
	uint64_t since = oc_store_policy_clock(&op->stores);

	oc_calc_fold(op->bind->op, op->bind->type, dst, ndst, src, op->group->size,
		     len / oc_type_size(op->bind->type), op->stores.past);
	oc_store_policy_add(&op->stores, since, len * ndst);
}

/* Folds chunk by chunk, following what is staged and reading the rest. */
static int calc_chunked(struct oc_op *op, const struct oc_step *step, void **dst, uint32_t ndst,
			const void **src)
{
	struct oc_group *group = op->group;
	size_t elem = oc_type_size(op->bind->type);
	size_t chunk = OC_OP_CHUNK / elem * elem;
	char *temp = malloc(group->size * chunk);
	int err = 0;

	if (!temp)
		return -ENOMEM;
	for (size_t off = 0; off < step->len; off += chunk) {
		size_t len = step->len - off < chunk ? step->len - off : chunk;

		for (uint32_t p = 0; p < group->size && !err; p++) {
			if (p == group->rank)
				src[p] = (const char *)op->bind->send + step->src.off + off;
			else
				err = calc_operand(op, p, step->src.off + off, len,
						   temp + p * chunk, &src[p]);
		}
		if (err)
			break;
		fold_memory(op, dst, ndst, src, len);
		for (uint32_t d = 0; d < ndst; d++)
			dst[d] = (char *)dst[d] + len;
	}
	free(temp);
	return err;
}

static int fold(struct oc_op *op, const struct oc_step *step, void **dst, uint32_t ndst)
{
	struct oc_group *group = op->group;
	const void *src[OC_MAX_RANKS];

	if (!calc_sources(op, step, src))
		return calc_chunked(op, step, dst, ndst, src);
	fold_memory(op, dst, ndst, src, step->len);
	for (uint32_t p = 0; p < group->size; p++)
		oc_op_count(op, OC_SLOT_SEND, p, step->len);
	return 0;
}

/* Folds into a buffer and takes that to every slot, some of which are no memory
 * here. */
static int fold_away(struct oc_op *op, const struct oc_step *step, void **dst, uint32_t ndst)
{
	void *temp = malloc(step->len), *to = temp;
	int err = temp ? fold(op, step, &to, 1) : -ENOMEM;

	for (uint32_t d = 0; d < ndst && !err; d++) {
		uint32_t rank = ndst > 1 ? d : step->dst.rank;

		if (!dst[d]) {
			err = oc_remote_put(op, rank, step->dst.off, temp, step->len);
			continue;
		}
		oc_store_policy_copy(&op->stores, dst[d], temp, step->len);
		oc_op_count(op, step->dst.slot, rank, step->len);
	}
	free(temp);
	return err;
}

/* Folds straight into the slots, which are all memory here. */
static int fold_here(struct oc_op *op, const struct oc_step *step, void **dst, uint32_t ndst)
{
	int err = fold(op, step, dst, ndst);

	for (uint32_t d = 0; d < ndst; d++)
		oc_op_count(op, step->dst.slot, ndst > 1 ? d : step->dst.rank, step->len);
	return err;
}

static int run_calc(struct oc_op *op, const struct oc_step *step)
{
	uint32_t ndst = step->dst.rank == OC_RANK_ALL ? op->group->size : 1;
	void *dst[OC_MAX_RANKS];
	bool memory = true;
	int err = 0;

	if (!step->len)
		return 0;
	if (step->dst.slot == OC_SLOT_SCRATCH)
		err = oc_slot_scratch(op);
	if (err)
		return err;
	for (uint32_t d = 0; d < ndst; d++) {
		struct oc_ref ref = step->dst;

		if (ref.rank == OC_RANK_ALL)
			ref.rank = (uint16_t)d;
		dst[d] = oc_slot_at(op, ref, step->len);
		memory = memory && dst[d];
	}
	return memory ? fold_here(op, step, dst, ndst) : fold_away(op, step, dst, ndst);
}

static bool is_direct(struct oc_op *op, uint32_t peer)
{
	return oc_line_flags(oc_group_line(op->group, peer)) & OC_BOARD_RECV_OPEN;
}

/* Asked only when every rank is READY; the answer holds for the operation. */
static bool all_direct(struct oc_op *op)
{
	bool direct = true;

	if (op->all_direct < 0) {
		for (uint32_t p = 0; p < op->group->size && direct; p++)
			direct = is_direct(op, p);
		op->all_direct = direct;
	}
	return op->all_direct;
}

static bool applies(struct oc_op *op, const struct oc_step *step)
{
	bool direct;

	if (op->parted && oc_pair_is_parted(op, step))
		return false;
	if (step->cond == OC_COND_ALWAYS)
		return true;
	direct = step->cond_rank == OC_RANK_ALL ? all_direct(op) : is_direct(op, step->cond_rank);
	return direct == (step->cond == OC_COND_DIRECT);
}

static bool deps_done(const struct oc_op *op, const struct oc_step *step)
{
	const uint32_t *edges = oc_plan_edges(op->plan) + step->edge;

	for (uint32_t e = 0; e < step->nedges; e++)
		if (op->group->done[edges[e]] != 1)
			return false;
	return true;
}

static bool reached(struct oc_op *op, uint32_t peer, uint32_t phase)
{
	if (!oc_group_reached(op->group, peer, phase))
		return false;
	op->err = oc_op_failure(op, oc_group_line(op->group, peer));
	if (!op->err && !op->bind->pair &&
	    oc_group_line(op->group, peer)->bytes != op->plan->shape.bytes)
		op->err = -EMSGSIZE;
	return true;
}

/* Whether the step is done now. @state keeps how far a SEND or RECV has come:
 * 0 not begun, 2 posted. */
static bool run_step(struct oc_op *op, const struct oc_step *step, uint8_t *state)
{
	if (!applies(op, step))
		return true;
	switch (step->kind) {
	case OC_STEP_COPY:
		op->err = run_copy(op, step);
		return true;
	case OC_STEP_CALC:
		op->err = run_calc(op, step);
		return true;
	case OC_STEP_STAGE:
		if (op->foreign && oc_line_flags(op->line) & OC_BOARD_SEND_STAGED)
			op->err = oc_slot_stage(op);
		return true;
	case OC_STEP_POST:
		oc_group_post(op->group, step->phase);
		return true;
	case OC_STEP_WAIT:
		return step->flags & OC_STEP_PAIR ? oc_pair_met(op, step)
						  : reached(op, step->peer, step->phase);
	case OC_STEP_SEND:
		if (*state != 2)
			oc_group_post(op->group, step->phase);
		*state = 2;
		return reached(op, step->peer, step->reply);
	case OC_STEP_RECV:
		if (!reached(op, step->peer, step->phase))
			return false;
		if (!op->err)
			op->err = run_copy(op, step);
		if (!op->err)
			oc_group_post(op->group, step->reply);
		return true;
	}
	return true;
}

/* A turn of waiting for the phase a step wants. */
static int wait_for(struct oc_op *op, const struct oc_step *step)
{
	struct oc_board_line *line = oc_group_line(op->group, step->peer);
	uint32_t phase = step->kind == OC_STEP_SEND ? step->reply : step->phase;
	uint64_t seen = atomic_load_explicit(&line->word, memory_order_relaxed);

	/* It may have come since the step was looked at, and left. */
	if (seen >= oc_board_word(op->group->seq, phase))
		return 0;
	return oc_op_idle(op, step->peer, line, seen);
}

/* Whether a step, in the state run_step() left it in or done (1), has a phase to post. */
static bool will_post(const struct oc_step *step, uint8_t state)
{
	return !state && (step->kind == OC_STEP_POST || step->kind == OC_STEP_RECV ||
			  step->kind == OC_STEP_SEND);
}

static int run_steps(struct oc_op *op)
{
	struct oc_group *group = op->group;
	const struct oc_plan *plan = op->plan;
	const struct oc_step *steps = oc_plan_steps(plan);
	uint8_t *done = group->done;
	uint32_t first = 0;

	memset(done, 0, plan->nsteps);
	while (first < plan->nsteps) {
		uint32_t stuck = plan->nsteps;
		bool moved = false;
		bool owes = false; /* an earlier step has a phase still to post */

		for (uint32_t i = first; i < plan->nsteps; i++) {
			const struct oc_step *step = &steps[i];

			if (done[i] == 1)
				continue;
			if (deps_done(op, step) && !(owes && will_post(step, done[i]))) {
				if (run_step(op, step, &done[i])) {
					done[i] = 1;
					moved = true;
				} else if (stuck == plan->nsteps) {
					stuck = i;
				}
				if (op->err)
					return op->err;
			}
			owes = owes || will_post(step, done[i]);
		}
		while (first < plan->nsteps && done[first] == 1)
			first++;
		if (moved) {
			group->wait.turns = 0;
		} else if (stuck < plan->nsteps) {
			int err = wait_for(op, &steps[stuck]);

			if (err)
				return err;
		}
	}
	return 0;
}

/* Whether the plan is for this place in such a group, and stays within what it is bound to. */
static bool fits(const struct oc_op *op)
{
	const struct oc_plan *plan = op->plan;
	const struct oc_bind *bind = op->bind;

	return plan->shape.size == op->group->size && plan->shape.rank == op->group->rank &&
	       plan->need[OC_SLOT_SEND] <= bind->send_bytes &&
	       plan->need[OC_SLOT_RECV] <= bind->recv_bytes &&
	       plan->need[OC_SLOT_SCRATCH] <= bind->scratch_bytes;
}

int oc_exec_inline(struct oc_group *group, const struct oc_plan *plan, const struct oc_bind *bind)
{
	struct oc_op op = {.group = group,
			   .plan = plan,
			   .bind = bind,
			   .all_direct = -1,
			   .send_place = -1,
			   .recv_place = -1};
	bool offered;
	int err = fits(&op) ? 0 : -EINVAL;

	op.line = oc_group_begin(group);
	oc_window_begin(&op.window, group->node);
	op.window.urgent = plan->shape.eager;
	if (plan->shape.stream)
		oc_store_policy_begin(&op.stores, &group->stores, plan->shape.coll,
				      bind->send_bytes + bind->recv_bytes);
	if (!err && plan->nsteps > group->done_bytes) {
		uint8_t *done = realloc(group->done, plan->nsteps);

		if (done) {
			group->done = done;
			group->done_bytes = plan->nsteps;
		} else {
			err = -ENOMEM;
		}
	}
	if (!err)
		err = oc_slot_bind(&op);
	if (!err)
		err = oc_slot_offer(&op);
	offered = !err;
	if (!err)
		err = run_steps(&op);
	if (err)
		oc_group_fail(group, err);
	else
		oc_store_policy_end(&op.stores);
	/* What peers read in an eager plan is none of the caller's. */
	if (err && offered && !plan->shape.eager)
		oc_group_quit(group);
	oc_group_end(group);
	oc_remote_end(&op);
	oc_window_end(&op.window);
	oc_slot_end(&op);
	return err;
}

void oc_exec_decline(struct oc_group *group, int err)
{
	oc_group_begin(group);
	oc_group_fail(group, err);
	oc_group_end(group);
}
