// SPDX-License-Identifier: BSD-3-Clause
/*
 * The check of plans against bytes that are none: plans of all collectives, cut short, grown,
 * with bits and members changed. Each stands in memory of just its size, so that a sanitizer
 * sees every look outside; what passes is read to its last edge as an executor would.
 * ONECOPY_TEST_SEED repeats a run.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"
#include "plan/check.h"
#include "plan/draft.h"
#include "../coll/trial.h"
#include "../expect.h"
#include "../../random.h"

#define RANK 1u
#define MANY 4u

static unsigned long passed, refused;

/* A plan of each generator, @which from 0 on; NULL behind the last. */
static struct oc_plan *generate(uint32_t which, uint32_t rank)
{
	static const uint64_t len[MANY] = {8, 0, 24, 16}, off[MANY] = {0, 8, 8, 32};
	const struct oc_blocks blocks = {len, off};
	struct oc_shape shape = {.rank = (uint16_t)rank,
				 .size = MANY,
				 .root = (uint16_t)(which / 3 % MANY),
				 .granule = 8,
				 .stream = which % 2,
				 .bytes = 65536 + 800};

	switch (which) {
	case 0:
	case 1:
		return oc_coll_bcast(&shape);
	case 2:
		return oc_coll_scatter(&shape);
	case 3:
		return oc_coll_gather(&shape);
	case 4:
	case 5:
		return oc_coll_allgather(&shape);
	case 6:
		return oc_coll_alltoall(&shape);
	case 7:
		return oc_coll_reduce(&shape);
	case 8:
		return oc_coll_allreduce(&shape);
	case 9:
		return oc_coll_reduce_scatter(&shape, &blocks);
	case 10:
		return oc_coll_barrier(&shape);
	case 11:
		return oc_coll_scatterv(&shape, &blocks);
	case 12:
		return oc_coll_gatherv(&shape, &blocks);
	case 13:
		return oc_coll_allgatherv(&shape, &blocks);
	case 14:
		return oc_coll_alltoallv(&shape, &blocks, &blocks);
	case 15:
		shape.coll = OC_COLL_REDUCE;
		break;
	case 16:
		shape.coll = OC_COLL_ALLTOALL;
		break;
	default:
		return NULL;
	}
	shape.eager = 1;
	shape.bytes = 800;
	return oc_coll_eager(&shape);
}

/* All that an executor may do with an image that has passed. */
static uint64_t read_through(const struct oc_plan *plan)
{
	const struct oc_step *steps = oc_plan_steps(plan);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < plan->nsteps; i++) {
		const struct oc_step *step = &steps[i];

		EXPECT(step->kind <= OC_STEP_RECV && step->peer < plan->shape.size);
		EXPECT(step->src.slot < OC_SLOT_COUNT && step->dst.slot < OC_SLOT_COUNT);
		for (uint32_t k = 0; k < step->noperands; k++)
			sum += oc_plan_operands(plan)[step->operand + k].off;
		for (uint32_t e = 0; e < step->nedges; e++)
			EXPECT(oc_plan_edges(plan)[step->edge + e] < i);
		sum += step->len + step->src.off + step->dst.off;
	}
	return sum;
}

/* Whether [bytes, @size) passes, looked at where nothing else is. */
static bool passes(const void *bytes, size_t size)
{
	void *copy = malloc(size ? size : 1);
	char why[100] = "";
	bool good;

	EXPECT(copy);
	memcpy(copy, bytes, size);
	good = !oc_plan_check(copy, size, why, sizeof(why));
	EXPECT(good == !why[0]);
	EXPECT(!memcmp(copy, bytes, size));
	if (good)
		read_through(copy);
	passed += good;
	refused += !good;
	free(copy);
	return good;
}

/* Numbers that are at some edge more often than others. */
static uint64_t odd_number(void)
{
	static const uint64_t numbers[] = {0,	       1,	   2,	       3,
					   4,	       63,	   64,	       0xff00,
					   0xfffe,     0xffff,	   0x10000,    0x7fffffff,
					   UINT32_MAX, 1ull << 32, UINT64_MAX, UINT64_MAX >> 2};

	return trial_dice(4) ? numbers[trial_dice(16)] : random_next(&trial_seed);
}

static void spoil(uint8_t *bytes, size_t size)
{
	static const size_t widths[] = {1, 2, 4, 8};

	for (uint32_t n = 1 + trial_dice(3); n; n--) {
		size_t width = widths[trial_dice(4)];
		size_t at = trial_dice((uint32_t)(size / width)) * width;
		uint64_t number = odd_number();

		/* The head and the first steps decide most. */
		if (trial_dice(2))
			at %= sizeof(struct oc_plan) + 2 * sizeof(struct oc_step);
		if (at + width > size)
			continue;
		if (trial_dice(3) == 0)
			bytes[at] ^= (uint8_t)(1u << trial_dice(8));
		else
			memcpy(bytes + at, &number, width);
	}
}

