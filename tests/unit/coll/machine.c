// SPDX-License-Identifier: BSD-3-Clause
#include "machine.h"
#include "../../random.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POISON 0xe5
#define DELAY  40u /* turns a rank may come late */
#define PIECES 4u  /* a copy is cut in at most about so many */

enum outcome { BLOCKED, MOVED, DONE, FAILED };

static uint32_t below(struct machine *m, uint32_t bound)
{
	return (uint32_t)((random_next(&m->random) >> 32) * bound >> 32);
}

static enum outcome __attribute__((format(printf, 2, 3)))
fail(struct machine *m, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(m->why, sizeof(m->why), fmt, args);
	va_end(args);
	return FAILED;
}

static bool has_posted(const struct machine_rank *rank, uint32_t event)
{
	return rank->events[event / 64] >> event % 64 & 1;
}

static bool is_ready(const struct machine_rank *rank)
{
	return has_posted(rank, OC_EVENT_READY);
}

/* Whether rank @me may touch @len bytes at @ref now. */
static bool allowed(struct machine *m, uint32_t me, struct oc_ref ref, uint64_t len, bool write)
{
	static const char *const names[MACHINE_SLOTS] = {"send", "receive", "scratch"};
	struct machine_rank *owner = &m->rank[ref.rank];
	const char *wrong = NULL;

	if (ref.off > owner->bytes[ref.slot] || len > owner->bytes[ref.slot] - ref.off)
		wrong = "beyond its end";
	else if (write && ref.slot == OC_SLOT_SEND)
		wrong = "to write it";
	else if (ref.rank != me && !is_ready(owner))
		wrong = "before its owner is READY";
	else if (ref.rank != me && owner->ended &&
		 !(owner->send == MACHINE_EAGER && ref.slot == OC_SLOT_SEND))
		wrong = "after its owner has left";
	else if (ref.rank != me && ref.slot == OC_SLOT_RECV && !owner->reachable)
		wrong = "out of reach";
	if (wrong)
		fail(m, "rank %u touches the %s slot of %u %s", me, names[ref.slot], ref.rank,
		     wrong);
	return !wrong;
}

/* Where @me reads @ref; NULL while it is not staged yet. */
static const uint8_t *source(struct machine *m, uint32_t me, struct oc_ref ref)
{
	struct machine_rank *owner = &m->rank[ref.rank];

	if (ref.rank != me && ref.slot == OC_SLOT_SEND && owner->send != MACHINE_LIVE)
		return owner->copy ? owner->copy + ref.off : NULL;
	return owner->slot[ref.slot] + ref.off;
}

static bool look_up(struct machine *m, uint32_t me, struct oc_ref *ref)
{
	struct oc_ref entry = oc_ref(OC_SLOT_SCRATCH, ref->rank, me * sizeof(uint64_t));

	if (!allowed(m, me, entry, sizeof(uint64_t), false))
		return false;
	memcpy(&ref->off, source(m, me, entry), sizeof(ref->off));
	return true;
}

/* Whether the other end of a pair, which is there, has the same length. */
static enum outcome met(struct machine *m, uint32_t me, const struct oc_step *step)
{
	uint64_t len = m->rank[step->peer].plan->shape.bytes;

	if (step->src.slot == OC_SLOT_SCRATCH) {
		/* Tables outlast their owner's plan. */
		if (step->src.off + sizeof(len) > m->rank[step->peer].bytes[OC_SLOT_SCRATCH])
			return fail(m, "rank %u looks behind the table of %u", me, step->peer);
		memcpy(&len, m->rank[step->peer].slot[OC_SLOT_SCRATCH] + step->src.off,
		       sizeof(len));
	}
	return len == step->len ? DONE
				: fail(m, "rank %u and %u do not agree on %llu bytes", me,
				       step->peer, (unsigned long long)step->len);
}

static uint64_t piece(struct machine *m, uint64_t left, uint64_t granule)
{
	uint64_t units = left / granule;

	return units <= 1 ? left : (1 + below(m, (uint32_t)(units / PIECES + 1))) * granule;
}

