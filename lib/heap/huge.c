// SPDX-License-Identifier: BSD-3-Clause
/*
 * A program's private memory gets huge pages as the system's setting for it says.
 * Blocks of the arena are shared memory, which has a setting of its own that is
 * "never" almost everywhere; without huge pages first touch costs 1.5 to 10 times,
 * and random access 1.3 times, what it costs the same program under glibc. So the
 * arena is a file in a tmpfs of our own (base/tmpfs.h), whose setting is ours to choose.
 * Pages appear at first touch, small or huge, on the NUMA node of the thread that
 * touches: nothing is touched, filled or moved ahead of it.
 *
 * What plain malloc would have had (enabled):
 *
 * - "never": so do we.
 * - "always": the file's setting is "always", and all else the kernel's business.
 * - "madvise": the program's own madvise() on its blocks works as on any memory. Had
 *   we no more than that, each first touch would still be slower than without us: a
 *   small page of a file costs the kernel about 1.5 times a private one. So we ask
 *   for huge pages where the program will touch most of what it allocates. That is
 *   not known, and a huge page does not tell afterwards how much of it is in use.
 *   Hence a stripe of a new block is advised, but for its first 2 MiB: when these
 *   have filled up with small pages, the stripe is taken to be used densely. What is
 *   advised and not proven so is bounded by an allowance, which is what the program
 *   can grow by at worst; it rises with what is proven. So a block touched here and
 *   there costs a huge page for a touch and no more than the allowance, and a program
 *   that fills its blocks soon has huge pages under all of them.
 *
 * A proven sample, and ranges seen filled with small pages for want of allowance, are
 * collapsed (MADV_COLLAPSE, Linux 6.1), which takes no more memory and stays on the
 * node most of them are on. The thread that next allocates a large block does it, in
 * measure: about what that block's own page faults take; and, for programs that do not
 * allocate again, one in a collective, ever more seldom (lib/exec/op.c).
 *
 * Huge pages can be dear: where free memory is fragmented, and in virtual machines
 * that report free blocks to their host (page_reporting), which has to back 512 pages
 * anew while small ones come from what was kept. Then first touch costs four times what
 * small pages do. Where that is known, or two huge pages that are had for a moment before
 * the first stripe is advised take long, or a collapse later on does, blocks have small pages
 * (ONECOPY_THP=auto), until it is tried again. What is kept for long is promoted all the
 * same, in time: heap/promote.h.
 *
 * Where no user namespace can be had (containers, as a rule) and shmem_enabled is
 * "never", collapsing is all there is. With "always" a range that was touched at all
 * is collapsed, since private memory would have been huge at that touch.
 *
 * Advice splits mappings, of which a process may have 65530; the borders are counted.
 * It is given under our lock, past the hooks that hear of pages going away (base/hooked.h).
 */
#include "heap/huge.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/pages.h"
#include "base/quiet.h"
#include "base/thp.h"
#include "base/tmpfs.h"
#include "heap/collapse.h"
#include "heap/table.h"

#define FIRST_ALLOW ((size_t)64 << 20) /* until it is known how many share the memory */
#define STRIPE	    ((size_t)16)       /* ranges */
#define LONG_STRIPE ((size_t)64)       /* once as many are proven */
#define WATCHES	    64
#define BORDERS	    4096
#define TRIAL	    (OC_HEAP_THP_TRIAL / OC_HUGE_PAGE) /* ranges */
#define TRY_AGAIN   1000000000			       /* ns */
#define SLOW_NS	    1000000 /* a range; 512 small pages take about as long, a huge one a fifth */

/* States of a range. */
#define SEEN	1u
#define ADVISED 2u

/* Ranges of which it is not known yet how they are used. */
struct watch {
	uint32_t first;
	uint32_t count;
	uint64_t todo; /* small ones, to be collapsed; of an advised stripe the sample alone */
	bool advised;
};

