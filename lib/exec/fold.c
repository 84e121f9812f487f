// SPDX-License-Identifier: BSD-3-Clause
#include "exec/fold.h"

#include <errno.h>
#include <stdlib.h>

#include "bytes/calc.h"
#include "exec/slot.h"
#include "exec/transfer.h"

static size_t element_size(const struct oc_bind *bind)
{
	return bind->given ? bind->given->size : oc_type_size(bind->type);
}

/* The slots a CALC folds, one after the other. */
struct operands {
	const struct oc_ref *next;
	uint32_t left;
	uint32_t rank; /* of the next slot, if that is one of all */
	uint32_t size;
};

static struct operands operands_of(const struct oc_op *op, const struct oc_step *step)
{
	return (struct operands){.next = oc_plan_operands(op->plan) + step->operand,
				 .left = step->noperands,
				 .size = op->group->size};
}

static bool next_operand(struct operands *operands, struct oc_ref *ref)
{
	if (!operands->left)
		return false;
	*ref = *operands->next;
	if (ref->rank == OC_RANK_ALL) {
		ref->rank = (uint16_t)operands->rank++;
		if (operands->rank < operands->size)
			return true;
		operands->rank = 0;
	}
	operands->next++;
	operands->left--;
	return true;
}

static bool is_sent(const struct oc_op *op, const struct oc_ref *ref)
{
	return ref->slot == OC_SLOT_SEND && ref->rank != op->group->rank;
}

/* Finds out where the operands are and how many, if all of them are memory now. */
static bool find_operands(struct oc_op *op, const struct oc_step *step, const void **src,
			  uint32_t *n)
{
	struct operands operands = operands_of(op, step);
	struct oc_ref ref;

	for (*n = 0; next_operand(&operands, &ref); ++*n) {
		src[*n] = is_sent(op, &ref) ? oc_slot_send_at(op, ref.rank, ref.off, step->len)
					    : oc_slot_at(op, ref, step->len);
		if (!src[*n])
			return false;
	}
	return true;
}

/* An operand in memory: where it is, or read to @temp. */
static int await_operand(struct oc_op *op, const struct oc_ref *ref, size_t len, char *temp,
			 const void **src)
{
	struct oc_store_turn ordinary = {0}; /* it is read again at once */
	const char *at = NULL;
	int err = 0;

	if (is_sent(op, ref))
		err = oc_slot_await_send(op, ref->rank, ref->off, len, &at);
	else
		at = oc_slot_at(op, *ref, len);
	*src = at ? at : temp;
	if (at)
		oc_op_count(op, ref->slot, ref->rank, len);
	return err || at ? err : oc_transfer_read(op, temp, *ref, len, &ordinary);
}

/* @len bytes of the step's operands, from @src on in their order, to every destination. */
static int fold_memory(struct oc_op *op, const struct oc_step *step, void **dst, uint32_t ndst,
		       const void **src, uint32_t nsrc, size_t len)
{
	const struct oc_bind *bind = op->bind;
	uint64_t since = oc_store_policy_clock(&op->stores);
	bool past = op->stores.past && !(step->flags & OC_STEP_NEAR);
	size_t count = len / element_size(bind);
	int err = 0;

	if (bind->given)
		err = oc_calc_given_fold(bind->given, dst, ndst, src, nsrc, count, past);
	else
		oc_calc_fold(bind->op, bind->type, dst, ndst, src, nsrc, count, past);
	oc_store_policy_add(&op->stores, since, len * ndst);
	return err;
}

/* [done, done + part) of the operands, following what is staged and reading the rest to @temp,
 * where each has its chunk. */
static int await_operands(struct oc_op *op, const struct oc_step *step, size_t done, size_t part,
			  char *temp, size_t chunk, const void **src, uint32_t *n)
{
	struct operands operands = operands_of(op, step);
	struct oc_ref ref;
	int err = 0;

	for (*n = 0; !err && next_operand(&operands, &ref); ++*n) {
		ref.off += done;
		err = await_operand(op, &ref, part, temp + *n * chunk, &src[*n]);
	}
	return err;
}

