// SPDX-License-Identifier: BSD-3-Clause
/*
 * Which ranges of private memory become huge pages when peers have copied them, how often one is
 * tried, and how much of the time that takes. The kernel is the test's own: what /proc/self/pagemap
 * says, what a collapse does, and the clock, by which each takes 2 ms.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "access/private_pages.h"
#include "base/thp.h"
#include "segment/area.h"
#include "../expect.h"
#include "../fake_call.h"

#define HUGE	 ((uint64_t)2 << 20)
#define PAGES	 (HUGE / 4096)
#define FIRST	 1000 /* number of the first of */
#define RANGES	 1024
#define COLLAPSE 25 /* MADV_COLLAPSE */
#define PAGEMAP	 77 /* descriptor */
#define MS	 1000000u
#define TURN_NS	 (512u * MS)
#define TAKES_NS (2u * MS)
#define LOSS	 8 /* bytes a ns */

#define WHOLE ((uint64_t)1 << 63 | (uint64_t)1 << 56)

static uint64_t odd_page[RANGES]; /* what is said of one page in the midst; 0: as of the others */
static bool is_there[RANGES];
static unsigned int asked[RANGES];
static uint64_t now = UINT64_C(1000000) * MS;
static uint64_t takes = TAKES_NS;
static uint64_t spent;
static int answer;
static enum oc_thp private_pages = OC_THP_ADVISE;
static struct oc_node node;

enum oc_thp oc_thp_private(void)
{
	return private_pages;
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
	(void)clock;
	at->tv_sec = (time_t)(now / 1000000000u);
	at->tv_nsec = (long)(now % 1000000000u);
	return 0;
}

static long read_pagemap(uint64_t *pages, uint64_t bytes, uint64_t off)
{
	uint64_t i = off / 8 / PAGES - FIRST;

	EXPECT(bytes == PAGES * 8 && off % bytes == 0);
	for (size_t k = 0; k < PAGES; k++)
		pages[k] = i < RANGES && is_there[i] ? WHOLE : 0;
	if (i < RANGES && odd_page[i])
		pages[PAGES / 3] = odd_page[i];
	return (long)bytes;
}

static long collapse(uint64_t at, uint64_t bytes)
{
	uint64_t i = at / HUGE - FIRST;

	EXPECT(at % HUGE == 0 && bytes == HUGE && i < RANGES);
	asked[i]++;
	now += takes;
	spent += takes;
	errno = answer;
	return answer ? -1 : 0;
}

bool fake_call(long number, const long arg[6], long *result)
{
	*result = 0;
	if (number == SYS_openat && !strcmp((char *)NULL + arg[1], "/proc/self/pagemap"))
		*result = PAGEMAP;
	else if (number == SYS_pread64 && arg[0] == PAGEMAP)
		*result = read_pagemap((uint64_t *)((char *)NULL + arg[1]), (uint64_t)arg[2],
				       (uint64_t)arg[3]);
	else if (number == SYS_madvise && arg[2] == COLLAPSE)
		*result = collapse((uint64_t)arg[0], (uint64_t)arg[1]);
	else
		return number == SYS_close && arg[0] == PAGEMAP;
	return true;
}

static void begin(void)
{
	size_t bytes = OC_AREA_BYTES + 4096;

	/* One that was not there: what it has been told is none of the last one's. */
	node.segment =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(node.segment != MAP_FAILED);
	node.segment->area_off = 4096;
	node.segment->area_bytes = OC_AREA_BYTES;
	memset(odd_page, 0, sizeof(odd_page));
	memset(is_there, 0, sizeof(is_there));
	memset(asked, 0, sizeof(asked));
	spent = 0;
	answer = 0;
}

static unsigned int asked_in_all(void)
{
	unsigned int sum = 0;

	for (size_t i = 0; i < RANGES; i++)
		sum += asked[i];
	return sum;
}

static void copy_pieces(const struct iovec *pieces, size_t count, size_t bytes)
{
	if (oc_private_pages_count(bytes))
		oc_private_pages_tell(&node, 0, pieces, count, bytes);
}

/* As peers do, from @off behind the beginning of a range on. */
static void copy(size_t i, size_t off, size_t bytes)
{
	struct iovec piece = {(char *)NULL + (FIRST + i) * HUGE + off, bytes};

	copy_pieces(&piece, 1, bytes);
}

static void look(void)
{
	now += TURN_NS;
	errno = EDOM;
	oc_private_pages_look(&node);
	EXPECT(errno == EDOM);
}

static void make_whole(size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		is_there[i] = true;
}

/* A buffer's own, and those of which a part is. */
static void test_whole_ranges(void)
{
	begin();
	make_whole(9, 14);
	for (int turn = 0; turn < 20; turn++) {
		for (int k = 0; k < 10; k++)
			copy(10, HUGE / 4, 2 * HUGE);
		look();
	}
	EXPECT(asked[10] && asked[11] && asked[12]);
	EXPECT(!asked[9] && !asked[13]);
}

