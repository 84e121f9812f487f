// SPDX-License-Identifier: BSD-3-Clause
/* Copies made by both ends: all of it arrives, by one hand each, and nobody writes later. */
/* Its functions, too, for what two processes do in too short a time to be met by chance. */
#include "../../procvm/help.c"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "access/window.h"
#include "heap/arena.h"
#include "heap/heap.h"
#include "../conform/job.h"

enum { ROOM = 1 << 20, ASKERS = 2, RANKS = 3, GUARD = 64, ROUNDS = 150 };
/* Each thread that asks has a room in every rank's block, and one more in its own. */
enum { ROOMS = ASKERS * (RANKS + 1) };
enum { LEAST_HELPED = 16 * ROOM };
enum { WORD_DONE, WORD_HELPED, WORD_BLOCK, WORD_PID = WORD_BLOCK + RANKS };

struct side {
	oc_node *node;
	char *block; /* ROOMS rooms of the arena */
};

struct asker {
	struct job *job;
	struct side *side;
	unsigned index;
	unsigned seed;
	pthread_t thread;
};

static uint64_t offset_of(const struct side *side)
{
	return (uintptr_t)side->block - oc_heap_range.base;
}

static struct side join(struct job *job)
{
	struct side side = {.node = job_join(job), .block = oc_alloc((size_t)ROOMS * ROOM)};

	CHECK(side.node && side.block);
	side.node->oversubscribed = false; /* here it is what is to be tried */
	job->shared->word[WORD_BLOCK + job->rank] = offset_of(&side);
	job->shared->word[WORD_PID + job->rank] = (uint64_t)getpid();
	CHECK_EQ(oc_node_barrier(side.node), 0);
	return side;
}

static void leave(struct side *side)
{
	oc_procvm_help_end(side->node);
	CHECK_EQ(oc_node_barrier(side->node), 0);
	oc_free(side->block);
	oc_node_leave(side->node);
}

static char *at(const struct side *side, const struct oc_window_use *use, uint32_t rank,
		uint64_t off, size_t len)
{
	char *p = oc_window_at(use, side->node, rank, off, len);

	CHECK(p);
	return p;
}

/* What is in @to is what was in @from, and what lies around it is as it was. */
static void check(const char *to, const char *from, size_t bytes)
{
	CHECK(!memcmp(to, from, bytes));
	for (int i = 1; i <= GUARD; i++)
		CHECK(to[-i] == 'g' && to[bytes + (size_t)i - 1] == 'g');
}

static bool all_are(const char *p, size_t bytes, char what)
{
	return !bytes || (p[0] == what && !memcmp(p, p + 1, bytes - 1));
}

/* Between rooms that only this thread uses. Nobody writes to the destination after it. */
static void copy_once(struct asker *asker)
{
	const struct job *job = asker->job;
	struct side *side = asker->side;
	struct oc_store_turn stores = {.past = rand_r(&asker->seed) % 2};
	uint32_t other = (uint32_t)rand_r(&asker->seed) % (job->nranks - 1);
	size_t theirs = (size_t)(job->rank * ASKERS + asker->index) * ROOM + GUARD;
	size_t own = (size_t)(RANKS * ASKERS + asker->index) * ROOM + GUARD;
	struct oc_procvm_share share = {
		.peer = other + (other >= job->rank),
		.direction = rand_r(&asker->seed) % 2 ? OC_GET : OC_PUT,
		.here = side->block + own + rand_r(&asker->seed) % 100,
		.bytes = (size_t)rand_r(&asker->seed) % (ROOM - 100 - 2 * GUARD),
	};
	struct oc_window_use use;
	char *from, *to;
	int seed;

	oc_window_begin(&use, side->node);
	share.there_off = job->shared->word[WORD_BLOCK + share.peer] + theirs;
	share.there_off += (uint64_t)rand_r(&asker->seed) % 100;
	share.there = at(side, &use, share.peer, share.there_off - GUARD,
			 share.bytes + (size_t)2 * GUARD) +
		      GUARD;
	from = share.direction == OC_GET ? share.there : share.here;
	to = share.direction == OC_GET ? share.here : share.there;
	memset(to - GUARD, 'g', share.bytes + (size_t)2 * GUARD);
	seed = rand_r(&asker->seed);
	for (size_t i = 0; i < share.bytes; i++)
		from[i] = (char)((seed + i * 31) >> i % 3);
	oc_procvm_copy_with_help(side->node, &share, &stores);
	check(to, from, share.bytes);
	memset(to, 'g', share.bytes);
	for (int turn = 0; turn < 3; turn++)
		CHECK(all_are(to, share.bytes, 'g'));
	oc_window_end(&use);
}

static void help_once(struct job *job, struct side *side)
{
	if (oc_procvm_is_asked())
		job->shared->word[WORD_HELPED] += oc_procvm_give_help(side->node);
	else
		sched_yield();
}

