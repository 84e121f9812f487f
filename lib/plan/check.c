// SPDX-License-Identifier: BSD-3-Clause
#include "plan/check.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Sums of two of these, and addresses in a slot of so many, do not overflow. */
#define BYTES_MAX (UINT64_MAX >> 2)

/* What must be known of the steps before. */
struct walk {
	const struct oc_plan *plan;
	uint64_t edges; /* seen so far */
	uint64_t operands;
	uint64_t posted[OC_EVENT_END / 64]; /* events; READY is, by the executor */
	bool staged;
};

/* What is wrong, or NULL. */
static const char *header_fault(const struct oc_plan *plan, size_t size)
{
	/* In 64 bits none of this overflows. */
	uint64_t steps = (uint64_t)plan->nsteps * sizeof(struct oc_step);
	uint64_t operands = (uint64_t)plan->noperands * sizeof(struct oc_ref);
	uint64_t edges = (uint64_t)plan->nedges * sizeof(uint32_t);

	if (plan->magic != OC_PLAN_MAGIC)
		return "no plan";
	if (plan->version != OC_PLAN_VERSION)
		return "a version that is not known";
	if (plan->reserved || plan->reserved2)
		return "reserved members are not zero";
	if (plan->size != size)
		return "a size that is not its own";
	if (plan->steps != sizeof(*plan) || plan->operands != plan->steps + steps ||
	    plan->edges != plan->operands + operands || size != plan->edges + edges)
		return "arrays that do not fill it";
	return NULL;
}

static const char *shape_fault(const struct oc_shape *shape)
{
	if (shape->rank >= shape->size || shape->root >= shape->size)
		return "a rank out of range";
	if (shape->in_place > 1 || shape->stream > 1 || shape->eager > 1)
		return "neither true nor false";
	return shape->bytes > BYTES_MAX ? "more bytes than there can be" : NULL;
}

static bool is_none(const struct oc_ref *ref)
{
	return !ref->slot && !ref->rank && !ref->reserved && !ref->off;
}

/* Of a ref that is one: that its bytes can be. */
static bool is_slot(const struct oc_ref *ref, uint64_t len)
{
	return ref->slot < OC_SLOT_COUNT && !ref->reserved && ref->off <= BYTES_MAX &&
	       len <= BYTES_MAX;
}

static bool has_peer(const struct oc_step *step)
{
	return step->kind == OC_STEP_WAIT || step->kind == OC_STEP_SEND ||
	       step->kind == OC_STEP_RECV;
}

static bool has_copy(const struct oc_step *step)
{
	return step->kind == OC_STEP_COPY || step->kind == OC_STEP_RECV;
}

static bool posts(const struct oc_step *step)
{
	return step->kind == OC_STEP_POST || step->kind == OC_STEP_SEND ||
	       step->kind == OC_STEP_RECV;
}

/* The event a step posts, or 0. */
static uint32_t posted(const struct oc_step *step)
{
	if (step->kind == OC_STEP_POST || step->kind == OC_STEP_SEND)
		return step->event;
	return step->kind == OC_STEP_RECV ? step->reply : 0;
}

/* The event a step waits for, or 0. */
static uint32_t awaited(const struct oc_step *step)
{
	if (step->kind == OC_STEP_WAIT || step->kind == OC_STEP_RECV)
		return step->event;
	return step->kind == OC_STEP_SEND ? step->reply : 0;
}

static uint16_t flags_of(const struct oc_step *step)
{
	switch (step->kind) {
	case OC_STEP_COPY:
		return OC_STEP_SRC_INDEXED | OC_STEP_DST_INDEXED | OC_STEP_OUT;
	case OC_STEP_RECV:
		return OC_STEP_SRC_INDEXED | OC_STEP_DST_INDEXED;
	case OC_STEP_CALC:
		return OC_STEP_NEAR;
	case OC_STEP_WAIT:
		return step->flags & OC_STEP_PAIR ? OC_STEP_PAIR | OC_STEP_OUT : 0;
	default:
		return 0;
	}
}

/* A place to write: any receive slot, or one's own scratch slot. */
static const char *target_fault(const struct oc_shape *shape, const struct oc_step *step)
{
	const struct oc_ref *dst = &step->dst;
	bool own = dst->rank == shape->rank;

	if (!is_slot(dst, step->len))
		return "a target that is no slot";
	if (dst->rank >= shape->size && dst->rank != OC_RANK_ALL)
		return "a target outside the group";
	if (dst->slot != OC_SLOT_RECV && !(own && dst->slot == OC_SLOT_SCRATCH))
		return "a target that may not be written";
	return NULL;
}

