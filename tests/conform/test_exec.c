// SPDX-License-Identifier: BSD-3-Clause
/* The inline executor between real processes, with what no collective of coll/ is made of:
 * messages, in plans that are used again and again. */
#include <errno.h>

#include "exec.h"
#include "group.h"
#include "plan.h"
#include "share.h"

enum { FIRST = OC_STAGE_READY + 1 };

static struct oc_group *make_group(struct job *job, oc_node *node)
{
	struct oc_group_card cards[8];
	struct oc_group *group = oc_group_offer(node, job->nranks, &cards[job->rank]);

	memcpy(job->shared->bytes + job->rank * sizeof(*cards), &cards[job->rank], sizeof(*cards));
	CHECK_EQ(oc_node_barrier(node), 0);
	memcpy(cards, job->shared->bytes, job->nranks * sizeof(*cards));
	CHECK_EQ(oc_group_create(group, cards, job->rank), 0);
	return group;
}

static struct oc_step message(enum oc_step_kind kind, uint32_t peer, uint32_t stage, uint32_t reply)
{
	return (struct oc_step){.kind = (uint8_t)kind,
				.peer = (uint16_t)peer,
				.stage = (uint16_t)stage,
				.reply = (uint16_t)reply};
}

static struct oc_plan *finish(struct oc_plan *plan)
{
	char why[128];

	CHECK(!plan->failed);
	if (oc_plan_check(plan, why, sizeof(why)))
		job_fail(__FILE__, __LINE__, why, 0, 1);
	return plan;
}

/* Everybody's bytes to the next rank, in two pieces that are both under way at once. */
static struct oc_plan *plan_ring(const struct job *job, uint64_t bytes)
{
	uint32_t me = job->rank, n = job->nranks, next = (me + 1) % n, last = (me + n - 1) % n;
	struct oc_shape shape = {
		.rank = (uint16_t)me, .size = (uint16_t)n, .granule = 1, .bytes = bytes};
	struct oc_plan *plan = oc_plan_create(&shape);

	CHECK(plan);
	oc_plan_add(plan, (struct oc_step){.kind = OC_STEP_STAGE}, 0);
	for (uint32_t i = 0; i < 2; i++)
		oc_plan_add(plan, message(OC_STEP_SEND, next, FIRST + i, FIRST + 2 + i),
			    plan->nsteps);
	for (uint32_t i = 0; i < 2; i++) {
		struct oc_step step = message(OC_STEP_RECV, last, FIRST + i, FIRST + 2 + i);
		uint64_t half = bytes / 2;

		step.len = i ? bytes - half : half;
		step.src = oc_ref(OC_SLOT_SEND, last, i * half);
		step.dst = oc_ref(OC_SLOT_RECV, me, i * half);
		oc_plan_add(plan, step, plan->nsteps);
	}
	return finish(plan);
}

/* Rank 0's bytes from hand to hand: each passes on only what has come. */
static struct oc_plan *plan_chain(const struct job *job, uint64_t bytes)
{
	uint32_t me = job->rank, n = job->nranks;
	struct oc_shape shape = {
		.rank = (uint16_t)me, .size = (uint16_t)n, .granule = 1, .bytes = bytes};
	struct oc_plan *plan = oc_plan_create(&shape);
	struct oc_step step = message(OC_STEP_RECV, me - 1, FIRST + 1, FIRST);

	CHECK(plan);
	if (me == 0)
		oc_plan_add(plan, (struct oc_step){.kind = OC_STEP_STAGE}, 0);
	step.len = bytes;
	step.src = oc_ref(me > 1 ? OC_SLOT_RECV : OC_SLOT_SEND, me - 1, 0);
	step.dst = oc_ref(OC_SLOT_RECV, me, 0);
	if (me)
		oc_plan_add(plan, step, plan->nsteps);
	if (me + 1 < n)
		oc_plan_add(plan, message(OC_STEP_SEND, me + 1, FIRST + 1, FIRST), 0);
	return finish(plan);
}

/* @from of rank r is the rank whose bytes it must get. */
static void repeat(struct job *job, struct oc_group *group, const struct oc_plan *plan, bool heap,
		   uint32_t from)
{
	uint64_t bytes = plan->shape.bytes;
	uint8_t *send = heap ? oc_alloc(bytes) : malloc(bytes), *recv = oc_alloc(bytes);
	struct oc_bind bind = {
		.send = send, .send_bytes = bytes, .recv = recv, .recv_bytes = bytes};

	CHECK(send && recv);
	for (uint64_t turn = 0; turn < 100; turn++) {
		for (uint64_t i = 0; i < bytes; i++)
			send[i] = share_pattern(turn * 8 + job->rank, i);
		memset(recv, 0xee, bytes);
		CHECK_EQ(oc_exec_inline(group, plan, &bind), 0);
		for (uint64_t i = 0; i < bytes; i++)
			CHECK_EQ(recv[i],
				 from == job->rank ? 0xee : share_pattern(turn * 8 + from, i));
	}
	if (heap)
		oc_free(send);
	else
		free(send);
	oc_free(recv);
}

static void run(struct job *job, struct oc_plan *(*make)(const struct job *, uint64_t), bool ring)
{
	static const uint64_t sizes[] = {1, 100, 4097, 70000};
	oc_node *node = job_join(job);
	struct oc_group *group = make_group(job, node);

	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct oc_plan *plan = make(job, sizes[i / 2]);

		repeat(job, group, plan, i % 2,
		       ring ? (job->rank + job->nranks - 1) % job->nranks : 0);
		oc_plan_destroy(plan);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	oc_group_destroy(group);
	oc_node_leave(node);
}

static void test_ring(struct job *job)
{
	run(job, plan_ring, true);
}

static void test_chain(struct job *job)
{
	run(job, plan_chain, false);
}

/* Members that bind different amounts fail, each by what it sees or by the other's giving
 * up, and are in step again. */
static void test_unequal(struct job *job)
{
	oc_node *node = job_join(job);
	struct oc_group *group = make_group(job, node);
	uint8_t *send = oc_alloc(2000), *recv = oc_alloc(2000);

	for (uint64_t turn = 0; turn < 20; turn++) {
		uint64_t bytes = turn % 2 && job->rank ? 1000 : 2000;
		struct oc_plan *plan = plan_ring(job, bytes);
		struct oc_bind bind = {
			.send = send, .send_bytes = bytes, .recv = recv, .recv_bytes = bytes};
		int err = oc_exec_inline(group, plan, &bind);

		if (turn % 2)
			CHECK(err == -EMSGSIZE || err == -EPIPE);
		else
			CHECK_EQ(err, 0);
		oc_plan_destroy(plan);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	oc_free(send);
	oc_free(recv);
	oc_group_destroy(group);
	oc_node_leave(node);
}

int main(int argc, char **argv)
{
	static const struct job_case cases[] = {
		{"ring", 2, 5, test_ring},
		{"chain", 2, 5, test_chain},
		{"unequal", 2, 2, test_unequal},
	};

	return job_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
