// SPDX-License-Identifier: BSD-3-Clause
/* Operations under way together on one group: issued in one order by all, gone on with and ended
 * in another by each, with some that members skip, give up or do not live to see. */
#include <errno.h>
#include <sched.h>

#include "exec/inline.h"
#include "../members.h"
#include "../share.h"
#include "plans.h"
#include "spread.h"
#include "../../random.h"

enum { OPS = 300, SLOTS = 20, BYTES = 300000, GAP = 0xd7 };
enum kind { RING, CHAIN, SCAN, PASS, PAIR, NOBODY, KINDS };

/* The same on all ranks. */
struct choice {
	enum kind kind;
	uint64_t bytes;
	uint32_t from, to; /* PAIR */
	uint32_t gives_up; /* a rank, or none */
	uint64_t seed;
};

struct flight {
	struct oc_op op;
	struct oc_bind bind;
	struct oc_plan *plan;
	struct choice choice;
	struct spread send, recv;
	bool under_way;
};

struct test {
	struct job *job;
	struct oc_group *group;
	uint64_t random; /* the same on all ranks */
	bool gives_up;
	bool dying;
	bool only_tests;
	uint8_t *send[2][SLOTS]; /* outside the heap, and in it */
	uint8_t *recv[SLOTS];
	struct flight flight[SLOTS];
};

static uint64_t shared_random(struct test *test, uint64_t below)
{
	return random_next(&test->random) % below;
}

static struct choice choose(struct test *test, uint64_t seed)
{
	static const uint64_t sizes[] = {1, 100, 4097, 20000, 70000, BYTES};
	uint32_t n = test->job->nranks;
	struct choice choice = {.kind = (enum kind)shared_random(test, KINDS), .seed = seed};

	choice.bytes = sizes[shared_random(test, sizeof(sizes) / sizeof(*sizes))];
	choice.from = (uint32_t)shared_random(test, n);
	choice.to = (choice.from + 1 + (uint32_t)shared_random(test, n - 1)) % n;
	choice.gives_up = test->gives_up ? (uint32_t)shared_random(test, 8 * n) : n;
	return choice;
}

static struct oc_plan *plan_pair(const struct job *job, const struct choice *choice)
{
	struct oc_shape shape = {.rank = (uint16_t)job->rank,
				 .size = (uint16_t)job->nranks,
				 .granule = 1,
				 .bytes = choice->bytes};
	struct oc_draft draft = {.shape = shape};
	struct oc_step step = plans_message(OC_STEP_RECV, choice->from, FIRST, FIRST);

	step.len = choice->bytes;
	step.src = oc_ref(OC_SLOT_SEND, choice->from, 0);
	step.dst = oc_ref(OC_SLOT_RECV, choice->to, 0);
	if (job->rank == choice->to) {
		oc_draft_add(&draft, step, 0);
	} else {
		oc_draft_add(&draft, (struct oc_step){.kind = OC_STEP_STAGE}, 0);
		oc_draft_add(&draft, plans_message(OC_STEP_SEND, choice->to, FIRST, FIRST), 0);
	}
	return plans_finish(&draft);
}

static struct oc_plan *make(const struct job *job, const struct choice *choice)
{
	switch (choice->kind) {
	case RING:
		return plans_ring(job, choice->bytes);
	case CHAIN:
		return plans_chain(job, choice->bytes);
	case SCAN:
		return plans_scan(job, choice->bytes);
	case PASS:
		return plans_pass(job, choice->bytes);
	default:
		return plan_pair(job, choice);
	}
}

/* What byte @i of the receive buffer must be. */
static uint8_t expected(const struct job *job, const struct choice *choice, uint64_t i)
{
	uint32_t me = job->rank, n = job->nranks;
	uint8_t sum = 0;

	if ((choice->kind == CHAIN && !me) || (choice->kind == PASS && me < n - 1) ||
	    (choice->kind == PAIR && me != choice->to))
		return 0xee;
	if (choice->kind == RING)
		return share_pattern(choice->seed * 8 + (me + n - 1) % n, i);
	if (choice->kind == CHAIN)
		return share_pattern(choice->seed * 8, i);
	if (choice->kind == PAIR)
		return share_pattern(choice->seed * 8 + choice->from, i);
	for (uint32_t r = 0; r <= me; r++)
		sum = (uint8_t)(sum + share_pattern(choice->seed * 8 + r, i));
	return sum;
}

