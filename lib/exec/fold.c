// SPDX-License-Identifier: BSD-3-Clause
#include "exec/fold.h"

#include <errno.h>
#include <stdlib.h>

#include "bytes/calc.h"
#include "exec/remote.h"
#include "exec/slot.h"

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

int oc_fold_run(struct oc_op *op, const struct oc_step *step)
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
