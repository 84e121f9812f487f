// SPDX-License-Identifier: BSD-3-Clause
/*
 * A mapping of an arena keeps its memory when its owner has ended. So a thread looks once a second
 * who still lives, as long as there is anybody: this process may never make a call again.
 *
 * A forked child has neither the mappings nor the thread, and is no member: oc_node_mine().
 */
#include "lone.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "access/arena_find.h"
#include "access/window.h"
#include "base/clock.h"
#include "base/space.h"
#include "base/thread.h"
#include "heap/heap.h"

#define MOST	   32	/* ranks; the first is this process */
#define REFUSALS   64	/* remembered, by PID */
#define AGAIN_MS   1000 /* after these it is looked again */
#define WATCH_MS   1000
#define LOCK_MS	   20
#define STACK_SIZE ((size_t)256 << 10)

struct member {
	pid_t pid;	       /* 0: a free place */
	bool gone;	       /* given away no more, and forgotten when nobody holds it */
	_Atomic uint32_t held; /* calls; falls without the lock */
	uint64_t seen_ms;      /* when it still stood */
	struct oc_arena_found found;
};

struct refusal {
	pid_t pid;
	uint64_t until_ms;
};

static struct oc_segment_rank ranks[MOST];
static struct oc_node_peer peers[MOST];
static struct oc_node node = {
	.segment_fd = -1,
	.ranks = ranks,
	.peers = peers,
	.nranks = MOST,
	.mech_mask = OC_MECH_HEAP,
};

/* Under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct member members[MOST];
static struct refusal refusals[REFUSALS];
static uint64_t mapped, mapped_most;
static bool watched; /* the thread runs */
static bool ended;

struct oc_node *oc_procvm_lone_begin(void)
{
	struct oc_space_windows bounds;
	struct oc_space space;

	oc_space_measure(&space);
	oc_space_windows(&space, MOST, &bounds);
	mapped_most = bounds.total;
	node.pid = (uint32_t)getpid();
	ranks[0].pid = node.pid;
	ranks[0].arena_base = oc_heap_range.base;
	ranks[0].arena_size = oc_heap_range.size;
	return &node;
}

static void forget(uint32_t rank)
{
	mapped -= members[rank].found.size;
	oc_window_close(&node, rank);
	members[rank].pid = 0;
	members[rank].gone = false;
}

static void give_up(uint32_t rank)
{
	members[rank].gone = true;
	if (!atomic_load_explicit(&members[rank].held, memory_order_acquire))
		forget(rank);
}

/* Whether a member still is who it was when it was found, less than a ms ago. */
static bool stands(struct member *member)
{
	uint64_t now = oc_clock_coarse_ms();

	if (now == member->seen_ms)
		return true;
	if (!oc_arena_stands(&member->found))
		return false;
	member->seen_ms = now;
	return true;
}

/* How many are left. */
static uint32_t sweep(void)
{
	uint32_t left = 0;

	for (uint32_t i = 1; i < MOST; i++) {
		if (!members[i].pid)
			continue;
		if (members[i].gone || !stands(&members[i]))
			give_up(i);
		left += members[i].pid != 0;
	}
	return left;
}

static void *watch(void *arg)
{
	const struct timespec pause = {.tv_sec = WATCH_MS / 1000};
	bool more = true;

	while (more) {
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&lock);
		more = watched = sweep() > 0;
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

static bool start_watch(void)
{
	pthread_t thread;

	if (watched)
		return true;
	watched = !oc_thread_start(&thread, STACK_SIZE, watch, NULL);
	if (watched)
		pthread_detach(thread);
	return watched;
}

static bool find_member(pid_t pid, uint32_t *rank)
{
	for (*rank = 1; *rank < MOST; ++*rank)
		if (members[*rank].pid == pid && !members[*rank].gone)
			return true;
	return false;
}

static bool find_room(uint32_t *rank)
{
	for (*rank = 1; *rank < MOST; ++*rank)
		if (!members[*rank].pid)
			return true;
	return false;
}

static int map(uint32_t rank, const struct oc_arena_found *found)
{
	int err;

	if (found->size > mapped_most - mapped)
		return -ENOMEM;
	ranks[rank].arena_base = found->base;
	ranks[rank].arena_size = found->size;
	err = oc_window_open(&node, rank, found->fd);
	if (!err)
		mapped += found->size;
	return err;
}

/* A place for a process that has none. */
static int meet(pid_t pid, uint32_t *rank)
{
	struct oc_arena_found found;
	int err;

	sweep();
	if (!find_room(rank))
		return -ENOMEM;
	err = oc_arena_find(pid, &found);
	if (err)
		return err;
	err = map(*rank, &found);
	/* close() is a cancellation point, and the lock is held. */
	syscall(SYS_close, found.fd);
	if (err)
		return err;
	members[*rank].pid = pid;
	members[*rank].found = found;
	members[*rank].seen_ms = 0;
	if (start_watch())
		return 0;
	forget(*rank);
	return -EAGAIN;
}

static bool is_refused(pid_t pid)
{
	const struct refusal *last = &refusals[(uint32_t)pid % REFUSALS];

	return last->pid == pid && oc_clock_coarse_ms() < last->until_ms;
}

static void note_refusal(pid_t pid)
{
	refusals[(uint32_t)pid % REFUSALS] =
		(struct refusal){.pid = pid, .until_ms = oc_clock_coarse_ms() + AGAIN_MS};
}

static bool hold(pid_t pid, uint32_t *rank)
{
	if (ended || pid <= 0 || (uint32_t)pid == node.pid)
		return false;
	if (find_member(pid, rank)) {
		if (stands(&members[*rank]))
			return true;
		give_up(*rank);
	}
	if (is_refused(pid))
		return false;
	if (!meet(pid, rank))
		return true;
	note_refusal(pid);
	return false;
}

/* A handler of a signal may have left a call by a jump, and the lock with it: nobody waits for
 * that. */
static bool lock_soon(void)
{
	struct timespec until;

	if (!pthread_mutex_trylock(&lock))
		return true;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOCK_MS * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	return !pthread_mutex_timedlock(&lock, &until);
}

bool oc_procvm_lone_hold(pid_t pid, uint32_t *rank)
{
	bool held;

	if (!lock_soon())
		return false;
	held = hold(pid, rank);
	if (held)
		atomic_fetch_add_explicit(&members[*rank].held, 1, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
	return held;
}

void oc_procvm_lone_drop(uint32_t rank)
{
	atomic_fetch_sub_explicit(&members[rank].held, 1, memory_order_release);
}

void oc_procvm_lone_end(void)
{
	if (!lock_soon())
		return;
	ended = true;
	for (uint32_t i = 1; i < MOST; i++)
		if (members[i].pid && !members[i].gone)
			give_up(i);
	pthread_mutex_unlock(&lock);
}