static void check(const struct test *test, struct flight *it, int err)
{
	static uint8_t send[BYTES], recv[BYTES];
	const struct choice *choice = &it->choice;
	bool whole = !test->dying && choice->gives_up >= test->job->nranks;

	spread_get(&it->send, send);
	spread_get(&it->recv, recv);
	/* The buffers are the caller's again. */
	CHECK(spread_is_whole(&it->send, GAP));
	CHECK(spread_is_whole(&it->recv, GAP));
	spread_end(&it->send);
	spread_end(&it->recv);

	if (whole)
		CHECK_EQ(err, 0);
	for (uint64_t i = 0; i < choice->bytes && !err; i++) {
		CHECK_EQ(recv[i], expected(test->job, choice, i));
		CHECK_EQ(send[i], share_pattern(choice->seed * 8 + test->job->rank, i));
	}
}

static void end(struct test *test, struct flight *it)
{
	int err = 0;

	if (test->only_tests || job_random() % 2)
		while (!oc_exec_test(&it->op, &err))
			sched_yield();
	else
		err = oc_exec_wait(&it->op);
	check(test, it, err);
	free(it->plan);
	it->under_way = false;
}

/* A place for one more, after some of the others, picked at random, have ended. */
static struct flight *take(struct test *test)
{
	static uint64_t most = SLOTS;
	struct flight *it = &test->flight[job_random() % SLOTS];
	uint64_t count = 0;

	if (job_random() % 16 == 0)
		most = 1 + job_random() % SLOTS;
	for (int i = 0; i < SLOTS; i++)
		count += test->flight[i].under_way;
	for (int i = 0; i < SLOTS && count >= most; i++) {
		if (test->flight[i].under_way && job_random() % 2) {
			end(test, &test->flight[i]);
			count--;
		}
	}
	if (it->under_way)
		end(test, it);
	return it;
}

static void fill(struct test *test, struct flight *it, int slot)
{
	static uint8_t packed[BYTES];
	uint64_t bytes = it->choice.bytes;

	spread_begin(&it->send, test->send[job_random() % 2][slot], bytes, GAP);
	spread_begin(&it->recv, test->recv[slot], bytes, GAP);
	for (uint64_t i = 0; i < bytes; i++)
		packed[i] = share_pattern(it->choice.seed * 8 + test->job->rank, i);
	spread_put(&it->send, packed);
	memset(packed, 0xee, bytes);
	spread_put(&it->recv, packed);
	it->bind = (struct oc_bind){.send = it->send.base,
				    .send_bytes = bytes,
				    .send_layout = it->send.layout,
				    .recv = it->recv.base,
				    .recv_bytes = bytes,
				    .recv_layout = it->recv.layout,
				    .scratch_bytes = bytes,
				    .op = OC_SUM,
				    .type = OC_UINT8};
	it->plan = make(test->job, &it->choice);
}

static void issue(struct test *test, uint64_t seed)
{
	struct choice choice = choose(test, seed);
	struct job *job = test->job;
	struct flight *it;

	if (choice.kind == NOBODY ||
	    (choice.kind == PAIR && job->rank != choice.from && job->rank != choice.to)) {
		oc_group_skip(test->group);
		return;
	}
	if (choice.gives_up == job->rank) {
		oc_exec_decline(test->group, -ENOMEM);
		return;
	}
	it = take(test);
	it->choice = choice;
	fill(test, it, (int)(it - test->flight));
	if (job_random() % 8) {
		it->under_way = true;
		oc_exec_begin(&it->op, test->group, it->plan, &it->bind);
		return;
	}
	check(test, it, oc_exec_inline(test->group, it->plan, &it->bind));
	free(it->plan);
}