static struct {
	pthread_mutex_t lock; /* all that follows it */
	char *base;
	size_t ranges;
	uint8_t *state;
	size_t allow;  /* ranges */
	size_t open;   /* ranges advised and not proven */
	size_t proven; /* ranges */
	size_t borders;
	bool dear;	    /* as far as is known */
	bool tried;	    /* it is known */
	bool for_good;	    /* and will not change */
	uint64_t since;	    /* oc_clock_ns() when it showed */
	unsigned int count; /* of watches */
	struct watch watches[WATCHES];
	bool on;       /* there is something to do */
	bool advises;  /* huge pages come where they are asked for */
	bool any;      /* a range touched anywhere may be collapsed */
	bool own_file; /* in our tmpfs */
} thp = {.lock = PTHREAD_MUTEX_INITIALIZER};

int oc_heap_thp_file(const char *name, uint64_t bytes)
{
	enum oc_thp_shared shared = oc_thp_shared();
	enum oc_thp private = oc_thp_private();
	int fd;

	thp.own_file = false;
	if (oc_env()->thp == OC_ENV_THP_NEVER || private == OC_THP_NEVER ||
	    shared == OC_THP_SHARED_DENIED ||
	    (private == OC_THP_ALWAYS && shared == OC_THP_SHARED_ALWAYS) ||
	    (private == OC_THP_ADVISE && shared == OC_THP_SHARED_ADVISE))
		return -EOPNOTSUPP;
	fd = oc_tmpfs_file(name, private == OC_THP_ALWAYS ? "always" : "advise", bytes);
	thp.own_file = fd >= 0;
	return fd;
}

/* What is left to do about an arena whose faults do, or do not, heed advice. */
static bool choose_way(char *base, size_t size)
{
	enum oc_thp_shared shared = oc_thp_shared();
	enum oc_thp private = oc_thp_private();

	thp.advises = private == OC_THP_ADVISE;
	thp.any = private == OC_THP_ALWAYS;
	if (shared == OC_THP_SHARED_DENIED)
		return false;
	if (oc_env()->thp == OC_ENV_THP_NEVER) {
		oc_quiet_madvise(base, size, MADV_NOHUGEPAGE);
		return false;
	}
	if (thp.own_file)
		return thp.advises;
	/* What the C library's blocks would not have, unless asked for. */
	if (shared == OC_THP_SHARED_ALWAYS && private != OC_THP_ALWAYS)
		oc_quiet_madvise(base, size, MADV_NOHUGEPAGE);
	if (shared == OC_THP_SHARED_ADVISE && private == OC_THP_ALWAYS)
		oc_quiet_madvise(base, size, MADV_HUGEPAGE);
	if (shared == OC_THP_SHARED_NEVER)
		thp.advises = false;
	return private == OC_THP_ADVISE ||
	       (private == OC_THP_ALWAYS && shared == OC_THP_SHARED_NEVER);
}

void oc_heap_thp_create(char *base, size_t size)
{
	size_t ranges = size / OC_HUGE_PAGE;
	void *table;

	thp.on = false;
	if (!choose_way(base, size))
		return;
	table = oc_heap_table_map(ranges, false);
	if (!table)
		return;
	thp.base = base;
	thp.ranges = ranges;
	thp.state = table;
	thp.allow = FIRST_ALLOW / OC_HUGE_PAGE;
	thp.open = thp.proven = thp.borders = 0;
	thp.count = 0;
	thp.dear = oc_env()->thp == OC_ENV_THP_AUTO && oc_thp_reports_free_pages();
	thp.for_good = thp.dear || oc_env()->thp == OC_ENV_THP_ALWAYS;
	thp.tried = thp.for_good;
	thp.on = true;
}

void oc_heap_thp_destroy(void)
{
	if (thp.state)
		munmap(thp.state, thp.ranges);
	thp.state = NULL;
	thp.on = false;
}

bool oc_heap_thp_is_default(void)
{
	return thp.any;
}

bool oc_heap_thp_asks(void)
{
	return thp.on && thp.advises;
}

void oc_heap_thp_allow(size_t bytes)
{
	pthread_mutex_lock(&thp.lock);
	thp.allow = bytes / OC_HUGE_PAGE;
	pthread_mutex_unlock(&thp.lock);
}

static bool is_on(void)
{
	return __atomic_load_n(&thp.on, __ATOMIC_RELAXED);
}