/* Not for ever where there is no help, for a rank has its time: but help there is to be. */
static void *ask(void *arg)
{
	struct asker *asker = arg;
	struct job_shared *shared = asker->job->shared;

	for (int i = 0; i < ROUNDS || shared->word[WORD_HELPED] < LEAST_HELPED; i++)
		copy_once(asker);
	atomic_fetch_add(&shared->word[WORD_DONE], 1);
	return NULL;
}

/* All ranks ask and help, from two threads and a third. */
static void test_random(struct job *job)
{
	struct side side = join(job);
	struct asker askers[ASKERS];

	CHECK(oc_procvm_help_begin(side.node));
	for (unsigned i = 0; i < ASKERS; i++) {
		askers[i] = (struct asker){job, &side, i, (unsigned)job_random(), 0};
		CHECK(!pthread_create(&askers[i].thread, NULL, ask, &askers[i]));
	}
	while (job->shared->word[WORD_DONE] < (uint64_t)ASKERS * job->nranks)
		help_once(job, &side);
	for (unsigned i = 0; i < ASKERS; i++)
		CHECK(!pthread_join(askers[i].thread, NULL));
	leave(&side);
}

/* All of a room of rank 0 and one's own. */
static struct oc_procvm_share share_room(const struct job *job, const struct side *side,
					 const struct oc_window_use *use,
					 enum oc_direction direction)
{
	struct oc_procvm_share share = {
		.peer = 0,
		.direction = direction,
		.here = side->block,
		.there_off = job->shared->word[WORD_BLOCK],
		.bytes = ROOM,
	};

	share.there = at(side, use, 0, share.there_off, ROOM);
	return share;
}

static void copy_room(const struct job *job, const struct side *side, enum oc_direction direction)
{
	struct oc_store_turn stores = {.past = false};
	struct oc_procvm_share share;
	struct oc_window_use use;
	char *from, *to;

	oc_window_begin(&use, side->node);
	share = share_room(job, side, &use, direction);
	from = direction == OC_GET ? share.there : share.here;
	to = direction == OC_GET ? share.here : share.there;
	for (size_t i = 0; i < ROOM; i++)
		from[i] = (char)(i * 7);
	memset(to, 0, ROOM);
	oc_procvm_copy_with_help(side->node, &share, &stores);
	for (size_t i = 0; i < ROOM; i++)
		CHECK(to[i] == (char)(i * 7));
	oc_window_end(&use);
}

static void copy_for_ever(const struct job *job, const struct side *side)
{
	struct oc_store_turn stores = {.past = false};
	struct oc_procvm_share share;
	struct oc_window_use use;

	oc_window_begin(&use, side->node);
	share = share_room(job, side, &use, OC_GET);
	for (;;)
		oc_procvm_copy_with_help(side->node, &share, &stores);
}

/* Neither a rank that never looks, nor one that could and does not, nor one that does no more. */
static void test_alone(struct job *job)
{
	struct side side = join(job);

	if (job->rank == 1)
		copy_room(job, &side, OC_GET);
	CHECK_EQ(oc_node_barrier(side.node), 0);
	if (job->rank == 0)
		CHECK(oc_procvm_help_begin(side.node) && !oc_procvm_is_asked());
	CHECK_EQ(oc_node_barrier(side.node), 0);
	if (job->rank == 1)
		copy_room(job, &side, OC_PUT);
	CHECK_EQ(oc_node_barrier(side.node), 0);
	if (job->rank == 0) {
		CHECK(!oc_procvm_is_asked());
		CHECK_EQ(oc_procvm_give_help(side.node), 0);
		oc_procvm_help_end(side.node);
	}
	CHECK_EQ(oc_node_barrier(side.node), 0);
	if (job->rank == 1)
		copy_room(job, &side, OC_GET);
	leave(&side);
}

static void die(int number)
{
	(void)number;
	job_die();
}

/* A peer that has taken a piece, and dies over it: whoever asked has it all the same. */
static void test_dead(struct job *job)
{
	struct side side = join(job);

	if (job->rank == 0) {
		CHECK(oc_procvm_help_begin(side.node));
		CHECK(!mprotect((void *)oc_heap_range.base, oc_heap_range.size, PROT_NONE));
		signal(SIGSEGV, die);
		CHECK_EQ(oc_node_barrier(side.node), 0);
		for (;;)
			if (oc_procvm_is_asked())
				oc_procvm_give_help(side.node);
	}
	CHECK_EQ(oc_node_barrier(side.node), 0);
	for (int i = 0; oc_node_alive(side.node, 0) == 1; i++)
		copy_room(job, &side, i % 2 ? OC_GET : OC_PUT);
	oc_node_leave(side.node);
}

