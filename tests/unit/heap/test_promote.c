// SPDX-License-Identifier: BSD-3-Clause
/*
 * Which ranges are promoted to huge pages, how often one is tried, and how much of the time it
 * takes at most. The kernel is the test's own here: which pages there are, what a collapse says,
 * and the clock, by which each takes 3 ms.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/thp.h"
#include "heap/promote.h"
#include "heap/span.h"
#include "../expect.h"
#include "../fake_call.h"

#define HUGE	 ((size_t)2 << 20)
#define PAGE	 ((size_t)4096)
#define RANGES	 ((size_t)1024)
#define COLLAPSE 25 /* MADV_COLLAPSE */
#define MS	 1000000u
#define TURN_NS	 (512u * MS)
#define TAKES_NS (3u * MS)
#define FOREVER	 ((uint64_t)1 << 62)

static char *base;
static size_t missing[RANGES]; /* pages of a range, from its beginning */
static unsigned int asked[RANGES];
static uint64_t now;
static uint64_t spent;
static int answer;
static enum oc_thp private_pages = OC_THP_ADVISE;

enum oc_thp oc_thp_private(void)
{
	return private_pages;
}

enum oc_thp_shared oc_thp_shared(void)
{
	return OC_THP_SHARED_NEVER;
}

bool oc_thp_reports_free_pages(void)
{
	return true;
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
	(void)clock;
	at->tv_sec = (time_t)(now / 1000000000u);
	at->tv_nsec = (long)(now % 1000000000u);
	return 0;
}

int mincore(void *p, size_t bytes, unsigned char *there)
{
	size_t off = (size_t)((char *)p - base);

	for (size_t i = 0; i * PAGE < bytes; i++, off += PAGE)
		there[i] = off % HUGE / PAGE >= missing[off / HUGE];
	return 0;
}

static long collapse(const char *range, size_t bytes)
{
	EXPECT(bytes == HUGE && (size_t)(range - base) % HUGE == 0);
	asked[(size_t)(range - base) / HUGE]++;
	now += TAKES_NS;
	spent += TAKES_NS;
	errno = answer;
	return answer ? -1 : 0;
}

bool fake_call(long number, const long arg[6], long *result)
{
	if (number != SYS_madvise || arg[2] != COLLAPSE)
		return false;
	*result = collapse((char *)NULL + arg[0], (size_t)arg[1]);
	return true;
}

static void begin(void)
{
	memset(missing, 0, sizeof(missing));
	memset(asked, 0, sizeof(asked));
	spent = 0;
	answer = 0;
	oc_heap_promote_copied = 0;
	EXPECT(!oc_heap_span_create(base, RANGES * HUGE));
	oc_heap_promote_create(base, RANGES * HUGE);
}

static void end(void)
{
	oc_heap_promote_destroy();
	oc_heap_span_destroy();
}

static unsigned int asked_in_all(void)
{
	unsigned int sum = 0;

	for (size_t i = 0; i < RANGES; i++)
		sum += asked[i];
	return sum;
}

static char *range(size_t i)
{
	return base + i * HUGE;
}

/* Of live blocks those that are there but for some pages, and that are theirs from end to end. */
static void test_whole_ranges(void)
{
	size_t before;

	begin();
	oc_heap_span_add(range(10) + PAGE, 4 * HUGE);
	missing[11] = 32;
	missing[12] = 33;
	oc_heap_span_add(range(20), 2 * HUGE);
	missing[20] = HUGE / PAGE;
	/* Neighbours that share a range. */
	oc_heap_span_add(range(30), HUGE / 2);
	oc_heap_span_add(range(30) + HUGE / 2, HUGE / 2);
	EXPECT(oc_heap_promote(FOREVER) == 4);
	EXPECT(asked_in_all() == 4 && asked[11] && asked[13] && asked[21] && asked[30]);
	/* Once, until the pages are others. */
	EXPECT(oc_heap_promote(FOREVER) == 0 && asked_in_all() == 4);
	oc_heap_promote_forget(range(13), HUGE);
	missing[12] = 0;
	EXPECT(oc_heap_promote(FOREVER) == 2);
	EXPECT(asked_in_all() == 6 && asked[12] == 1 && asked[13] == 2);
	EXPECT(oc_heap_span_remove(range(20), &before) && !before);
	oc_heap_promote_forget(range(20) + PAGE, HUGE);
	EXPECT(oc_heap_promote(FOREVER) == 0);
	end();
}

/* Where the program wants none: ranges it touches, and no more. */
static void test_advice(void)
{
	begin();
	oc_heap_span_add(range(50), 8 * HUGE);
	oc_heap_promote_advise(range(51) - PAGE, 2 * PAGE, false);
	oc_heap_promote_advise(range(54), HUGE, false);
	oc_heap_promote_advise(range(56) + PAGE, PAGE, false);
	oc_heap_promote_advise(range(54), HUGE, true);
	EXPECT(oc_heap_promote(FOREVER) == 5);
	EXPECT(!asked[50] && !asked[51] && !asked[56] && asked[54]);
	end();
}

