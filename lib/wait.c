// SPDX-License-Identifier: BSD-3-Clause
/*
 * Waiting for a peer: poll, then yield the core, then sleep on a futex.
 *
 * While each rank has a core of its own, polling a few microseconds sees the
 * peer's store soonest. With more ranks than cores the peer may need this very
 * core, so the first thing to do is to yield it; and to go on for long, because a
 * core whose ranks all sleep takes one from another core, which then is missing
 * here until the scheduler evens that out, many operations later. Whatever
 * happens, a waiter calls progress() every few microseconds: the peer may be
 * unable to come before the host MPI has moved a message of ours. Sleeps are
 * short, because nothing but the next turn of this loop drives that progress.
 */
#include "wait.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "futex.h"
#include "group.h"

#define PROGRESS_POLLS	128  /* polls between calls of progress() */
#define YIELDS_ALONE	4096 /* yields before sleeping, with a core of one's own: 1 ms */
#define SHARED_MS	100  /* of yielding before it, with ranks that share cores */
#define PROGRESS_YIELDS 4
#define SLEEP_NS	200000
#define ALIVE_SLEEPS	64 /* sleeps between looks at the peer: about 13 ms */

/* The half of the word that changes with every store. */
static uint32_t *futex_of(struct oc_ep_line *line)
{
	uint32_t *half = (uint32_t *)&line->word;

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	half++;
#endif
	return half;
}

void oc_line_wake(struct oc_ep_line *line)
{
	/* Pairs with the fence in line_sleep(): either the waiter sees the new
	 * word, or this load sees the waiter. A waiter for anything else in
	 * the line may miss the wake; its short sleep ends by itself. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&line->sleepers, memory_order_relaxed))
		return;
	atomic_store_explicit(&line->sleepers, 0, memory_order_relaxed);
	syscall(SYS_futex, futex_of(line), FUTEX_WAKE, 0x7fffffff, NULL, NULL, 0);
}

void oc_line_publish(struct oc_ep_line *line, uint64_t word)
{
	atomic_store_explicit(&line->word, word, memory_order_release);
	oc_line_wake(line);
}

static void line_sleep(struct oc_ep_line *line, uint64_t seen)
{
	struct timespec limit = {.tv_nsec = SLEEP_NS};

	atomic_store_explicit(&line->sleepers, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&line->word, memory_order_relaxed) == seen)
		syscall(SYS_futex, futex_of(line), FUTEX_WAIT, (uint32_t)seen, &limit, NULL, 0);
}

/* Whether it is too early to sleep after @turn yields. A yield among ranks that
 * share cores may take a time slice: those are not counted, but timed. */
static bool shall_yield(struct oc_group *group, uint32_t turn)
{
	if (!group->node->oversubscribed)
		return turn < YIELDS_ALONE;
	if (!turn)
		group->yields_since = oc_clock_coarse_ms();
	return oc_clock_coarse_ms() - group->yields_since < SHARED_MS;
}

int oc_group_idle(struct oc_group *group, uint32_t peer, struct oc_ep_line *line, uint64_t seen)
{
	uint32_t spin = group->node->spin;
	uint32_t turn = group->idle++;

	if (turn < spin) {
		oc_cpu_relax();
		if (group->progress && turn % PROGRESS_POLLS == PROGRESS_POLLS - 1)
			group->progress();
		return 0;
	}
	turn -= spin;
	if (shall_yield(group, turn)) {
		sched_yield();
		if (group->progress && turn % PROGRESS_YIELDS == PROGRESS_YIELDS - 1)
			group->progress();
		return 0;
	}
	if (group->progress)
		group->progress();
	line_sleep(line, seen);
	if (turn % ALIVE_SLEEPS == ALIVE_SLEEPS - 1 &&
	    !oc_node_peer_alive(group->node, group->node_rank[peer])) {
		/* It may have posted its last word before it left. */
		if (atomic_load_explicit(&line->word, memory_order_acquire) == seen)
			return -EPIPE;
	}
	return 0;
}