static const char *copy_fault(const struct oc_shape *shape, const struct oc_step *step)
{
	const struct oc_ref *src = &step->src, *dst = &step->dst;
	const char *fault = target_fault(shape, step);

	if (fault)
		return fault;
	if (!is_slot(src, step->len) || src->rank >= shape->size)
		return "a source that is no slot of the group";
	if ((step->flags & OC_STEP_SRC_INDEXED && src->off) ||
	    (step->flags & OC_STEP_DST_INDEXED && dst->off))
		return "an offset where a table has it";
	if (dst->rank == OC_RANK_ALL) {
		if (step->kind != OC_STEP_COPY || step->flags)
			return "a copy to all that does more";
		if (src->rank != shape->rank && src->slot != OC_SLOT_RECV)
			return "a copy to all from a slot that may not be memory";
	} else if (dst->rank != shape->rank && src->rank != shape->rank) {
		return "a copy between two others";
	}
	return NULL;
}

static const char *calc_fault(const struct oc_plan *plan, const struct oc_step *step)
{
	const struct oc_shape *shape = &plan->shape;
	const struct oc_ref *operand = oc_plan_operands(plan) + step->operand;
	const char *fault = target_fault(shape, step);
	uint64_t count = 0;

	if (fault)
		return fault;
	if (shape->granule && step->len % shape->granule)
		return "a fold that cuts an element";
	for (uint32_t i = 0; i < step->noperands; i++) {
		if (!is_slot(&operand[i], step->len) ||
		    (operand[i].rank >= shape->size && operand[i].rank != OC_RANK_ALL))
			return "an operand that is no slot of the group";
		count += operand[i].rank == OC_RANK_ALL ? shape->size : 1;
	}
	if (!count || count > OC_OPERANDS_MAX)
		return "no operands, or too many";
	return is_none(&step->src) ? NULL : "a source beside its operands";
}

static const char *stage_fault(struct walk *walk, const struct oc_step *step)
{
	const struct oc_shape *shape = &walk->plan->shape;
	bool again = walk->staged;

	walk->staged = true;
	if (!is_slot(&step->src, step->len) || step->src.slot || step->src.rank ||
	    !is_none(&step->dst))
		return "what is staged is not told by an offset and a length";
	if (shape->eager)
		return step->src.off + step->len > OC_EAGER_MAX ? "too much staged" : NULL;
	return again ? "staged twice" : NULL;
}

static const char *wait_fault(const struct oc_step *step)
{
	if (!is_none(&step->dst))
		return "a wait with a target";
	if (!(step->flags & OC_STEP_PAIR))
		return step->len || !is_none(&step->src) ? "a wait for bytes" : NULL;
	if (!is_none(&step->src) &&
	    (!is_slot(&step->src, step->len) || step->src.slot != OC_SLOT_SCRATCH ||
	     step->src.rank != step->peer))
		return "a length that is not in the peer's table";
	return NULL;
}

/* What is particular to the kind of step. */
static const char *kind_fault(struct walk *walk, const struct oc_step *step)
{
	switch (step->kind) {
	case OC_STEP_COPY:
	case OC_STEP_RECV:
		return copy_fault(&walk->plan->shape, step);
	case OC_STEP_CALC:
		return calc_fault(walk->plan, step);
	case OC_STEP_STAGE:
		return stage_fault(walk, step);
	case OC_STEP_WAIT:
		return wait_fault(step);
	case OC_STEP_POST:
	case OC_STEP_SEND:
		return step->len || !is_none(&step->src) || !is_none(&step->dst) ? "bytes in a post"
										 : NULL;
	default:
		return "a step of no kind";
	}
}

static const char *event_fault(struct walk *walk, const struct oc_step *step)
{
	uint32_t post = posted(step), wait = awaited(step);

	if ((!posts(step) && !has_peer(step) && step->event) ||
	    (!(posts(step) && has_peer(step)) && step->reply))
		return "an event that is of no use";
	if (has_peer(step) && (wait < OC_EVENT_READY || wait >= OC_EVENT_END))
		return "a wait for what is no event";
	if (!posts(step))
		return NULL;
	if (post < OC_EVENT_READY || post >= OC_EVENT_END)
		return "a post of what is no event";
	if (walk->posted[post / 64] >> post % 64 & 1)
		return "an event posted twice";
	walk->posted[post / 64] |= UINT64_C(1) << post % 64;
	return NULL;
}