static void test_refusals(void)
{
	begin();
	oc_heap_span_add(range(0), 3 * HUGE);
	answer = EAGAIN;
	EXPECT(oc_heap_promote(FOREVER) == 0 && asked_in_all() == 3);
	answer = 0;
	EXPECT(oc_heap_promote(FOREVER) == 0 && asked_in_all() == 3);
	/* Without a huge page there is none for the next range either, but may be later. */
	oc_heap_span_add(range(7), 3 * HUGE);
	answer = ENOMEM;
	EXPECT(oc_heap_promote(FOREVER) == 0 && asked_in_all() == 4);
	answer = 0;
	EXPECT(oc_heap_promote(FOREVER) == 2);
	EXPECT(oc_heap_promote(FOREVER) == 1 && asked[7] == 2);
	end();
}

static void test_where_plain_memory_has_none(void)
{
	private_pages = OC_THP_NEVER;
	begin();
	private_pages = OC_THP_ADVISE;
	oc_heap_span_add(range(0), 3 * HUGE);
	EXPECT(oc_heap_promote(FOREVER) == 0 && asked_in_all() == 0);
	now += 1000 * TURN_NS;
	oc_heap_promote_look(0);
	EXPECT(asked_in_all() == 0);
	end();
}

/* A 64th of the time, and all there is in the end, which goes on to be told. */
static void test_share_of_the_time(void)
{
	uint64_t since = now;

	begin();
	oc_heap_span_add(range(0), 400 * HUGE);
	for (int i = 0; i < 1000; i++) {
		now += TURN_NS / 3;
		errno = EDOM;
		oc_heap_promote_look(0);
		EXPECT(errno == EDOM);
		EXPECT(spent <= (now - since) / 64);
	}
	EXPECT(asked_in_all() == 400);
	for (size_t i = 0; i < 400; i++)
		EXPECT(asked[i] == 1);
	/* What comes later is found. */
	oc_heap_span_add(range(500), 4 * HUGE);
	for (int i = 0; i < 200; i++) {
		now += TURN_NS;
		oc_heap_promote_look(0);
	}
	EXPECT(asked_in_all() == 404);
	end();
}

/* A program that ends within seconds pays nothing, unless it copies. */
static void test_early(void)
{
	begin();
	oc_heap_span_add(range(0), 400 * HUGE);
	now += TURN_NS;
	oc_heap_promote_look(0);
	EXPECT(spent == 0);
	now += TURN_NS;
	oc_heap_promote_look((size_t)1 << 30);
	EXPECT(spent > 0);
	end();
}

/* Copies pay for what they would not have lost, beside that share. */
static void test_share_of_the_copies(void)
{
	uint64_t since = now, copied = 0;

	begin();
	oc_heap_span_add(range(0), 400 * HUGE);
	for (int i = 0; i < 40; i++) {
		now += TURN_NS;
		oc_heap_promote_look((size_t)1 << 30);
		copied += (size_t)1 << 30;
		EXPECT(spent <= (now - since) / 64 + copied / 32);
	}
	EXPECT(asked_in_all() > 3 * 40 * TURN_NS / 64 / TAKES_NS);
	end();
}

/* What is given back soon after is not worth that: what copies pay is bounded by one turn, and the
 * share of the time shrinks. */
static void test_copies_of_passing_blocks(void)
{
	uint64_t since = now;

	begin();
	oc_heap_span_add(range(0), 400 * HUGE);
	for (int i = 0; i < 200; i++) {
		now += TURN_NS;
		oc_heap_promote_look((size_t)1 << 30);
		oc_heap_promote_forget(range(0), 400 * HUGE);
		EXPECT(spent <= (now - since) / 512 + 64 * MS);
	}
	EXPECT(spent > (now - since) / 1024);
	end();
}

/* After hours without a call it does not take minutes. */
static void test_long_pause(void)
{
	begin();
	oc_heap_span_add(range(0), 400 * HUGE);
	now += UINT64_C(7200000) * MS;
	oc_heap_promote_look(0);
	EXPECT(spent >= TAKES_NS && spent <= 64 * MS);
	end();
}

/* Where there are no huge pages it is asked for them ever more seldom. */
static void test_scarce(void)
{
	begin();
	oc_heap_span_add(range(0), 400 * HUGE);
	answer = ENOMEM;
	for (int i = 0; i < 640; i++) {
		now += TURN_NS;
		oc_heap_promote_look(0);
	}
	EXPECT(asked_in_all() >= 8 && asked_in_all() <= 20);
	end();
}

int main(void)
{
	char *room = mmap(NULL, (RANGES + 1) * HUGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (room == MAP_FAILED) {
		fprintf(stderr, "no address space\n");
		return 77;
	}
	unsetenv("ONECOPY_THP");
	base = room + (HUGE - (uintptr_t)room % HUGE) % HUGE;
	now = UINT64_C(1000000) * MS;
	test_whole_ranges();
	test_advice();
	test_refusals();
	test_where_plain_memory_has_none();
	test_early();
	test_share_of_the_time();
	test_share_of_the_copies();
	test_copies_of_passing_blocks();
	test_long_pause();
	test_scarce();
	return 0;
}