/* A piece of the same copy to every receive slot but the source itself. */
static enum outcome do_copy_all(struct machine *m, uint32_t me, const struct oc_step *step,
				uint64_t *pos)
{
	uint64_t len = piece(m, step->len - *pos, 1);
	const uint8_t *from = m->rank[step->src.rank].slot[step->src.slot] + step->src.off + *pos;

	if (!allowed(m, me, step->src, step->len, false))
		return FAILED;
	for (uint32_t r = 0; r < m->size; r++) {
		struct oc_ref dst = oc_ref(step->dst.slot, r, step->dst.off);
		uint8_t *to = m->rank[r].slot[dst.slot] + dst.off + *pos;

		if (!allowed(m, me, dst, step->len, true))
			return FAILED;
		if (to != from)
			memcpy(to, from, len);
	}
	*pos += len;
	return *pos == step->len ? DONE : MOVED;
}

static enum outcome do_copy(struct machine *m, uint32_t me, const struct oc_step *step,
			    uint64_t *pos)
{
	struct oc_ref src = step->src, dst = step->dst;
	const uint8_t *from;
	uint64_t len;

	if (!step->len)
		return DONE;
	if (dst.rank == OC_RANK_ALL)
		return do_copy_all(m, me, step, pos);
	if ((step->flags & OC_STEP_SRC_INDEXED && !look_up(m, me, &src)) ||
	    (step->flags & OC_STEP_DST_INDEXED && !look_up(m, me, &dst)) ||
	    !allowed(m, me, src, step->len, false) || !allowed(m, me, dst, step->len, true))
		return FAILED;
	from = source(m, me, src);
	if (!from)
		return BLOCKED;
	len = piece(m, step->len - *pos, 1);
	memcpy(m->rank[dst.rank].slot[dst.slot] + dst.off + *pos, from + *pos, len);
	*pos += len;
	return *pos == step->len ? DONE : MOVED;
}

/* One operand more, of which there are *@n: BLOCKED while it is not staged yet. */
static enum outcome find_operand(struct machine *m, uint32_t me, struct oc_ref ref, uint64_t len,
				 const uint8_t **from, uint32_t *n)
{
	if (!allowed(m, me, ref, len, false))
		return FAILED;
	from[*n] = source(m, me, ref);
	return from[(*n)++] ? DONE : BLOCKED;
}

static enum outcome find_operands(struct machine *m, uint32_t me, const struct oc_step *step,
				  const uint8_t **from, uint32_t *n)
{
	const struct oc_ref *operands = oc_plan_operands(m->rank[me].plan) + step->operand;
	enum outcome outcome = DONE;

	for (uint32_t i = 0; i < step->noperands && outcome == DONE; i++) {
		struct oc_ref ref = operands[i];

		if (ref.rank != OC_RANK_ALL) {
			outcome = find_operand(m, me, ref, step->len, from, n);
			continue;
		}
		for (ref.rank = 0; ref.rank < m->size && outcome == DONE; ref.rank++)
			outcome = find_operand(m, me, ref, step->len, from, n);
	}
	return outcome;
}

static enum outcome do_calc(struct machine *m, uint32_t me, const struct oc_step *step,
			    uint64_t *pos)
{
	bool to_all = step->dst.rank == OC_RANK_ALL;
	const uint8_t *from[2 * MACHINE_RANKS];
	enum outcome outcome;
	uint32_t n = 0;
	uint64_t len;

	if (!step->len)
		return DONE;
	if (step->len % m->granule || step->dst.off % m->granule)
		return fail(m, "rank %u: a fold cuts an element", me);
	for (uint32_t r = 0; r < m->size; r++) {
		struct oc_ref dst =
			oc_ref(step->dst.slot, to_all ? r : step->dst.rank, step->dst.off);

		if (!allowed(m, me, dst, step->len, true))
			return FAILED;
	}
	outcome = find_operands(m, me, step, from, &n);
	if (outcome != DONE)
		return outcome;
	len = piece(m, step->len - *pos, m->granule);
	for (uint64_t i = *pos; i < *pos + len; i++) {
		uint8_t value = from[0][i];

		for (uint32_t k = 1; k < n; k++)
			value = machine_fold(value, from[k][i]);
		for (uint32_t r = 0; r < m->size; r++)
			if (to_all || r == step->dst.rank)
				m->rank[r].slot[step->dst.slot][step->dst.off + i] = value;
	}
	*pos += len;
	return *pos == step->len ? DONE : MOVED;
}