static const char *arrays_fault(struct walk *walk, uint32_t i)
{
	const struct oc_plan *plan = walk->plan;
	const struct oc_step *step = &oc_plan_steps(plan)[i];

	if (step->edge != walk->edges || step->nedges > plan->nedges - walk->edges)
		return "edges that are not its own";
	if (step->operand != walk->operands || step->noperands > plan->noperands - walk->operands ||
	    (step->noperands && step->kind != OC_STEP_CALC))
		return "operands that are not its own";
	walk->edges += step->nedges;
	walk->operands += step->noperands;
	for (uint32_t e = 0; e < step->nedges; e++)
		if (oc_plan_edges(plan)[step->edge + e] >= i)
			return "an edge does not point backwards";
	return NULL;
}

static const char *step_fault(struct walk *walk, uint32_t i)
{
	const struct oc_shape *shape = &walk->plan->shape;
	const struct oc_step *step = &oc_plan_steps(walk->plan)[i];
	const char *fault = arrays_fault(walk, i);

	if (fault)
		return fault;
	if (step->flags & ~flags_of(step))
		return "flags that are of no use";
	if (step->cond > OC_COND_INDIRECT || (!step->cond && step->cond_rank) ||
	    (step->cond_rank >= shape->size && step->cond_rank != OC_RANK_ALL))
		return "a condition on no rank";
	if (has_peer(step) ? step->peer >= shape->size || step->peer == shape->rank : step->peer)
		return "a peer out of range or oneself";
	fault = event_fault(walk, step);
	return fault ? fault : kind_fault(walk, step);
}

static void need_of(const struct oc_ref *ref, uint64_t len, uint32_t rank, uint64_t *need)
{
	if ((ref->rank == rank || ref->rank == OC_RANK_ALL) && len &&
	    ref->off + len > need[ref->slot])
		need[ref->slot] = ref->off + len;
}

void oc_plan_needs(const struct oc_plan *plan, uint64_t need[OC_SLOT_COUNT])
{
	const struct oc_step *steps = oc_plan_steps(plan);
	uint32_t rank = plan->shape.rank;

	memset(need, 0, OC_SLOT_COUNT * sizeof(*need));
	for (uint32_t i = 0; i < plan->nsteps; i++) {
		struct oc_step step = steps[i];
		const struct oc_ref *operand = oc_plan_operands(plan) + step.operand;

		if (step.kind == OC_STEP_STAGE)
			step.src.rank = (uint16_t)rank;
		if (step.kind == OC_STEP_STAGE ||
		    (has_copy(&step) && !(step.flags & OC_STEP_SRC_INDEXED)))
			need_of(&step.src, step.len, rank, need);
		for (uint32_t k = 0; k < step.noperands; k++)
			need_of(&operand[k], step.len, rank, need);
		if (step.kind == OC_STEP_CALC ||
		    (has_copy(&step) && !(step.flags & OC_STEP_DST_INDEXED)))
			need_of(&step.dst, step.len, rank, need);
	}
}

static const char *plan_fault(struct walk *walk, uint32_t *step)
{
	const struct oc_plan *plan = walk->plan;
	uint64_t need[OC_SLOT_COUNT];

	for (*step = 0; *step < plan->nsteps; ++*step) {
		const char *fault = step_fault(walk, *step);

		if (fault)
			return fault;
	}
	if (walk->edges != plan->nedges || walk->operands != plan->noperands)
		return "edges or operands of no step";
	oc_plan_needs(plan, need);
	return memcmp(need, plan->need, sizeof(need)) ? "it says that it needs something else"
						      : NULL;
}

int oc_plan_check(const void *bytes, size_t size, char *why, size_t len)
{
	struct walk walk = {.plan = bytes, .posted = {1u << OC_EVENT_READY}};
	const char *fault;
	uint32_t step = 0;

	if (size < sizeof(*walk.plan) || (uintptr_t)bytes % _Alignof(struct oc_plan)) {
		snprintf(why, len, "%zu bytes at %p", size, bytes);
		return -EINVAL;
	}
	fault = header_fault(bytes, size);
	if (!fault)
		fault = shape_fault(&walk.plan->shape);
	if (fault) {
		snprintf(why, len, "%s", fault);
		return -EINVAL;
	}
	fault = plan_fault(&walk, &step);
	if (fault)
		snprintf(why, len, "step %u: %s", step, fault);
	return fault ? -EINVAL : 0;
}
