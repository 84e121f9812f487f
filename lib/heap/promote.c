// SPDX-License-Identifier: BSD-3-Clause
/*
 * Turns begin at the same time in all processes, as they have one clock, and go on from where
 * the last one stopped. A range is tried once: what refuses now, for pages that are in use or for
 * advice of the program's, is not asked again before its pages are others.
 */
#include "heap/promote.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "base/env.h"
#include "base/pages.h"
#include "base/thp.h"
#include "heap/arena.h"
#include "heap/bits.h"
#include "heap/collapse.h"
#include "heap/span.h"
#include "heap/table.h"

#define SHARE	     64			  /* of the time since it began, one part, */
#define EARLY_NS     UINT64_C(1000000000) /* but of so much of it: who ends soon gains nothing */
#define LEAST_PART   0.125		  /* of that share, where nothing was kept */
#define LOSS	     32			  /* bytes that lose 1 ns by small pages */
#define FIRST_NS     UINT64_C(4000000)	  /* what a range is taken to take */
#define MOST_NS	     UINT64_C(64000000)	  /* a turn, though it has not had one for long */
#define LONGEST_REST 64			  /* turns */

uint64_t oc_heap_promote_turn;
uint64_t oc_heap_promote_copied;

static struct {
	pthread_mutex_t lock; /* all that follows but @tried, whose words are atomic, and @lost */
	char *base;
	size_t ranges;
	uint64_t *tried; /* bit a range; NULL: nothing to do */
	size_t lost;	 /* of these, whose pages were given back; atomic */
	size_t promoted; /* ranges */
	size_t next;	 /* range */
	uint64_t since;	 /* oc_clock_ns() */
	uint64_t spent;	 /* ns */
	uint64_t takes;	 /* ns: what the last range took */
	uint64_t rest;	 /* turns to let pass once there was nothing to do, */
	uint64_t until;	 /* and that are over at this one */
} promote = {.lock = PTHREAD_MUTEX_INITIALIZER};

void oc_heap_promote_create(char *base, size_t size)
{
	size_t ranges = size / OC_HUGE_PAGE;

	if (oc_env()->thp == OC_ENV_THP_NEVER || oc_thp_private() == OC_THP_NEVER ||
	    oc_thp_shared() == OC_THP_SHARED_DENIED)
		return;
	promote.tried = oc_heap_table_map(oc_heap_words(ranges) * sizeof(*promote.tried), false);
	promote.base = base;
	promote.ranges = ranges;
	promote.next = promote.lost = promote.promoted = 0;
	promote.spent = promote.rest = promote.until = 0;
	promote.takes = FIRST_NS;
	promote.since = oc_clock_ns();
}

void oc_heap_promote_destroy(void)
{
	if (promote.tried)
		munmap(promote.tried, oc_heap_words(promote.ranges) * sizeof(*promote.tried));
	promote.tried = NULL;
}

/* How many of them were before. */
static size_t set_tried(size_t first, size_t end, bool tried)
{
	size_t before = 0;

	for (size_t i = first / OC_HEAP_BITS; i < oc_heap_words(end); i++) {
		uint64_t bits = oc_heap_bits(i, first, end), were;

		if (tried)
			were = __atomic_fetch_or(&promote.tried[i], bits, __ATOMIC_RELAXED);
		else
			were = __atomic_fetch_and(&promote.tried[i], ~bits, __ATOMIC_RELAXED);
		before += (size_t)__builtin_popcountll(were & bits);
	}
	return before;
}

static size_t set_touched(char *p, size_t bytes, bool tried)
{
	size_t off = (size_t)(p - promote.base);

	if (!promote.tried || !bytes)
		return 0;
	return set_tried(off / OC_HUGE_PAGE, (off + bytes + OC_HUGE_PAGE - 1) / OC_HUGE_PAGE,
			 tried);
}

void oc_heap_promote_advise(char *p, size_t bytes, bool huge)
{
	set_touched(p, bytes, !huge);
}

void oc_heap_promote_forget(char *p, size_t bytes)
{
	size_t lost = set_touched(p, bytes, false);

	if (lost)
		__atomic_fetch_add(&promote.lost, lost, __ATOMIC_RELAXED);
}

struct turn {
	uint64_t end; /* oc_clock_ns() */
	size_t promoted;
	bool scarce; /* the kernel has no huge page */
	bool over;
};