static void run(struct test *test)
{
	struct job *job = test->job;
	oc_node *node = job_join(job);

	test->random = 1;
	test->group = members_join(job, node);
	for (int i = 0; i < SLOTS; i++) {
		test->send[0][i] = malloc(BYTES + SPREAD_EXTRA);
		test->send[1][i] = oc_alloc(BYTES + SPREAD_EXTRA);
		test->recv[i] = oc_alloc(BYTES + SPREAD_EXTRA);
		CHECK(test->send[0][i] && test->send[1][i] && test->recv[i]);
	}
	for (uint64_t i = 0; i < OPS; i++) {
		if (test->dying && job->rank == job->nranks - 1 && i == OPS / 2)
			job_die();
		issue(test, i);
	}
	for (int i = 0; i < SLOTS; i++)
		if (test->flight[i].under_way)
			end(test, &test->flight[i]);
	CHECK(!test->group->first);
	if (!test->dying)
		CHECK_EQ(oc_node_barrier(node), 0);
	for (int i = 0; i < SLOTS; i++) {
		free(test->send[0][i]);
		oc_free(test->send[1][i]);
		oc_free(test->recv[i]);
	}
	oc_group_destroy(test->group);
	oc_node_leave(node);
}

static void test_any_order(struct job *job)
{
	run(&(struct test){.job = job});
}

/* Nobody ever waits inside. */
static void test_only_tests(struct job *job)
{
	run(&(struct test){.job = job, .only_tests = true});
}

/* Who needs a member that gave up fails, and the operations beside and after that do not. */
static void test_giving_up(struct job *job)
{
	run(&(struct test){.job = job, .gives_up = true});
}

static void test_dying(struct job *job)
{
	run(&(struct test){.job = job, .dying = true});
}

static void test_dying_only_tests(struct job *job)
{
	run(&(struct test){.job = job, .dying = true, .only_tests = true});
}

/* The first use of a line is under way as long as its owner has not ended it, whatever is left out
 * meanwhile. */
static void test_first_of_line(struct job *job)
{
	struct test test = {.job = job};
	oc_node *node = job_join(job);
	struct flight *it = &test.flight[0];

	test.group = members_join(job, node);
	for (int i = 0; i < 2; i++)
		test.send[i][0] = oc_alloc(BYTES + SPREAD_EXTRA);
	test.recv[0] = oc_alloc(BYTES + SPREAD_EXTRA);
	it->choice = (struct choice){.kind = RING, .bytes = 100, .gives_up = job->nranks};
	if (job->rank) {
		fill(&test, it, 0);
		oc_exec_begin(&it->op, test.group, it->plan, &it->bind);
		for (int i = 0; i < OC_BOARD_LINES; i++)
			oc_group_skip(test.group);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	for (uint32_t p = 1; p < job->nranks; p++)
		CHECK(!oc_group_retired(test.group, 1, p));
	CHECK_EQ(oc_node_barrier(node), 0);
	if (!job->rank) {
		fill(&test, it, 0);
		oc_exec_begin(&it->op, test.group, it->plan, &it->bind);
		for (int i = 0; i < OC_BOARD_LINES; i++)
			oc_group_skip(test.group);
	}
	end(&test, it);
	CHECK_EQ(oc_node_barrier(node), 0);
	for (uint32_t p = 0; p < job->nranks; p++)
		CHECK(oc_group_retired(test.group, 1 + OC_BOARD_LINES, p));
	for (int i = 0; i < 2; i++)
		oc_free(test.send[i][0]);
	oc_free(test.recv[0]);
	oc_group_destroy(test.group);
	oc_node_leave(node);
}

int main(int argc, char **argv)
{
	static const struct job_case cases[] = {
		{"first_of_line", 2, 3, test_first_of_line},
		{"any_order", 2, 5, test_any_order},
		{"only_tests", 2, 4, test_only_tests},
		{"giving_up", 2, 4, test_giving_up},
		{"dying", 2, 4, test_dying},
		{"dying_only_tests", 2, 3, test_dying_only_tests},
	};

	return job_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
