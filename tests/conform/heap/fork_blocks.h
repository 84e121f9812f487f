/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FORK_BLOCKS_H
#define FORK_BLOCKS_H

/* Blocks in the shared heap whose content tells who wrote it last. */

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../heap_memfd.h"
#include "../heap_probe.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static struct probe arena;

static inline void *hide(void *p)
{
	__asm__ volatile("" : "+r"(p));
	return p;
}

/* Words that are never the same in two places or two rounds. */
static inline void fill(void *p, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes / 8; i++)
		((uint64_t *)p)[i] = (i + 1) * 0x9e3779b97f4a7c15ull + seed;
}

static inline bool holds(const void *p, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes / 8; i++)
		if (((const uint64_t *)p)[i] != (i + 1) * 0x9e3779b97f4a7c15ull + seed)
			return false;
	return true;
}

static inline int status_of(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) != pid)
		CHECK(errno == EINTR);
	return status;
}

/* Blocks of every kind, scattered by frees between them. */
enum { BLOCKS = 40 };
static char *blocks[BLOCKS];
static size_t sizes[BLOCKS];

static inline void make_blocks(uint64_t seed)
{
	static const size_t some[] = {16 * KIB, 50 * KIB, 130 * KIB, 3 * MIB, 11 * MIB};
	void *holes[BLOCKS];

	for (int i = 0; i < BLOCKS; i++) {
		sizes[i] = some[i % 5];
		holes[i] = hide(malloc(sizes[(i * 7) % (i + 1)]));
		blocks[i] = malloc(sizes[i]);
		CHECK(probe_holds(&arena, blocks[i]));
		fill(blocks[i], sizes[i], seed + (uint64_t)i);
	}
	for (int i = 0; i < BLOCKS; i++)
		free(holes[i]);
}

static inline void check_blocks(uint64_t seed)
{
	for (int i = 0; i < BLOCKS; i++)
		CHECK(holds(blocks[i], sizes[i], seed + (uint64_t)i));
}

static inline void refill_blocks(uint64_t seed)
{
	for (int i = 0; i < BLOCKS; i++)
		fill(blocks[i], sizes[i], seed + (uint64_t)i);
}

/* Whatever a child, its child and its parent write, each has blocks of its own. The
 * grandchild ends with @last(). */
static inline void fork_twice(void (*last)(void))
{
	pid_t pid;

	make_blocks(1);
	pid = fork();
	if (!pid) {
		check_blocks(1);
		refill_blocks(2);
		pid = fork();
		if (!pid) {
			check_blocks(2);
			last();
			exit(0);
		}
		refill_blocks(3);
		CHECK(status_of(pid) == 0);
		check_blocks(3);
		exit(0);
	}
	refill_blocks(4);
	CHECK(status_of(pid) == 0);
	check_blocks(4);
}

struct fork_case {
	const char *name;
	void (*run)(void);
};

/* main(): runs the case that argv[1] names. */
static inline int fork_main(int argc, char **argv, const struct fork_case *cases, size_t count)
{
	CHECK(argc == 2);
	arena = probe_arena();
	CHECK(arena.base);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(cases[i].name, argv[1])) {
			cases[i].run();
			return 0;
		}
	return 2;
}

#endif
