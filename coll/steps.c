// SPDX-License-Identifier: BSD-3-Clause
#include "steps.h"

#include "coll.h"

/* One more wait, after the steps from @since to @until. */
static void add_wait(struct oc_draft *draft, uint32_t peer, uint32_t event, uint32_t since,
		     uint32_t until)
{
	oc_draft_add(draft, step_wait(peer, event), draft->nsteps);
	for (uint32_t i = since; i < until; i++)
		oc_draft_depend(draft, i);
}

uint32_t plan_wait_all(struct oc_draft *draft, uint32_t event, uint32_t since)
{
	const struct oc_shape *shape = &draft->shape;
	uint32_t first = draft->nsteps;

	for (uint32_t d = 1; d < shape->size; d++)
		add_wait(draft, (shape->rank + d) % shape->size, event, since, first);
	return first;
}

uint32_t plan_wait_group(struct oc_draft *draft, const uint64_t *there, bool other, uint32_t event,
			 uint32_t since)
{
	const struct oc_shape *shape = &draft->shape;
	uint32_t first = draft->nsteps;

	for (uint32_t d = 1; d < shape->size; d++) {
		uint32_t peer = (shape->rank + d) % shape->size;

		if (!there[peer] != other)
			add_wait(draft, peer, event, since, first);
	}
	return first;
}

uint32_t plan_fold_all(struct oc_draft *draft, struct oc_step fold, uint64_t off, uint32_t since)
{
	uint32_t number = oc_draft_add(draft, fold, since);

	oc_draft_operand(draft, oc_ref(OC_SLOT_SEND, OC_RANK_ALL, off));
	return number;
}

uint64_t oc_coll_slice(const struct oc_shape *shape, uint64_t bytes, uint32_t k)
{
	uint64_t granule = shape->granule ? shape->granule : 1;
	uint64_t line = granule * 64;

	if (k >= shape->size)
		return bytes;
	if (bytes / shape->size >= 4 * line)
		granule = line;
	/* bytes * k may overflow 64 bits only past 2^54 bytes a rank */
	return bytes * k / shape->size / granule * granule;
}

uint64_t oc_coll_slice_max(const struct oc_shape *shape, uint64_t bytes)
{
	/* Both ends may have been moved by just under a cache line's granule. */
	return bytes / shape->size + 1 + 64 * (uint64_t)(shape->granule ? shape->granule : 1);
}