static enum outcome do_post(struct machine *m, uint32_t me, uint32_t event)
{
	if (has_posted(&m->rank[me], event))
		return fail(m, "rank %u posts event %u again", me, event);
	m->rank[me].events[event / 64] |= UINT64_C(1) << event % 64;
	return DONE;
}

/* Whether the step applies: DONE if not, BLOCKED if so. */
static enum outcome condition(struct machine *m, uint32_t me, const struct oc_step *step)
{
	bool direct = true;

	if (step->cond == OC_COND_ALWAYS)
		return BLOCKED;
	for (uint32_t r = 0; r < m->size; r++) {
		if (step->cond_rank != OC_RANK_ALL && step->cond_rank != r)
			continue;
		if (!is_ready(&m->rank[r]))
			return fail(m, "rank %u asks about rank %u before it is READY", me, r);
		direct = direct && m->rank[r].reachable;
	}
	return direct == (step->cond == OC_COND_DIRECT) ? BLOCKED : DONE;
}

static enum outcome do_step(struct machine *m, uint32_t me, uint32_t i)
{
	struct machine_rank *rank = &m->rank[me];
	const struct oc_step *step = &oc_plan_steps(rank->plan)[i];
	enum outcome outcome = condition(m, me, step);

	if (outcome != BLOCKED)
		return outcome;
	switch (step->kind) {
	case OC_STEP_COPY:
		return do_copy(m, me, step, &rank->pos[i]);
	case OC_STEP_CALC:
		return do_calc(m, me, step, &rank->pos[i]);
	case OC_STEP_STAGE:
		if (rank->send == MACHINE_STAGED && !rank->copy) {
			rank->copy = malloc(rank->bytes[OC_SLOT_SEND] + 1);
			if (!rank->copy)
				return fail(m, "out of memory");
			if (rank->bytes[OC_SLOT_SEND])
				memcpy(rank->copy, rank->slot[OC_SLOT_SEND],
				       rank->bytes[OC_SLOT_SEND]);
			/* Left out: nobody may want it. */
			memset(rank->copy + step->src.off, POISON, step->len);
		}
		return DONE;
	case OC_STEP_POST:
		return do_post(m, me, step->event);
	case OC_STEP_WAIT:
		if (!has_posted(&m->rank[step->peer], step->event))
			return BLOCKED;
		return step->flags & OC_STEP_PAIR ? met(m, me, step) : DONE;
	case OC_STEP_SEND:
		if (rank->state[i] != 2) {
			rank->state[i] = 2;
			outcome = do_post(m, me, step->event);
			return outcome == DONE ? MOVED : outcome;
		}
		return has_posted(&m->rank[step->peer], step->reply) ? DONE : BLOCKED;
	case OC_STEP_RECV:
		if (!has_posted(&m->rank[step->peer], step->event))
			return BLOCKED;
		outcome = do_copy(m, me, step, &rank->pos[i]);
		return outcome == DONE ? do_post(m, me, step->reply) : outcome;
	}
	return fail(m, "rank %u: step %u of no kind", me, i);
}

static bool dependencies_done(const struct machine_rank *rank, const struct oc_step *step)
{
	for (uint32_t e = 0; e < step->nedges; e++)
		if (rank->state[oc_plan_edges(rank->plan)[step->edge + e]] != 1)
			return false;
	return true;
}

