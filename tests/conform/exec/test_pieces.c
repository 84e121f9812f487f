// SPDX-License-Identifier: BSD-3-Clause
/* Collectives whose buffers lie in pieces, in other ones on each rank. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"
#include "exec/inline.h"
#include "../members.h"
#include "../share.h"
#include "plan/check.h"
#include "spread.h"
#include "../../random.h"

enum { TURNS = 200, RANKS = 4, BYTES = 100000, ALL = RANKS * BYTES, GAP = 0xd7 };

static const struct {
	enum oc_coll coll;
	struct oc_plan *(*make)(const struct oc_shape *shape);
	bool rooted;
	uint32_t sent, received; /* blocks: 1, or n */
} colls[] = {
	{OC_COLL_BCAST, oc_coll_bcast, true, 1, 1},
	{OC_COLL_SCATTER, oc_coll_scatter, true, RANKS, 1},
	{OC_COLL_GATHER, oc_coll_gather, true, 1, RANKS},
	{OC_COLL_ALLGATHER, oc_coll_allgather, false, 1, RANKS},
	{OC_COLL_ALLTOALL, oc_coll_alltoall, false, RANKS, RANKS},
	{OC_COLL_REDUCE, oc_coll_reduce, true, 1, 1},
	{OC_COLL_ALLREDUCE, oc_coll_allreduce, false, 1, 1},
};

struct turn {
	struct job *job;
	struct oc_shape shape;
	uint64_t seed;
	size_t which;
	uint64_t sent, received; /* bytes of this rank's slots */
};

/* The same on all ranks. */
static uint64_t shared_random(uint64_t below)
{
	static uint64_t state = 1;

	return random_next(&state) % below;
}

static struct turn choose(struct job *job, uint64_t seed)
{
	static const uint64_t sizes[] = {1, 100, 4097, 20000, 70000, BYTES};
	size_t which = shared_random(sizeof(colls) / sizeof(*colls));
	struct turn turn = {.job = job, .seed = seed, .which = which};
	uint32_t n = job->nranks;

	turn.shape = (struct oc_shape){
		.coll = (uint16_t)colls[which].coll,
		.rank = (uint16_t)job->rank,
		.size = (uint16_t)n,
		.root = (uint16_t)(colls[which].rooted ? shared_random(n) : 0),
		.granule = 1,
		.stream = (uint16_t)shared_random(2),
		.bytes = sizes[shared_random(sizeof(sizes) / sizeof(*sizes))],
	};
	if (shared_random(2) && oc_coll_eager_bytes(&turn.shape) <= OC_EAGER_MAX)
		turn.shape.eager = 1;
	turn.sent = turn.shape.bytes * (colls[which].sent > 1 ? n : 1);
	turn.received = turn.shape.bytes * (colls[which].received > 1 ? n : 1);
	return turn;
}

static uint8_t sent_by(const struct turn *turn, uint32_t rank, uint64_t i)
{
	return share_pattern(turn->seed * 8 + rank, i);
}

/* Byte @i of what this rank is to receive. */
static uint8_t expected(const struct turn *turn, uint64_t i)
{
	uint64_t block = turn->shape.bytes;
	uint32_t me = turn->job->rank;
	uint8_t sum = 0;

	switch (turn->shape.coll) {
	case OC_COLL_BCAST:
		return sent_by(turn, turn->shape.root, i);
	case OC_COLL_SCATTER:
		return sent_by(turn, turn->shape.root, me * block + i);
	case OC_COLL_GATHER:
	case OC_COLL_ALLGATHER:
		return sent_by(turn, (uint32_t)(i / block), i % block);
	case OC_COLL_ALLTOALL:
		return sent_by(turn, (uint32_t)(i / block), me * block + i % block);
	default:
		for (uint32_t r = 0; r < turn->job->nranks; r++)
			sum = (uint8_t)(sum + sent_by(turn, r, i));
		return sum;
	}
}

static struct oc_plan *make(const struct turn *turn)
{
	const struct oc_shape *shape = &turn->shape;
	struct oc_plan *plan = shape->eager ? oc_coll_eager(shape) : colls[turn->which].make(shape);
	char why[128];

	CHECK(plan);
	CHECK(!oc_plan_check(plan, plan->size, why, sizeof(why)));
	return plan;
}