static char *range_at(size_t i)
{
	return thp.base + i * OC_HUGE_PAGE;
}

static bool is_advised(size_t i)
{
	return i < thp.ranges && thp.state[i] & ADVISED;
}

static size_t count_borders(size_t first, size_t end)
{
	size_t n = 0;

	for (size_t i = first; i <= end; i++)
		n += is_advised(i) != is_advised(i - 1);
	return n;
}

/* All of [first, end) or nothing. */
static bool advise(size_t first, size_t end, bool huge)
{
	if ((huge && thp.borders + 2 > BORDERS) ||
	    oc_quiet_madvise(range_at(first), (end - first) * OC_HUGE_PAGE,
			     huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
		return false;
	thp.borders -= count_borders(first, end);
	for (size_t i = first; i < end; i++)
		thp.state[i] = (uint8_t)((thp.state[i] & ~ADVISED) | (huge ? ADVISED : 0));
	thp.borders += count_borders(first, end);
	return true;
}

/* What is advised stays so. */
static void become_dear(void)
{
	thp.dear = true;
	thp.since = oc_clock_ns();
	for (unsigned int w = 0; w < thp.count;) {
		if (thp.watches[w].advised)
			w++;
		else
			thp.watches[w] = thp.watches[--thp.count];
	}
}

/* Whether so many ranges took long, since oc_clock_thread_ns() was @since. */
static bool was_slow(uint64_t since, size_t ranges)
{
	return oc_env()->thp != OC_ENV_THP_ALWAYS &&
	       oc_clock_thread_ns() - since > ranges * SLOW_NS;
}

/* Whether huge pages are cheap: has those of some ranges for a moment. What follows the block that
 * asks would not do: mimalloc 3 may have given it to another thread by now. */
static bool try_huge(void)
{
	size_t first = thp.ranges - TRIAL;
	uint64_t start;
	bool cheap;

	if (!advise(first, first + TRIAL, true))
		return true;
	start = oc_clock_thread_ns();
	cheap = (oc_quiet_madvise(range_at(first), TRIAL * OC_HUGE_PAGE, MADV_POPULATE_WRITE) &&
		 errno == EINVAL) ||
		!was_slow(start, TRIAL);
	oc_quiet_madvise(range_at(first), TRIAL * OC_HUGE_PAGE, MADV_REMOVE);
	advise(first, first + TRIAL, false);
	return cheap;
}

static void prove(struct watch *watch)
{
	thp.proven += watch->count;
	if (!watch->advised)
		return;
	thp.open -= watch->count - 1;
	/* The sample joins its stripe, and two mappings become one. */
	advise(watch->first, watch->first + 1, true);
}

static bool has_room(size_t ranges)
{
	return thp.advises && thp.open + ranges <= thp.allow + thp.proven / 4;
}

static void try_advise(struct watch *watch)
{
	size_t rest = watch->count - 1;

	/* What is filled already can be collapsed, but not be faulted in. */
	if (watch->advised || !(watch->todo & 1) || !rest || !has_room(rest) ||
	    !advise(watch->first + 1, watch->first + watch->count, true))
		return;
	watch->advised = true;
	watch->todo &= 1;
	thp.open += rest;
}

/* False if huge pages proved dear. */
static bool collapse(char *range)
{
	uint64_t start = oc_clock_thread_ns();
	int err = oc_heap_collapse(range);

	if (err)
		return err != -ENOMEM || oc_env()->thp == OC_ENV_THP_ALWAYS;
	/* The copy takes as long as a huge page. */
	return !was_slow(start, 2);
}

/* Takes from @work what it collapses. False if a collapse went badly. */
static bool look_at(struct watch *watch, size_t *work)
{
	for (size_t k = 0; k < watch->count && *work; k++) {
		size_t resident;

		if (!(watch->todo >> k & 1))
			continue;
		resident = oc_heap_resident(range_at(watch->first + k), thp.any);
		if (resident < (thp.any ? 1 : OC_HEAP_DENSE_PAGES))
			continue;
		if (k == 0)
			prove(watch);
		watch->todo &= ~((uint64_t)1 << k);
		--*work;
		if (!collapse(range_at(watch->first + k)))
			return false;
	}
	return true;
}

static void settle(size_t work)
{
	bool failed = false;

	for (unsigned int w = 0; w < thp.count && work && !failed;) {
		failed = !look_at(&thp.watches[w], &work);
		if (!thp.watches[w].todo)
			thp.watches[w] = thp.watches[--thp.count];
		else
			w++;
	}
	if (failed)
		become_dear();
	for (unsigned int w = 0; w < thp.count && !thp.dear; w++)
		try_advise(&thp.watches[w]);
}

void oc_heap_thp_settle(void)
{
	if (!is_on() || !__atomic_load_n(&thp.count, __ATOMIC_RELAXED) ||
	    pthread_mutex_trylock(&thp.lock))
		return;
	settle(STRIPE);
	pthread_mutex_unlock(&thp.lock);
}

/* Whether it is time to find out again if huge pages are dear. */
static bool is_outdated(void)
{
	return thp.dear && !thp.for_good && oc_clock_ns() - thp.since > TRY_AGAIN;
}

/* Ranges [i, end) nobody had before, in stripes. */
static void open_stripes(size_t i, size_t end)
{
	size_t most = thp.proven < LONG_STRIPE ? STRIPE : LONG_STRIPE;

	for (size_t count; i < end && thp.count < WATCHES; i += count) {
		struct watch *watch;

		count = end - i < most ? end - i : most;
		if (is_outdated())
			thp.dear = thp.tried = false;
		if (!thp.tried && thp.advises && count > 1) {
			thp.tried = true;
			if (!try_huge())
				become_dear();
		}
		if (thp.dear)
			return;
		watch = &thp.watches[thp.count];
		*watch = (struct watch){.first = (uint32_t)i,
					.count = (uint32_t)count,
					.todo = ~(uint64_t)0 >> (64 - count)};
		try_advise(watch);
		thp.count++;
	}
}

static bool is_seen(size_t i)
{
	return __atomic_load_n(&thp.state[i], __ATOMIC_RELAXED) & SEEN;
}

void oc_heap_thp_prepare(char *p, size_t bytes, size_t unit)
{
	size_t first, end;

	if (!is_on() || !bytes)
		return;
	first = (size_t)(p - thp.base) / OC_HUGE_PAGE;
	end = (size_t)(p + bytes - 1 - thp.base) / OC_HUGE_PAGE + 1;
	if (is_seen(first) && is_seen(end - 1) && bytes < unit)
		return;
	unit /= OC_HUGE_PAGE;
	first -= first % unit;
	end = (end + unit - 1) / unit * unit;
	pthread_mutex_lock(&thp.lock);
	settle(2 + bytes / OC_HUGE_PAGE);
	for (size_t i = first; i < end; i++) {
		size_t start = i;

		while (i < end && !is_seen(i))
			thp.state[i++] |= SEEN;
		if (i > start)
			open_stripes(start, i);
	}
	pthread_mutex_unlock(&thp.lock);
}

/* What is left of it is not worth a look. */
static void drop_watches(size_t first, size_t end)
{
	for (unsigned int w = 0; w < thp.count;) {
		struct watch *watch = &thp.watches[w];

		if (watch->first >= end || watch->first + watch->count <= first) {
			w++;
			continue;
		}
		if (watch->advised)
			thp.open -= watch->count - 1;
		*watch = thp.watches[--thp.count];
	}
}

void oc_heap_thp_forget(char *p, size_t bytes)
{
	size_t first = (size_t)(p - thp.base) / OC_HUGE_PAGE, end = first + bytes / OC_HUGE_PAGE;
	bool advised = false;

	if (!is_on())
		return;
	pthread_mutex_lock(&thp.lock);
	drop_watches(first, end);
	for (size_t i = first; i < end; i++)
		advised |= is_advised(i);
	if (advised)
		advise(first, end, false);
	for (size_t i = first; i < end; i++)
		thp.state[i] &= ADVISED;
	pthread_mutex_unlock(&thp.lock);
}