static void test_spoiled(const struct oc_plan *plan)
{
	uint8_t *bytes = malloc(plan->size + 64);

	EXPECT(bytes);
	for (int again = 0; again < 3000; again++) {
		size_t size = plan->size;

		memcpy(bytes, plan, size);
		memset(bytes + size, 0, 64);
		if (trial_dice(8) == 0)
			size = trial_dice(2) ? trial_dice((uint32_t)size) : size + trial_dice(64);
		/* A size that is its own gets further. */
		if (trial_dice(2) && size >= sizeof(*plan))
			((struct oc_plan *)bytes)->size = (uint32_t)size;
		if (size)
			spoil(bytes, size);
		passes(bytes, size);
	}
	free(bytes);
}

/* Each length but its own is refused, and each place where numbers may not stand. */
static void test_lengths(const struct oc_plan *plan)
{
	uint8_t *bytes = calloc(1, plan->size + 64);
	char why[100];

	EXPECT(bytes);
	memcpy(bytes, plan, plan->size);
	for (size_t size = 0; size < plan->size + 64u; size++)
		EXPECT(passes(bytes, size) == (size == plan->size));
	memmove(bytes + 4, bytes, plan->size);
	EXPECT(oc_plan_check(bytes + 4, plan->size, why, sizeof(why)));
	free(bytes);
}

/* Whether the plan of this draft, which is finished, passes. */
static bool draft_passes(struct oc_draft *draft)
{
	struct oc_plan *plan = oc_draft_finish(draft);
	bool good;

	EXPECT(plan);
	good = passes(plan, plan->size);
	free(plan);
	return good;
}

/* Whether a plan of this step alone passes. */
static bool one(struct oc_step step)
{
	struct oc_draft draft = {
		.shape = {.rank = RANK, .size = MANY, .granule = 8, .bytes = 1000}};

	oc_draft_add(&draft, step, 0);
	return draft_passes(&draft);
}

/* What each kind of step may not be, one by one. */
static void test_steps(void)
{
	const struct oc_ref mine = oc_ref(OC_SLOT_RECV, RANK, 0), hers = oc_ref(OC_SLOT_SEND, 2, 0);
	struct oc_step copy = {.kind = OC_STEP_COPY, .dst = mine, .src = hers, .len = 8}, step;

	EXPECT(one(copy));
	step = copy, step.dst.rank = 3;
	EXPECT(!one(step)); /* two others */
	step = copy, step.dst.slot = OC_SLOT_SEND;
	EXPECT(!one(step));
	step = copy, step.dst.slot = OC_SLOT_COUNT;
	EXPECT(!one(step));
	step = copy, step.dst = oc_ref(OC_SLOT_SCRATCH, 2, 0), step.src.rank = RANK;
	EXPECT(!one(step)); /* another's scratch */
	step = copy, step.src.rank = MANY;
	EXPECT(!one(step));
	step = copy, step.src.off = UINT64_MAX - 4;
	EXPECT(!one(step));
	step = copy, step.src.reserved = 1;
	EXPECT(!one(step));
	step = copy, step.event = 2;
	EXPECT(!one(step));
	step = copy, step.flags = OC_STEP_PAIR;
	EXPECT(!one(step));
	step = copy, step.flags = OC_STEP_NEAR;
	EXPECT(!one(step)); /* of folds alone */
	step = copy, step.cond = OC_COND_DIRECT, step.cond_rank = OC_RANK_ALL;
	EXPECT(one(step));
	step.cond_rank = MANY;
	EXPECT(!one(step));
	step = copy, step.kind = OC_STEP_RECV + 1;
	EXPECT(!one(step));
	step = (struct oc_step){.kind = OC_STEP_WAIT, .peer = 2, .event = OC_EVENT_READY};
	EXPECT(one(step));
	step.peer = RANK;
	EXPECT(!one(step)); /* oneself */
	step.peer = 2, step.event = OC_EVENT_END;
	EXPECT(!one(step));
	step = (struct oc_step){.kind = OC_STEP_POST, .event = OC_EVENT_READY};
	EXPECT(!one(step)); /* the executor has posted it */
	step.event = OC_EVENT_READY + 1;
	EXPECT(one(step));
	step.event = OC_EVENT_END - 1;
	EXPECT(one(step));
	step.event = OC_EVENT_END;
	EXPECT(!one(step));
	step.event = 0;
	EXPECT(!one(step));
}

/* Whether a plan that posts two events passes. */
static bool two(uint16_t first, uint16_t second)
{
	struct oc_draft draft = {.shape = {.rank = RANK, .size = MANY, .granule = 8}};

	oc_draft_add(&draft, (struct oc_step){.kind = OC_STEP_POST, .event = first}, 0);
	oc_draft_add(
		&draft,
		(struct oc_step){.kind = OC_STEP_SEND, .peer = 2, .event = second, .reply = first},
		0);
	return draft_passes(&draft);
}

static void test_events(void)
{
	const uint16_t first = OC_EVENT_READY + 1, last = OC_EVENT_END - 1;

	EXPECT(two(first, last));
	EXPECT(two(last, first)); /* in any order */
	EXPECT(!two(first, first));
	EXPECT(!two(last, last));
	EXPECT(!two(first, OC_EVENT_READY));
}

