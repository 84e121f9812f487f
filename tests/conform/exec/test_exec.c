// SPDX-License-Identifier: BSD-3-Clause
/* The inline executor between real processes, with what no collective of coll/ is made of:
 * messages, in plans that are used again and again. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "coll.h"
#include "exec/inline.h"
#include "../members.h"
#include "plan/draft.h"
#include "plans.h"
#include "segment/alive.h"
#include "../share.h"
#include "../../random.h"

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
	struct oc_group *group = members_join(job, node);

	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct oc_plan *plan = make(job, sizes[i / 2]);

		repeat(job, group, plan, i % 2,
		       ring ? (job->rank + job->nranks - 1) % job->nranks : 0);
		free(plan);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	oc_group_destroy(group);
	oc_node_leave(node);
}

static void test_ring(struct job *job)
{
	run(job, plans_ring, true);
}

static void test_chain(struct job *job)
{
	run(job, plans_chain, false);
}

static void repeat_sum(struct job *job, struct oc_group *group, const struct oc_plan *plan,
		       bool heap)
{
	uint64_t bytes = plan->shape.bytes;
	uint8_t *send = heap ? oc_alloc(bytes) : malloc(bytes), *recv = oc_alloc(bytes);
	struct oc_bind bind = {.send = send,
			       .send_bytes = bytes,
			       .recv = recv,
			       .recv_bytes = bytes,
			       .scratch_bytes = bytes,
			       .op = OC_SUM,
			       .type = OC_UINT8};

	CHECK(send && recv);
	for (uint64_t turn = 0; turn < 20; turn++) {
		for (uint64_t i = 0; i < bytes; i++)
			send[i] = share_pattern(turn * 8 + job->rank, i);
		memset(recv, 0xee, bytes);
		CHECK_EQ(oc_exec_inline(group, plan, &bind), 0);
		for (uint64_t i = 0; i < bytes && plan->need[OC_SLOT_RECV]; i++) {
			uint8_t sum = 0;

			for (uint32_t r = 0; r <= job->rank; r++)
				sum = (uint8_t)(sum + share_pattern(turn * 8 + r, i));
			CHECK_EQ(recv[i], sum);
		}
	}
	if (heap)
		oc_free(send);
	else
		free(send);
	oc_free(recv);
}

/* Folds of some operands, and of what other folds have made. */
static void test_sums(struct job *job)
{
	static const uint64_t sizes[] = {1, 4097, 200000};
	oc_node *node = job_join(job);
	struct oc_group *group = members_join(job, node);

	for (size_t i = 0; i < 4 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct oc_plan *plan = (i & 1 ? plans_scan : plans_pass)(job, sizes[i / 4]);

		repeat_sum(job, group, plan, i & 2);
		free(plan);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	oc_group_destroy(group);
	oc_node_leave(node);
}

/* Members that bind different amounts fail, each by what it sees or by the other's giving
 * up, and are in step again. */
static void test_unequal(struct job *job)
{
	oc_node *node = job_join(job);
	struct oc_group *group = members_join(job, node);
	uint8_t *send = oc_alloc(2000), *recv = oc_alloc(2000);

	for (uint64_t turn = 0; turn < 20; turn++) {
		uint64_t bytes = turn % 2 && job->rank ? 1000 : 2000;
		struct oc_plan *plan = plans_ring(job, bytes);
		struct oc_bind bind = {
			.send = send, .send_bytes = bytes, .recv = recv, .recv_bytes = bytes};
		int err = oc_exec_inline(group, plan, &bind);

		if (turn % 2)
			CHECK_EQ(err, -EMSGSIZE);
		else
			CHECK_EQ(err, 0);
		free(plan);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	oc_free(send);
	oc_free(recv);
	oc_group_destroy(group);
	oc_node_leave(node);
}

enum { LATE_BYTES = 16 << 20, LATE_COPIES = 200, VICTIM = 0, WRITER = 1, DYING = 2 };

/* Words that the ranks of the next test share. */
enum { WRITER_PID, WRITER_STOPPED, VICTIM_LEFT, WRITER_LEFT };

/* The writer copies to the victim, again and again, which waits for a rank that will die. */
static struct oc_plan *plan_late(const struct job *job)
{
	struct oc_shape shape = {.rank = (uint16_t)job->rank,
				 .size = (uint16_t)job->nranks,
				 .granule = 1,
				 .bytes = LATE_BYTES};
	struct oc_draft draft = {.shape = shape};
	struct oc_step copy = {.kind = OC_STEP_COPY, .len = LATE_BYTES};

	copy.src = oc_ref(OC_SLOT_SEND, WRITER, 0);
	copy.dst = oc_ref(OC_SLOT_RECV, VICTIM, 0);
	if (job->rank == VICTIM) {
		oc_draft_add(&draft, plans_message(OC_STEP_WAIT, DYING, FIRST, 0), 0);
	} else if (job->rank == WRITER) {
		oc_draft_add(&draft, plans_message(OC_STEP_WAIT, VICTIM, OC_EVENT_READY, 0), 0);
		for (int i = 0; i < LATE_COPIES; i++)
			oc_draft_add(&draft, copy, 0);
		oc_draft_add(&draft, (struct oc_step){.kind = OC_STEP_POST, .event = FIRST}, 0);
	}
	return plans_finish(&draft);
}

struct late {
	struct job *job;
	volatile uint8_t *recv;
};

/* A thread of the victim: stops the writer in the middle of its copies, upon which a rank
 * dies, and lets it go on when the victim has left, or will not before. */
static void *conduct(void *arg)
{
	struct late *late = arg;
	pid_t writer = (pid_t)share_hear(late->job, WRITER_PID);

	while (*late->recv == 0xee)
		share_nap_us(1);
	CHECK_EQ(kill(writer, SIGSTOP), 0);
	share_tell(late->job, WRITER_STOPPED, 1);
	for (int i = 0; i < 1000 && !atomic_load(&late->job->shared->word[VICTIM_LEFT]); i++)
		share_nap_us(1000);
	CHECK_EQ(kill(writer, SIGCONT), 0);
	return NULL;
}

/* Whoever has left an operation with an error is written by nobody any more. */
static void test_late(struct job *job)
{
	oc_node *node = job_join(job);
	struct oc_group *group = members_join(job, node);
	struct oc_plan *plan = plan_late(job);
	uint8_t *send = oc_alloc(LATE_BYTES), *recv = oc_alloc(LATE_BYTES);
	struct oc_bind bind = {
		.send = send, .send_bytes = LATE_BYTES, .recv = recv, .recv_bytes = LATE_BYTES};
	struct late late = {job, recv};
	pthread_t thread;

	CHECK(send && recv);
	memset(send, 0x11, LATE_BYTES);
	memset(recv, 0xee, LATE_BYTES);
	CHECK_EQ(oc_node_barrier(node), 0);
	if (job->rank == DYING) {
		share_hear(job, WRITER_STOPPED);
		job_die();
	} else if (job->rank == WRITER) {
		share_tell(job, WRITER_PID, (uint64_t)getpid());
		CHECK_EQ(oc_exec_inline(group, plan, &bind), 0);
		share_tell(job, WRITER_LEFT, 1);
	} else {
		CHECK_EQ(pthread_create(&thread, NULL, conduct, &late), 0);
		CHECK_EQ(oc_exec_inline(group, plan, &bind), -EPIPE);
		memset(recv, 0x77, LATE_BYTES);
		share_tell(job, VICTIM_LEFT, 1);
		CHECK_EQ(pthread_join(thread, NULL), 0);
		share_hear(job, WRITER_LEFT);
		for (size_t i = 0; i < LATE_BYTES; i++)
			CHECK_EQ(recv[i], 0x77);
	}
	free(plan);
	oc_free(send);
	oc_free(recv);
	oc_group_destroy(group);
	oc_node_leave(node);
}

/* A member that comes when another has given up finds that out before it writes. */
static void test_later(struct job *job)
{
	oc_node *node = job_join(job);
	struct oc_group *group = members_join(job, node);
	struct oc_plan *plan = plan_late(job);
	uint8_t *send = oc_alloc(LATE_BYTES), *recv = oc_alloc(LATE_BYTES);
	struct oc_bind bind = {
		.send = send, .send_bytes = LATE_BYTES, .recv = recv, .recv_bytes = LATE_BYTES};

	CHECK(send && recv);
	memset(send, 0x11, LATE_BYTES);
	CHECK_EQ(oc_node_barrier(node), 0);
	if (job->rank == DYING) {
		job_die();
	} else if (job->rank == WRITER) {
		share_hear(job, VICTIM_LEFT);
		CHECK_EQ(oc_exec_inline(group, plan, &bind), -EPIPE);
		share_tell(job, WRITER_LEFT, 1);
	} else {
		CHECK_EQ(oc_exec_inline(group, plan, &bind), -EPIPE);
		memset(recv, 0x77, LATE_BYTES);
		share_tell(job, VICTIM_LEFT, 1);
		share_hear(job, WRITER_LEFT);
		for (size_t i = 0; i < LATE_BYTES; i++)
			CHECK_EQ(recv[i], 0x77);
	}
	free(plan);
	oc_free(send);
	oc_free(recv);
	oc_group_destroy(group);
	oc_node_leave(node);
}

/* Rank @from's bytes to rank @to, who alone take part. */
static void pair(struct job *job, struct oc_group *group, uint32_t from, uint32_t to,
		 uint8_t *memory, uint64_t turn)
{
	enum { BYTES = 5000 };
	struct oc_shape shape = {.rank = (uint16_t)job->rank,
				 .size = (uint16_t)job->nranks,
				 .granule = 1,
				 .bytes = BYTES};
	struct oc_draft draft = {.shape = shape};
	struct oc_plan *plan;
	struct oc_step step = plans_message(OC_STEP_RECV, from, FIRST, FIRST);
	struct oc_bind bind = {
		.send = memory, .send_bytes = BYTES, .recv = memory, .recv_bytes = BYTES};

	step.len = BYTES;
	step.src = oc_ref(OC_SLOT_SEND, from, 0);
	step.dst = oc_ref(OC_SLOT_RECV, to, 0);
	if (job->rank == to)
		oc_draft_add(&draft, step, 0);
	else
		oc_draft_add(&draft, plans_message(OC_STEP_SEND, to, FIRST, FIRST), 0);
	plan = plans_finish(&draft);
	for (uint32_t i = 0; i < BYTES; i++)
		memory[i] = job->rank == from ? share_pattern(turn, i) : 0xee;
	CHECK_EQ(oc_exec_inline(group, plan, &bind), 0);
	for (uint32_t i = 0; i < BYTES; i++)
		CHECK_EQ(memory[i], share_pattern(turn, i));
	free(plan);
}

/*
 * Operations in which only two take part, few or many of them one after the other: no
 * member waits for one that has no part in them, however far that is ahead or behind. One that
 * has none for long, rank 0 at times, hears of the others by other means.
 */
static void test_skip(struct job *job)
{
	enum { TURNS = 4000, HELD = 700 };
	oc_node *node = job_join(job);
	struct oc_group *group = members_join(job, node);
	uint8_t *memory = oc_alloc(5000);
	uint64_t random = 1; /* the same on all ranks */

	CHECK(memory);
	for (uint64_t turn = 0; turn < TURNS; turn++) {
		uint64_t drawn = random_next(&random);
		uint32_t from, to;

		from = (uint32_t)(drawn >> 33) % job->nranks;
		to = (from + 1 + (uint32_t)(drawn >> 45) % (job->nranks - 1)) % job->nranks;
		/* For long rank 0 is in none of them, and at the end of that stands still
		 * until the others have come so far. */
		if (turn / HELD % 2) {
			from = 1 + (uint32_t)(drawn >> 33) % 2;
			to = 3 - from;
		}
		if (turn % HELD == 0 && turn / HELD % 2 && job->rank == 0)
			share_hear(job, (int)(turn / HELD));
		if (job->rank != from && job->rank != to)
			oc_group_skip(group);
		else if (drawn >> 60 || turn / HELD % 2)
			pair(job, group, from, to, memory, turn);
		else
			oc_group_skip(group);
		if (turn % HELD == 7 && turn / HELD % 2 && job->rank == 1)
			share_tell(job, (int)(turn / HELD), 1);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	oc_free(memory);
	oc_group_destroy(group);
	oc_node_leave(node);
}

/* Of a broadcast to many who are served by the root, each leaves without those who are late, in
 * whatever order they come. */
static void test_late_leaf(struct job *job)
{
	enum { BYTES = 20000, LEFT = 0 };
	oc_node *node = job_join(job);
	struct oc_group *group = members_join(job, node);
	struct oc_shape shape = {.coll = OC_COLL_BCAST,
				 .rank = (uint16_t)job->rank,
				 .size = (uint16_t)job->nranks,
				 .granule = 1,
				 .bytes = BYTES};
	uint8_t *buffer = oc_alloc(BYTES);
	struct oc_bind bind = {
		.send = buffer, .send_bytes = BYTES, .recv = buffer, .recv_bytes = BYTES};

	CHECK(buffer);
	for (uint32_t turn = 0; turn < 2 * job->nranks; turn++) {
		uint32_t root = turn % job->nranks, late = (root + 1) % job->nranks;
		struct oc_plan *plan;

		shape.root = (uint16_t)root;
		plan = oc_coll_bcast(&shape);
		CHECK(plan);
		for (uint32_t i = 0; i < BYTES; i++)
			buffer[i] = job->rank == root ? share_pattern(turn, i) : 0xee;
		while (job->rank == late &&
		       atomic_load(&job->shared->word[LEFT]) < (turn + 1) * (job->nranks - 2))
			share_nap_us(10);
		CHECK_EQ(oc_exec_inline(group, plan, &bind), 0);
		if (job->rank != late && job->rank != root)
			atomic_fetch_add(&job->shared->word[LEFT], 1);
		for (uint32_t i = 0; i < BYTES; i++)
			CHECK_EQ(buffer[i], share_pattern(turn, i));
		free(plan);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	oc_free(buffer);
	oc_group_destroy(group);
	oc_node_leave(node);
}

enum { GO, LAST = OC_EVENT_END - 1 };

static struct {
	struct job *job;
	oc_node *node;
	uint64_t start;
	bool told;
} listener;

/* Called in the middle of a wait: when that would sleep, the other rank says its last words. */
static void let_go(void)
{
	if (listener.told || oc_clock_ns() - listener.start < 200 * 1000000u)
		return;
	listener.told = true;
	share_tell(listener.job, GO, 1);
	while (oc_node_peer_alive(listener.node, 0))
		share_nap_us(100);
}

/* Rank 1's part: what it waits for comes as rank 0 is about to die. */
static void await_last(struct job *job, oc_node *node, struct oc_group *group, struct oc_step step,
		       const struct oc_bind *bind)
{
	struct oc_draft draft = {.shape = {.rank = 1, .size = 2, .granule = 1}};
	struct oc_plan *plan;

	listener.job = job;
	listener.node = node;
	listener.start = oc_clock_ns();
	group->wait.progress = let_go;
	oc_draft_add(&draft, step, 0);
	plan = plans_finish(&draft);
	CHECK_EQ(oc_exec_inline(group, plan, bind), 0);
	CHECK(listener.told);
	free(plan);
	oc_group_destroy(group);
	oc_node_leave(node);
}

/* Of two events beside the word, posted one after the other, nothing shows in that: who posts them
 * and is gone has posted them all the same. */
static void test_last_words(struct job *job)
{
	oc_node *node = job_join(job);
	struct oc_group *group = members_join(job, node);
	struct oc_bind bind = {0};
	struct oc_issued op;

	if (job->rank == 0) {
		oc_group_issue(group, &op);
		oc_group_take_line(group, &op)->bytes = 0;
		oc_group_post(group, &op, OC_EVENT_READY);
		share_hear(job, GO);
		oc_group_post(group, &op, LAST);
		oc_group_post(group, &op, LAST - 1);
		job_die();
	}
	await_last(job, node, group, plans_message(OC_STEP_WAIT, 0, LAST, 0), &bind);
}

/* The same of who leaves the operation out: in a wrong program that ends the wait for a pair. */
static void test_left_out(struct job *job)
{
	oc_node *node = job_join(job);
	struct oc_group *group = members_join(job, node);
	uint8_t pairs[4] = {0};
	struct oc_bind bind = {.pair = pairs};
	struct oc_step step = plans_message(OC_STEP_WAIT, 0, FIRST, 0);

	if (job->rank == 0) {
		share_hear(job, GO);
		oc_group_skip(group);
		job_die();
	}
	step.flags = OC_STEP_PAIR;
	step.len = 1;
	await_last(job, node, group, step, &bind);
	CHECK_EQ(pairs[0], OC_PAIR_ABSENT);
}

int main(int argc, char **argv)
{
	static const struct job_case cases[] = {
		{"ring", 2, 5, test_ring},	     {"chain", 2, 5, test_chain},
		{"unequal", 2, 3, test_unequal},     {"late", 3, 3, test_late},
		{"later", 3, 3, test_later},	     {"skip", 3, 6, test_skip},
		{"sums", 2, 5, test_sums},	     {"last_words", 2, 2, test_last_words},
		{"late_leaf", 3, 5, test_late_leaf}, {"left_out", 2, 2, test_left_out},
	};

	return job_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