/* Memory would grow, or is not this process's alone. */
static void test_other_ranges(void)
{
	static const uint64_t odd[] = {
		1,				       /* none */
		(uint64_t)1 << 62,		       /* swapped */
		(uint64_t)1 << 63,		       /* of zeros, or of a child, too */
		WHOLE | (uint64_t)1 << 61,	       /* shared */
		(uint64_t)1 << 56 | (uint64_t)1 << 55, /* not there */
	};
	size_t count = sizeof(odd) / sizeof(*odd);

	begin();
	make_whole(20, 20 + count);
	for (size_t i = 0; i < count; i++)
		odd_page[20 + i] = odd[i];
	for (int turn = 0; turn < 50; turn++) {
		for (int k = 0; k < 10; k++)
			copy(20, 0, count * HUGE);
		look();
	}
	EXPECT(asked_in_all() == 0);
	/* And when they are whole. */
	memset(odd_page, 0, sizeof(odd_page));
	for (int turn = 0; turn < 50; turn++) {
		for (int k = 0; k < 100; k++)
			copy(20, 0, count * HUGE);
		look();
	}
	for (size_t i = 0; i < count; i++)
		EXPECT(asked[20 + i]);
}

static void test_lists(void)
{
	struct iovec pieces[64];

	begin();
	make_whole(0, RANGES);
	for (size_t i = 0; i < 64; i++)
		pieces[i] = (struct iovec){(char *)NULL + (FIRST + 100 + 2 * i) * HUGE + HUGE / 2,
					   HUGE / 8};
	for (int turn = 0; turn < 400; turn++) {
		for (int k = 0; k < 4; k++)
			copy_pieces(pieces, 64, 64 * (HUGE / 8) - 4096);
		look();
	}
	for (size_t i = 0; i < 64; i++)
		EXPECT(asked[100 + 2 * i] && !asked[101 + 2 * i]);
}

/* Never twice what copies have lost, beside what is not known of the first. */
static void test_share_of_the_copies(void)
{
	uint64_t copied = 0;

	begin();
	make_whole(0, RANGES);
	for (int turn = 0; turn < 1000; turn++) {
		for (int k = 0; k < 8; k++, copied += HUGE)
			copy((size_t)rand() % RANGES, 0, HUGE);
		look();
		EXPECT(spent <= copied / LOSS + 4 * TAKES_NS);
	}
	EXPECT(asked_in_all() > 0);
}

/* What was tried is tried again more and more seldom, as it may be other memory by now. */
static void test_again(void)
{
	begin();
	make_whole(7, 8);
	for (int turn = 0; turn < 4000; turn++) {
		for (int k = 0; k < 10; k++)
			copy(7, 0, HUGE);
		look();
	}
	EXPECT(asked[7] > 4 && asked[7] < 16);
}

static void test_turns(void)
{
	uint64_t before;
	unsigned int all;

	begin();
	make_whole(0, RANGES);
	/* A ring that runs over, and nobody looks. */
	for (int k = 0; k < 100000; k++)
		copy(600 + (size_t)k % 32, 0, HUGE);
	EXPECT(spent == 0);
	look();
	for (size_t i = 600; i < 632; i++)
		EXPECT(asked[i] == 1 || asked[i] == 2);
	/* Within the same turn it is not looked again. */
	all = asked_in_all();
	for (int k = 0; k < 100000; k++)
		copy(640 + (size_t)k % 4, 0, HUGE);
	oc_private_pages_look(&node);
	EXPECT(asked_in_all() == all);
	/* Never for long, when much becomes worth it at once and takes longer than it did. */
	takes = 8 * MS;
	for (int turn = 0; turn < 100; turn++) {
		before = spent;
		for (int k = 0; k < 250; k++)
			copy(400 + (size_t)(turn * 250 + k) / 5 % 200, 0, HUGE);
		look();
		EXPECT(spent - before <= 64 * MS + takes);
	}
	EXPECT(asked_in_all() > all);
	takes = TAKES_NS;
}

static void test_refusals(void)
{
	begin();
	make_whole(950, 958);
	answer = ENOMEM;
	for (int k = 0; k < 200; k++)
		copy(950 + (size_t)k % 2, 0, HUGE);
	look();
	EXPECT(asked_in_all() == 1);
	answer = EINVAL;
	for (int turn = 0; turn < 100; turn++) {
		for (int k = 0; k < 100; k++)
			copy(950 + (size_t)k % 8, 0, HUGE);
		look();
	}
	EXPECT(asked_in_all() > 8 && asked_in_all() < 8 * 12);
}

/* In a process of its own: what the system says is asked once. */
static void test_where_there_are_none(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		private_pages = OC_THP_NEVER;
		begin();
		make_whole(0, RANGES);
		for (int k = 0; k < 1000; k++)
			copy(1, 0, HUGE);
		look();
		exit(asked_in_all() != 0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
	unsetenv("ONECOPY_THP");
	test_where_there_are_none();
	test_whole_ranges();
	test_other_ranges();
	test_lists();
	test_again();
	test_turns();
	test_refusals();
	/* The last one, as it has ranges tried all over. */
	test_share_of_the_copies();
	return 0;
}