static bool depends(const struct oc_plan *plan, uint32_t step, uint32_t on)
{
	const uint32_t *edges = oc_plan_edges(plan) + oc_plan_steps(plan)[step].edge;

	for (uint32_t e = 0; e < oc_plan_steps(plan)[step].nedges; e++)
		if (edges[e] == on)
			return true;
	return false;
}

/* Whether the plan posts @event once, after the step that copies to @rank. */
static bool posts_after_push(const struct oc_plan *plan, uint32_t event, uint32_t rank)
{
	const struct oc_step *steps = oc_plan_steps(plan);
	uint32_t push = UINT32_MAX;

	for (uint32_t i = 0; i < plan->nsteps; i++) {
		if (steps[i].kind == OC_STEP_COPY && steps[i].dst.rank == rank)
			push = i;
		if (steps[i].kind == OC_STEP_POST && steps[i].event == event)
			return push < i && depends(plan, i, push);
	}
	return false;
}

/* A broadcast's root tells each of any number of ranks when it has its bytes. */
static void test_many(void)
{
	static const uint16_t sizes[] = {2, 15, 16, 255, 256, 257, 700, 1024};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct oc_shape shape = {.coll = OC_COLL_BCAST,
					 .size = sizes[i],
					 .rank = sizes[i] / 2,
					 .root = sizes[i] / 2,
					 .granule = 1,
					 .bytes = 20000};
		struct oc_plan *root = oc_coll_bcast(&shape);

		EXPECT(root && passes(root, root->size));
		for (uint16_t r = 0; r < shape.size; r++) {
			struct oc_plan *leaf;
			const struct oc_step *wait;

			if (r == shape.root)
				continue;
			shape.rank = r;
			leaf = oc_coll_bcast(&shape);
			EXPECT(leaf && passes(leaf, leaf->size));
			wait = oc_plan_steps(leaf) + leaf->nsteps - 1;
			EXPECT(wait->kind == OC_STEP_WAIT && wait->peer == shape.root);
			EXPECT(posts_after_push(root, wait->event, r));
			free(leaf);
		}
		free(root);
	}
}

/* Whether a fold of @n times this operand passes. */
static bool fold(struct oc_ref operand, uint32_t n, uint64_t len)
{
	struct oc_draft draft = {.shape = {.rank = RANK, .size = MANY, .granule = 8}};

	oc_draft_add(&draft,
		     (struct oc_step){.kind = OC_STEP_CALC,
				      .dst = oc_ref(OC_SLOT_RECV, RANK, 0),
				      .len = len},
		     0);
	while (n--)
		oc_draft_operand(&draft, operand);
	return draft_passes(&draft);
}

static void test_folds(void)
{
	const struct oc_ref all = oc_ref(OC_SLOT_SEND, OC_RANK_ALL, 0);

	EXPECT(fold(all, 1, 16));
	EXPECT(!fold(all, 1, 12)); /* cuts an element */
	EXPECT(!fold(all, 0, 16));
	EXPECT(fold(all, OC_OPERANDS_MAX / MANY, 16));
	EXPECT(!fold(all, OC_OPERANDS_MAX / MANY + 1, 16));
	EXPECT(fold(oc_ref(OC_SLOT_SCRATCH, 3, 8), 2, 16));
	EXPECT(!fold(oc_ref(OC_SLOT_SCRATCH, MANY, 8), 1, 16));
	EXPECT(!fold(oc_ref(OC_SLOT_COUNT, 3, 8), 1, 16));
	EXPECT(!fold(oc_ref(OC_SLOT_SEND, 3, UINT64_MAX - 8), 1, 16));
}

/* A draft that has found no memory gives no plan, whatever is added after. */
static void test_failed(void)
{
	struct oc_draft draft = {.shape = {.size = 1}};

	oc_draft_add(&draft, (struct oc_step){.kind = OC_STEP_STAGE}, 0);
	draft.failed = true;
	oc_draft_add(&draft, (struct oc_step){.kind = OC_STEP_STAGE}, 0);
	oc_draft_depend(&draft, 0);
	EXPECT(draft.nsteps == 1 && !draft.nedges);
	EXPECT(!oc_draft_finish(&draft));
	EXPECT(!draft.steps && !draft.failed);
}

int main(void)
{
	const char *seed = getenv("ONECOPY_TEST_SEED");

	trial_seed = (seed ? strtoull(seed, NULL, 0) : 0x6f6e65636f7079) | 1;
	printf("seed %#llx\n", (unsigned long long)trial_seed);
	test_steps();
	test_folds();
	test_events();
	test_many();
	test_failed();
	for (uint32_t which = 0;; which++) {
		struct oc_plan *plan = generate(which, which % MANY);

		if (!plan)
			break;
		test_lengths(plan);
		test_spoiled(plan);
		free(plan);
	}
	printf("%lu passed, %lu refused\n", passed, refused);
	return 0;
}