/* What an eager plan stages, in memory that holds nothing else of use. */
static bool stage_eager(struct machine_rank *rank)
{
	size_t bytes = rank->bytes[OC_SLOT_SEND];

	rank->copy = malloc(bytes + 1);
	if (!rank->copy)
		return false;
	memset(rank->copy, POISON, bytes + 1);
	for (uint32_t i = 0; i < rank->plan->nsteps; i++) {
		const struct oc_step *step = &oc_plan_steps(rank->plan)[i];

		if (step->kind == OC_STEP_STAGE)
			memcpy(rank->copy + step->src.off, rank->slot[OC_SLOT_SEND] + step->src.off,
			       step->len);
	}
	return true;
}

static enum outcome leave(struct machine *m, uint32_t me)
{
	struct machine_rank *rank = &m->rank[me];
	size_t bytes = rank->bytes[OC_SLOT_RECV];

	if (rank->expect)
		for (size_t i = 0; i < bytes; i++)
			if (rank->slot[OC_SLOT_RECV][i] != rank->expect[i])
				return fail(m, "rank %u leaves with byte %zu of %zu wrong", me, i,
					    bytes);
	/* The caller may do as it likes with its buffers now. */
	for (int s = 0; s < OC_SLOT_SCRATCH; s++)
		if (rank->bytes[s])
			memset(rank->slot[s], POISON, rank->bytes[s]);
	rank->ended = true;
	return DONE;
}

/* One turn of one rank. BLOCKED if it can do nothing. */
static enum outcome turn(struct machine *m, uint32_t me)
{
	struct machine_rank *rank = &m->rank[me];
	uint32_t n = rank->plan->nsteps;
	uint32_t from = n ? below(m, n) : 0;
	uint32_t left = 0;

	if (rank->ended)
		return BLOCKED;
	if (rank->delay) {
		rank->delay--;
		return MOVED;
	}
	if (!is_ready(rank)) {
		if (rank->send == MACHINE_EAGER && !stage_eager(rank))
			return fail(m, "out of memory");
		return do_post(m, me, OC_EVENT_READY) == DONE ? MOVED : FAILED;
	}
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = (from + k) % n;
		enum outcome outcome;

		if (rank->state[i] == 1)
			continue;
		left++;
		if (!dependencies_done(rank, &oc_plan_steps(rank->plan)[i]))
			continue;
		outcome = do_step(m, me, i);
		if (outcome == DONE)
			rank->state[i] = 1;
		if (outcome != BLOCKED)
			return outcome == FAILED ? FAILED : MOVED;
	}
	return left ? BLOCKED : leave(m, me);
}

bool machine_run(struct machine *m)
{
	bool good = true;
	uint32_t blocked = 0;

	for (uint32_t r = 0; r < m->size; r++) {
		struct machine_rank *rank = &m->rank[r];

		rank->copy = NULL;
		memset(rank->events, 0, sizeof(rank->events));
		rank->ended = false;
		rank->delay = below(m, 2) ? below(m, DELAY) : 0;
		rank->state = calloc(rank->plan->nsteps + 1, sizeof(*rank->state));
		rank->pos = calloc(rank->plan->nsteps + 1, sizeof(*rank->pos));
		if (!rank->state || !rank->pos)
			good = fail(m, "out of memory") != FAILED;
	}
	for (uint32_t first = below(m, m->size); good && blocked < m->size; blocked++) {
		enum outcome outcome = turn(m, (first + blocked) % m->size);

		good = outcome != FAILED;
		if (outcome == BLOCKED)
			continue;
		first = below(m, m->size);
		blocked = UINT32_MAX; /* 0 in the next turn */
	}
	for (uint32_t r = 0; good && r < m->size; r++)
		if (!m->rank[r].ended)
			good = fail(m, "rank %u waits for ever", r) != FAILED;
	for (uint32_t r = 0; r < m->size; r++) {
		free(m->rank[r].copy);
		free(m->rank[r].state);
		free(m->rank[r].pos);
	}
	return good;
}