static void play(struct oc_group *group, const struct turn *turn, uint8_t *const memory[2][2])
{
	static uint8_t packed[ALL];
	struct oc_plan *plan = make(turn);
	struct spread send, recv;
	bool root = turn->job->rank == turn->shape.root || !colls[turn->which].rooted;
	bool bcast = turn->shape.coll == OC_COLL_BCAST, receives;
	struct oc_bind bind = {.scratch_bytes = oc_coll_slice_max(&turn->shape, turn->shape.bytes),
			       .op = OC_SUM,
			       .type = OC_UINT8};

	spread_begin(&send, memory[job_random() % 2][0], turn->sent, GAP);
	spread_begin(&recv, memory[job_random() % 2][1], turn->received, GAP);
	for (uint64_t i = 0; i < turn->sent; i++)
		packed[i] = sent_by(turn, turn->job->rank, i);
	spread_put(&send, packed);
	memset(packed, 0xee, turn->received);
	spread_put(&recv, packed);
	if (root || (colls[turn->which].sent == 1 && !bcast)) {
		bind.send = send.base;
		bind.send_bytes = turn->sent;
		bind.send_layout = send.layout;
	}
	receives = root || colls[turn->which].received == 1;
	receives = receives && !(turn->shape.coll == OC_COLL_REDUCE && !root);
	if (bcast && root) {
		bind.recv = send.base;
		bind.recv_bytes = turn->sent;
		bind.recv_layout = send.layout;
		receives = false;
	} else if (receives) {
		bind.recv = recv.base;
		bind.recv_bytes = turn->received;
		bind.recv_layout = recv.layout;
	}
	CHECK_EQ(oc_exec_inline(group, plan, &bind), 0);
	spread_get(&recv, packed);
	for (uint64_t i = 0; i < turn->received; i++)
		CHECK_EQ(packed[i], receives ? expected(turn, i) : 0xee);
	spread_get(&send, packed);
	for (uint64_t i = 0; i < turn->sent; i++)
		CHECK_EQ(packed[i], sent_by(turn, turn->job->rank, i));
	CHECK(spread_is_whole(&send, GAP));
	CHECK(spread_is_whole(&recv, GAP));
	spread_end(&send);
	spread_end(&recv);
	free(plan);
}

static void test_collectives(struct job *job)
{
	oc_node *node = job_join(job);
	struct oc_group *group = members_join(job, node);
	uint8_t *memory[2][2]; /* outside the heap, and in it */

	for (int i = 0; i < 2; i++) {
		memory[0][i] = malloc(ALL + SPREAD_EXTRA);
		memory[1][i] = oc_alloc(ALL + SPREAD_EXTRA);
		CHECK(memory[0][i] && memory[1][i]);
	}
	for (uint64_t i = 0; i < TURNS; i++) {
		struct turn turn = choose(job, i);

		play(group, &turn, memory);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	for (int i = 0; i < 2; i++) {
		free(memory[0][i]);
		oc_free(memory[1][i]);
	}
	oc_group_destroy(group);
	oc_node_leave(node);
}

/* Layouts that are not of the slot they are bound to. */
static void test_misfits(struct job *job)
{
	enum { HALF = 500 };
	static uint8_t buffer[2 * HALF];
	oc_node *node = job_join(job);
	struct oc_group *group = members_join(job, node);
	struct oc_shape shape = {.coll = OC_COLL_ALLGATHER,
				 .rank = (uint16_t)job->rank,
				 .size = (uint16_t)job->nranks,
				 .granule = 1,
				 .bytes = HALF};
	struct oc_layout *layout = oc_layout_make(&(struct oc_run){0, HALF - 1}, 1, HALF, 1);
	struct oc_plan *plan = oc_coll_allgather(&shape);
	struct oc_bind bind = {
		.send = buffer, .send_bytes = HALF, .recv = buffer, .recv_bytes = sizeof(buffer)};

	CHECK(layout && plan);
	bind.send_layout = job->rank ? NULL : layout;
	CHECK_EQ(oc_exec_inline(group, plan, &bind), -EINVAL);
	CHECK_EQ(oc_node_barrier(node), 0);
	free(layout);
	free(plan);
	oc_group_destroy(group);
	oc_node_leave(node);
}

int main(int argc, char **argv)
{
	static const struct job_case cases[] = {
		{"collectives", 2, RANKS, test_collectives},
		{"misfits", 2, 2, test_misfits},
	};

	return job_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
