// SPDX-License-Identifier: BSD-3-Clause
/*
 * fork_advice heap|plain CASE: what MADV_DONTFORK and its like say of memory of malloc's
 * holds for the child, and whatever is said, neither of parent and child sees what the
 * other writes. Without the heap the kernel is the judge of the same cases.
 */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "fork_blocks.h"
#include "../../random.h"

#define PAGE   ((size_t)4096)
#define PAGES  ((size_t)1024)
#define COUNT  3
#define ROUNDS 60

static char *area[COUNT];
static bool absent[COUNT][PAGES], empty[COUNT][PAGES];

static void make_areas(void)
{
	/* Neighbours, which the child is to have. */
	void *between[COUNT];

	for (int i = 0; i < COUNT; i++) {
		CHECK(!posix_memalign((void **)&area[i], PAGE, PAGES * PAGE));
		between[i] = hide(malloc(200 * KIB));
		CHECK(probe_holds(&arena, area[i]) == (arena.base != NULL));
	}
	free(between[1]);
}

static uint64_t seed_of(int i, size_t page, uint64_t round)
{
	return round << 32 | (uint64_t)i << 20 | page;
}

static void fill_areas(uint64_t round, bool child)
{
	for (int i = 0; i < COUNT; i++)
		for (size_t page = 0; page < PAGES; page++)
			if (!child || !absent[i][page])
				fill(area[i] + page * PAGE, PAGE, seed_of(i, page, round));
}

static bool can_read(const char *p)
{
	char byte;
	struct iovec to = {&byte, 1}, from = {(void *)(uintptr_t)p, 1};

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

static void check_child(uint64_t round)
{
	static const char zeros[PAGE];

	for (int i = 0; i < COUNT; i++)
		for (size_t page = 0; page < PAGES; page++) {
			char *p = area[i] + page * PAGE;

			if (absent[i][page])
				CHECK(!can_read(p));
			else if (empty[i][page])
				CHECK(!memcmp(p, zeros, PAGE));
			else
				CHECK(holds(p, PAGE, seed_of(i, page, round)));
		}
}

static void check_parent(uint64_t round)
{
	for (int i = 0; i < COUNT; i++)
		for (size_t page = 0; page < PAGES; page++)
			CHECK(holds(area[i] + page * PAGE, PAGE, seed_of(i, page, round)));
}

/* A child, and a child of that. */
static void try_fork(uint64_t round)
{
	pid_t pid;

	fill_areas(round, false);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		check_child(round);
		fill_areas(round + 1, true);
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			check_child(round + 1);
			fill_areas(round + 2, true);
			_exit(0);
		}
		CHECK(status_of(pid) == 0);
		_exit(0);
	}
	CHECK(status_of(pid) == 0);
	check_parent(round);
}

static void advise(int i, size_t first, size_t count, int advice)
{
	CHECK(!madvise(area[i] + first * PAGE, count * PAGE, advice));
	for (size_t page = first; page < first + count; page++) {
		if (advice == MADV_DONTFORK || advice == MADV_DOFORK)
			absent[i][page] = advice == MADV_DONTFORK;
		else
			empty[i][page] = advice == MADV_WIPEONFORK;
	}
}

/* As libibverbs does for what it registers, and when it deregisters. */
static void pairs(void)
{
	make_areas();
	advise(0, 0, PAGES, MADV_DONTFORK);
	advise(0, 0, PAGES, MADV_DOFORK);
	advise(1, 10, 7, MADV_DOFORK);
	try_fork(1);
	advise(2, 100, 1, MADV_DONTFORK);
	advise(2, 101, 300, MADV_DONTFORK);
	advise(2, 100, 200, MADV_DOFORK);
	try_fork(5);
}

/* Any advice, on any pages, in any order. */
static void any(void)
{
	static const int kinds[] = {MADV_DONTFORK, MADV_DOFORK, MADV_WIPEONFORK, MADV_KEEPONFORK};
	uint64_t state = 12345;

	make_areas();
	for (int round = 0; round < ROUNDS; round++) {
		size_t r[4];

		for (int k = 0; k < 4; k++)
			r[k] = (size_t)(random_next(&state) >> 1);
		r[1] %= PAGES;
		advise((int)(r[0] % COUNT), r[1], 1 + r[2] % (PAGES - r[1]) / (1 + r[3] % 7),
		       kinds[r[3] / 7 % 4]);
		if (round % 6 == 5)
			try_fork((uint64_t)round * 10);
	}
}

/* Past the C library's function: the kernel then leaves shared memory to the child. */
static void raw(void)
{
	make_areas();
	fill_areas(1, false);
	CHECK(!syscall(SYS_madvise, area[0] + 3 * PAGE, 20 * PAGE, MADV_DOFORK));
	CHECK(!syscall(SYS_madvise, area[1], PAGES * PAGE, MADV_DOFORK));
	try_fork(1);
}

/* What was said of a block says nothing of the next one at its place. */
static void freed(void)
{
	make_areas();
	for (int i = 0; i < COUNT; i++) {
		CHECK(!madvise(area[i], PAGES * PAGE, i ? MADV_DONTFORK : MADV_WIPEONFORK));
		free(area[i]);
	}
	make_areas();
	try_fork(1);
}

/* With the descriptor gone children are made another way. */
static void closed(void)
{
	make_areas();
	if (arena.base)
		CHECK(!close(heap_memfd()));
	advise(0, 5, 100, MADV_DONTFORK);
	advise(1, 5, 100, MADV_WIPEONFORK);
	advise(2, 0, PAGES, MADV_DOFORK);
	try_fork(1);
}

/* Half of what is said of lies outside the arena, or is no memory at all. */
static void outside(void)
{
	char *p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	make_areas();
	CHECK(p != MAP_FAILED);
	memset(p, 1, 8 * PAGE);
	CHECK(!madvise(p, 4 * PAGE, MADV_DONTFORK) && !madvise(p + 4 * PAGE, 1, MADV_WIPEONFORK));
	CHECK(madvise(area[0] + 1, PAGE, MADV_DONTFORK) && errno == EINVAL);
	CHECK(!madvise(area[0], 0, MADV_DONTFORK));
	pid = fork();
	if (!pid) {
		CHECK(!can_read(p) && !p[4 * PAGE] && p[5 * PAGE] == 1);
		_exit(0);
	}
	CHECK(status_of(pid) == 0);
	try_fork(1);
}

int main(int argc, char **argv)
{
	static const struct fork_case cases[] = {
		{"pairs", pairs}, {"any", any},	      {"raw", raw},
		{"freed", freed}, {"closed", closed}, {"outside", outside},
	};

	CHECK(argc == 3);
	arena = probe_arena();
	CHECK(!arena.base == !strcmp(argv[1], "plain"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[2])) {
			cases[i].run();
			return 0;
		}
	return 2;
}