/* Killed while it asks: the one it asked is asked by others all the same. */
static void test_asker_dies(struct job *job)
{
	struct side side = join(job);
	struct job_shared *shared = job->shared;

	if (job->rank == 0) {
		CHECK(oc_procvm_help_begin(side.node));
		while (!oc_procvm_is_asked())
			sched_yield();
		CHECK(!kill((pid_t)shared->word[WORD_PID + 2], SIGKILL));
		while (oc_node_alive(side.node, 2) == 1)
			sched_yield();
		shared->word[WORD_DONE] = 1;
		while (shared->word[WORD_DONE] == 1)
			help_once(job, &side);
		oc_procvm_help_end(side.node);
	} else if (job->rank == 1) {
		while (!shared->word[WORD_DONE])
			sched_yield();
		while (shared->word[WORD_HELPED] < LEAST_HELPED)
			copy_room(job, &side, OC_GET);
		shared->word[WORD_DONE] = 2;
	} else {
		copy_for_ever(job, &side);
	}
	oc_node_leave(side.node);
}

/* What rank 0 has read of an offer is no longer so: it is another's, has ended, is the next one. */
static void test_stale(struct job *job)
{
	struct side side = join(job);
	struct help *help = help_of(side.node, 1);
	struct oc_window_use use;
	struct offer offer = {0}, later = {0};
	uint32_t index;

	CHECK(oc_procvm_help_begin(side.node));
	CHECK_EQ(oc_node_barrier(side.node), 0);
	oc_window_begin(&use, side.node);
	for (int turn = 0; turn < 3; turn++) {
		struct oc_procvm_share share = share_room(job, &side, &use, OC_GET);

		share.peer = turn == 0 ? 2 : 0;
		if (job->rank == 1)
			CHECK(begin(side.node, &share, false, turn < 2 ? &offer : &later));
		CHECK_EQ(oc_node_barrier(side.node), 0);
		if (job->rank == 0 && turn == 0)
			CHECK_EQ(help_with(side.node, &use, 1), 0);
		if (job->rank == 0 && turn == 1) {
			offer.number = atomic_load(&help->next);
			cut(&offer, ROOM);
		}
		if (job->rank == 0 && turn == 2)
			CHECK(!take(help, &offer, &index));
		CHECK_EQ(oc_node_barrier(side.node), 0);
		if (job->rank == 1) {
			while (take(help, turn < 2 ? &offer : &later, &index))
				;
			end(side.node, share.peer, turn < 2 ? &offer : &later);
		}
		CHECK_EQ(oc_node_barrier(side.node), 0);
		if (job->rank == 0)
			CHECK_EQ(help_with(side.node, &use, 1), 0);
		CHECK_EQ((uint32_t)atomic_load(&help->next), CLOSED);
		CHECK_EQ(oc_node_barrier(side.node), 0);
	}
	oc_window_end(&use);
	leave(&side);
}

/* How many of @calls short copies are offered to rank 0. */
static uint64_t offers(const struct job *job, const struct side *side, int calls)
{
	const struct help *mine = help_of(side->node, job->rank);
	uint64_t before = atomic_load(&mine->next) >> 32;
	struct oc_store_turn stores = {.past = false};
	struct oc_procvm_share share;
	struct oc_window_use use;

	oc_window_begin(&use, side->node);
	share = share_room(job, side, &use, OC_GET);
	share.bytes = SHARED_MIN;
	for (int i = 0; i < calls; i++)
		oc_procvm_copy_with_help(side->node, &share, &stores);
	oc_window_end(&use);
	return (atomic_load(&mine->next) >> 32) - before;
}

/* A peer that takes nothing is asked now and then, and about long copies; once it has, always. */
static void test_in_vain(struct job *job)
{
	struct side side = join(job);

	if (job->rank == 0)
		CHECK(oc_procvm_help_begin(side.node));
	CHECK_EQ(oc_node_barrier(side.node), 0);
	if (job->rank == 1) {
		CHECK_EQ(offers(job, &side, IN_VAIN), IN_VAIN);
		CHECK_EQ(offers(job, &side, 4 * ONE_OF), 4);
	}
	CHECK_EQ(oc_node_barrier(side.node), 0);
	while (job->rank == 0 && !job->shared->word[WORD_DONE])
		help_once(job, &side);
	while (job->rank == 1 && vain[0])
		copy_room(job, &side, OC_GET);
	job->shared->word[WORD_DONE] = 1;
	CHECK_EQ(oc_node_barrier(side.node), 0);
	if (job->rank == 1)
		CHECK_EQ(offers(job, &side, IN_VAIN), IN_VAIN);
	CHECK_EQ(oc_node_barrier(side.node), 0);
	leave(&side);
}

int main(int argc, char **argv)
{
	static const struct job_case cases[] = {
		{"random", 2, 3, test_random}, {"alone", 2, 2, test_alone},
		{"dead", 2, 2, test_dead},     {"asker_dies", 3, 3, test_asker_dies},
		{"stale", 3, 3, test_stale},   {"in_vain", 2, 2, test_in_vain},
	};

	return job_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
