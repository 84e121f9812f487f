// SPDX-License-Identifier: BSD-3-Clause
/*
 * Waiting for a peer: poll, then yield the core, then sleep on a futex.
 *
 * While each rank has a core of its own, polling a few microseconds sees the
 * peer's store soonest, and a yield costs nobody anything: it returns at once. If it
 * does not, a stranger has the core; who sleeps then is woken into it, who yields
 * waits for its turn. With more ranks than cores the peer may need this very
 * core, so the first thing to do is to yield it; and to go on for long, because a
 * core whose ranks all sleep takes one from another core, which then is missing
 * here until the scheduler evens that out, many operations later. Whatever
 * happens, a waiter calls progress() every few microseconds: the peer may be
 * unable to come before the host MPI has moved a message of ours. Sleeps are
 * short, because nothing but the next turn of this loop drives that progress; and
 * where it finds work there is more to come, so that one goes back to yielding.
 *
 * Now and then Linux (seen of 6.18) ignores the yields of a core's ranks until its
 * next tick, up to 4 ms, for hundreds of operations in a row: each yield returns at
 * once, though others are ready to run. Nobody can tell that from a core that no
 * one else wants; so who shares cores and has yielded for a while in vain sleeps
 * once, for a moment, which the scheduler does heed.
 */
#include "exec/wait.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "segment/alive.h"

#define PROGRESS_POLLS	128    /* polls between calls of progress() */
#define YIELD_MS	100    /* of yielding before sleeping */
#define YIELDS_A_MS	128    /* at least, on a core of one's own */
#define IN_VAIN_NS	1000   /* a yield that returns sooner has given the core to nobody */
#define VAIN_NS		300000 /* of such yields before a nap */
#define NAP_NS		10000  /* the kernel's timer slack makes it about 60 us */
#define PROGRESS_YIELDS 4
#define WORK_NS		2000 /* progress() that takes so long has moved something */
#define SLEEP_NS	200000
#define ALIVE_SLEEPS	64 /* sleeps between looks at the peer: about 13 ms */

/* The half of the word that changes with every store. */
static uint32_t *futex_of(struct oc_board_line *line)
{
	uint32_t *half = (uint32_t *)&line->word;

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	half++;
#endif
	return half;
}

void oc_line_wake(struct oc_board_line *line)
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

void oc_line_publish(struct oc_board_line *line, uint64_t word)
{
	atomic_store_explicit(&line->word, word, memory_order_release);
	oc_line_wake(line);
}

/* Until the word is stored to, or for @ns. */
static void line_sleep(struct oc_board_line *line, uint64_t seen, long ns)
{
	struct timespec limit = {.tv_nsec = ns};

	atomic_store_explicit(&line->sleepers, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&line->word, memory_order_relaxed) == seen)
		syscall(SYS_futex, futex_of(line), FUTEX_WAIT, (uint32_t)seen, &limit, NULL, 0);
}

/* Whether it is too early to sleep after @turn yields. */
static bool shall_yield(struct oc_wait *wait, uint32_t turn)
{
	uint64_t now = oc_clock_coarse_ms();

	if (!turn) {
		wait->yields_since = now;
		wait->vain_since = 0;
	}
	now -= wait->yields_since;
	return now < YIELD_MS && (wait->node->oversubscribed || turn >= now * YIELDS_A_MS);
}

/* On a shared core a nap instead, once yields have been in vain for a while. */
static void yield_core(struct oc_wait *wait, struct oc_board_line *line, uint64_t seen)
{
	uint64_t start, end;

	if (!wait->node->oversubscribed) {
		sched_yield();
		return;
	}
	start = oc_clock_ns();
	sched_yield();
	end = oc_clock_ns();
	if (end - start >= IN_VAIN_NS) {
		wait->vain_since = 0;
	} else if (!wait->vain_since) {
		wait->vain_since = start;
	} else if (end - wait->vain_since >= VAIN_NS) {
		line_sleep(line, seen, NAP_NS);
		wait->vain_since = 0;
	}
}

/* True if the MPI is in the middle of something and this core is free to go on with it. */
static bool progress_before_sleep(const struct oc_wait *wait)
{
	uint64_t start;

	if (!wait->progress)
		return false;
	start = oc_clock_ns();
	wait->progress();
	return !wait->node->oversubscribed && oc_clock_ns() - start > WORK_NS;
}

int oc_wait_turn(struct oc_wait *wait, uint32_t peer, struct oc_board_line *line, uint64_t seen)
{
	uint32_t spin = wait->node->spin;
	uint32_t turn = wait->turns++;
	bool working;

	if (turn < spin) {
		oc_cpu_relax();
		if (wait->progress && turn % PROGRESS_POLLS == PROGRESS_POLLS - 1)
			wait->progress();
		return 0;
	}
	turn -= spin;
	if (shall_yield(wait, turn)) {
		yield_core(wait, line, seen);
		if (wait->progress && turn % PROGRESS_YIELDS == PROGRESS_YIELDS - 1)
			wait->progress();
		return 0;
	}
	working = progress_before_sleep(wait);
	if (working)
		wait->turns = spin;
	else
		line_sleep(line, seen, SLEEP_NS);
	if ((working || turn % ALIVE_SLEEPS == ALIVE_SLEEPS - 1) &&
	    !oc_node_peer_alive(wait->node, peer) &&
	    /* It may have posted its last word before it left. */
	    atomic_load_explicit(&line->word, memory_order_acquire) == seen)
		return -EPIPE;
	return 0;
}
