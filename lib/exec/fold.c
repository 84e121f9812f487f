// SPDX-License-Identifier: BSD-3-Clause
#include "exec/fold.h"

#include <errno.h>
#include <stdlib.h>

#include "bytes/calc.h"
#include "exec/remote.h"
#include "exec/slot.h"
#include "exec/transfer.h"

/* The slots a CALC folds, in their order: how many. */
static uint32_t operands_of(const struct oc_op *op, const struct oc_step *step, struct oc_ref *to)
{
	const struct oc_ref *operand = oc_plan_operands(op->plan) + step->operand;
	uint32_t n = 0;

	for (uint32_t i = 0; i < step->noperands; i++) {
		bool all = operand[i].rank == OC_RANK_ALL;

		for (uint32_t p = 0; p < (all ? op->group->size : 1); p++) {
			to[n] = operand[i];
			if (all)
				to[n].rank = (uint16_t)p;
			n++;
		}
	}
	return n;
}

static bool is_sent(const struct oc_op *op, const struct oc_ref *ref)
{
	return ref->slot == OC_SLOT_SEND && ref->rank != op->group->rank;
}

/* Finds out where operands are, if all of them are memory now. */
static bool find_operands(struct oc_op *op, const struct oc_ref *operand, uint32_t n, size_t len,
			  const void **src)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct oc_ref *ref = &operand[i];

		src[i] = is_sent(op, ref) ? oc_slot_send_at(op, ref->rank, ref->off, len)
					  : oc_slot_at(op, *ref, len);
		if (!src[i])
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

/* The operands, from @src on in their order, to every destination. */
static void fold_memory(struct oc_op *op, void **dst, uint32_t ndst, const void **src,
			uint32_t nsrc, size_t len)
{
	uint64_t since = oc_store_policy_clock(&op->stores);

	oc_calc_fold(op->bind->op, op->bind->type, dst, ndst, src, nsrc,
		     len / oc_type_size(op->bind->type), op->stores.past);
	oc_store_policy_add(&op->stores, since, len * ndst);
}

/* Folds chunk by chunk, following what is staged and reading the rest. */
static int fold_chunked(struct oc_op *op, struct oc_ref *operand, uint32_t n, size_t len,
			void **dst, uint32_t ndst)
{
	size_t elem = oc_type_size(op->bind->type);
	size_t chunk = OC_OP_CHUNK / elem * elem;
	const void *src[OC_OPERANDS_MAX];
	char *temp = malloc(n * chunk);
	int err = temp ? 0 : -ENOMEM;

	while (len && !err) {
		size_t part = len < chunk ? len : chunk;

		for (uint32_t i = 0; i < n && !err; i++) {
			err = await_operand(op, &operand[i], part, temp + i * chunk, &src[i]);
			operand[i].off += part;
		}
		if (!err)
			fold_memory(op, dst, ndst, src, n, part);
		for (uint32_t d = 0; d < ndst; d++)
			dst[d] = (char *)dst[d] + part;
		len -= part;
	}
	free(temp);
	return err;
}

static int fold(struct oc_op *op, const struct oc_step *step, void **dst, uint32_t ndst)
{
	struct oc_ref operand[OC_OPERANDS_MAX];
	const void *src[OC_OPERANDS_MAX];
	uint32_t n = operands_of(op, step, operand);

	if (!find_operands(op, operand, n, step->len, src))
		return fold_chunked(op, operand, n, step->len, dst, ndst);
	fold_memory(op, dst, ndst, src, n, step->len);
	for (uint32_t i = 0; i < n; i++)
		oc_op_count(op, operand[i].slot, operand[i].rank, step->len);
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
	return memory ? fold_here(op, step, dst, ndst) : fold_away(op, step, dst, ndst);
}