static bool is_tried(size_t i)
{
	return __atomic_load_n(&promote.tried[i / OC_HEAP_BITS], __ATOMIC_RELAXED) >>
		       i % OC_HEAP_BITS &
	       1;
}

static void try_range(struct turn *turn, size_t i)
{
	char *range = promote.base + i * OC_HUGE_PAGE;
	uint64_t start;
	int err;

	if (is_tried(i) || oc_heap_resident(range, false) < OC_HEAP_DENSE_PAGES)
		return;
	/* Before: meanwhile it may be freed, and be another's. */
	set_tried(i, i + 1, true);
	start = oc_clock_ns();
	err = oc_heap_collapse(range);
	promote.takes = oc_clock_ns() - start;
	turn->scarce = err == -ENOMEM;
	if (!err)
		turn->promoted++;
	if (turn->scarce)
		set_tried(i, i + 1, false);
}

static bool look_at_run(char *run, size_t bytes, bool zeros, void *arg)
{
	struct turn *turn = arg;
	size_t first = ((size_t)(run - promote.base) + OC_HUGE_PAGE - 1) / OC_HUGE_PAGE;
	size_t end = (size_t)(run + bytes - promote.base) / OC_HUGE_PAGE;

	(void)zeros;
	if (first < promote.next)
		first = promote.next;
	for (size_t i = first; i < end; i++) {
		try_range(turn, i);
		promote.next = i + 1;
		turn->over = turn->scarce || oc_clock_ns() + promote.takes > turn->end;
		if (turn->over)
			return false;
	}
	return true;
}

static struct turn promote_for(uint64_t ns)
{
	uint64_t start = oc_clock_ns();
	struct turn turn = {.end = start + ns};

	oc_heap_span_walk(look_at_run, &turn);
	if (!turn.over)
		promote.next = 0;
	promote.spent += oc_clock_ns() - start;
	promote.promoted += turn.promoted;
	return turn;
}

size_t oc_heap_promote(uint64_t ns)
{
	size_t promoted;

	if (!promote.tried || pthread_mutex_trylock(&promote.lock))
		return 0;
	promoted = promote_for(ns).promoted;
	pthread_mutex_unlock(&promote.lock);
	return promoted;
}

/* Turns pass, one after the next, then two, four and so on, while there is nothing to do. */
static void rest_after(const struct turn *turn, uint64_t number)
{
	if (turn->promoted || (turn->over && !turn->scarce))
		promote.rest = 0;
	else if (promote.rest < LONGEST_REST)
		promote.rest = promote.rest ? 2 * promote.rest : 1;
	promote.until = number + promote.rest;
}

/* Which part of what was promoted is still there. */
static double kept(void)
{
	size_t lost = __atomic_load_n(&promote.lost, __ATOMIC_RELAXED);

	if (!promote.promoted)
		return 1;
	return lost < promote.promoted ? 1 - (double)lost / (double)promote.promoted : 0;
}

/* What it may have taken by now. */
static uint64_t allowance(void)
{
	uint64_t passed = oc_clock_ns() - promote.since;
	uint64_t lost = __atomic_load_n(&oc_heap_promote_copied, __ATOMIC_RELAXED) / LOSS;
	uint64_t share = passed > EARLY_NS ? (passed - EARLY_NS) / SHARE : 0;
	double part = kept();

	/* What comes later may be there to stay. */
	return (uint64_t)((double)share * (part > LEAST_PART ? part : LEAST_PART) +
			  (double)lost * part);
}

static void have_turn(uint64_t number)
{
	uint64_t due = allowance();
	struct turn turn;

	if (number <= promote.until || due < promote.spent + promote.takes)
		return;
	due -= promote.spent;
	turn = promote_for(due < MOST_NS ? due : MOST_NS);
	rest_after(&turn, number);
}

void oc_heap_promote_begin_turn(uint64_t turn)
{
	int saved = errno;

	__atomic_store_n(&oc_heap_promote_turn, turn, __ATOMIC_RELAXED);
	if (!promote.tried || oc_heap_is_copy || pthread_mutex_trylock(&promote.lock))
		return;
	have_turn(turn);
	pthread_mutex_unlock(&promote.lock);
	errno = saved;
}