/* What was folded of the step from byte @done on, to every slot. Those at @dst are memory here. */
static int deliver(struct oc_op *op, const struct oc_step *step, void **dst, uint32_t ndst,
		   size_t done, const void *result, size_t len)
{
	int err = 0;

	for (uint32_t d = 0; d < ndst && !err; d++) {
		uint32_t rank = ndst > 1 ? d : step->dst.rank;

		if (!dst[d]) {
			err = oc_transfer_write(op,
						oc_ref(step->dst.slot, rank, step->dst.off + done),
						result, len);
			continue;
		}
		oc_store_policy_copy(&op->stores, (char *)dst[d] + done, result, len);
		oc_op_count(op, step->dst.slot, rank, len);
	}
	return err;
}

/* Folds chunk by chunk: straight to where it goes or, @away, to a buffer that is delivered from. */
static int fold_chunked(struct oc_op *op, const struct oc_step *step, void **dst, uint32_t ndst,
			const void **src, bool away)
{
	size_t elem = element_size(op->bind);
	size_t chunk = OC_OP_CHUNK / elem * elem;
	struct operands operands = operands_of(op, step);
	struct oc_ref ref;
	uint32_t n = 0;
	char *temp;
	int err;

	while (next_operand(&operands, &ref))
		n++;
	temp = malloc((n + (size_t)away) * chunk);
	err = temp ? 0 : -ENOMEM;
	for (size_t done = 0; done < step->len && !err; done += chunk) {
		size_t part = step->len - done < chunk ? step->len - done : chunk;
		void *result = temp + n * chunk;

		err = await_operands(op, step, done, part, temp, chunk, src, &n);
		if (!err)
			err = fold_memory(op, step, away ? &result : dst, away ? 1 : ndst, src, n,
					  part);
		if (away && !err)
			err = deliver(op, step, dst, ndst, done, result, part);
		for (uint32_t d = 0; d < ndst && !away; d++)
			dst[d] = (char *)dst[d] + part;
	}
	free(temp);
	return err;
}

static int fold(struct oc_op *op, const struct oc_step *step, void **dst, uint32_t ndst)
{
	const void *src[OC_OPERANDS_MAX];
	struct operands operands = operands_of(op, step);
	struct oc_ref ref;
	uint32_t n;
	int err;

	if (!find_operands(op, step, src, &n))
		return op->err ? op->err : fold_chunked(op, step, dst, ndst, src, false);
	err = fold_memory(op, step, dst, ndst, src, n, step->len);
	while (!err && next_operand(&operands, &ref))
		oc_op_count(op, ref.slot, ref.rank, step->len);
	return err;
}

/* Into slots some of which are no memory here, or in pieces. */
static int fold_away(struct oc_op *op, const struct oc_step *step, void **dst, uint32_t ndst)
{
	const void *src[OC_OPERANDS_MAX];

	return fold_chunked(op, step, dst, ndst, src, true);
}

/* Folds straight into the slots, which are all memory here. */
static int fold_here(struct oc_op *op, const struct oc_step *step, void **dst, uint32_t ndst)
{
	int err = fold(op, step, dst, ndst);

	for (uint32_t d = 0; d < ndst; d++)
		oc_op_count(op, step->dst.slot, ndst > 1 ? d : step->dst.rank, step->len);
	return err;
}

/* Whether this rank's scratch slot takes part. */
static bool uses_scratch(const struct oc_op *op, const struct oc_step *step)
{
	const struct oc_ref *operand = oc_plan_operands(op->plan) + step->operand;
	bool uses = step->dst.slot == OC_SLOT_SCRATCH;

	for (uint32_t i = 0; i < step->noperands && !uses; i++)
		uses = operand[i].slot == OC_SLOT_SCRATCH &&
		       (operand[i].rank == op->group->rank || operand[i].rank == OC_RANK_ALL);
	return uses;
}

uint32_t oc_fold_awaited(const struct oc_op *op, const struct oc_step *step)
{
	struct operands operands = operands_of(op, step);
	struct oc_ref ref;

	while (step->len && next_operand(&operands, &ref))
		if (is_sent(op, &ref) && !oc_slot_is_ready(op, ref.rank, ref.off + step->len))
			return ref.rank;
	return op->group->rank;
}

int oc_fold_run(struct oc_op *op, const struct oc_step *step)
{
	uint32_t ndst = step->dst.rank == OC_RANK_ALL ? op->group->size : 1;
	void *dst[OC_MAX_RANKS];
	bool memory = true;
	int err = 0;

	if (!step->len)
		return 0;
	if (uses_scratch(op, step))
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
	if (op->err)
		return op->err;
	return memory ? fold_here(op, step, dst, ndst) : fold_away(op, step, dst, ndst);
}
