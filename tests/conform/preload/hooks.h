/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOOKS_H
#define HOOKS_H

/*
 * What a cache of registrations hears of memory that goes away: the same under the
 * preload, with blocks in the shared heap, as without. Compiled with a hook that calls
 * hooks_hear().
 */

#include <sys/mman.h>
#include <unistd.h>

#include "../heap_probe.h"

#define MIB ((size_t)1 << 20)

static char *watched, *watched_end;
/* Changed within free(), which the compiler does not expect. */
static volatile size_t heard;	    /* bytes of it that went away */
static volatile unsigned int times; /* in so many pieces */

/* Where who listens has to be asked for each block, and to be waited for; which returns how
 * many bytes of it have not gone. */
static void (*hooks_begin)(char *p, size_t bytes);
static size_t (*hooks_settle)(char *p, size_t bytes);

static inline void hooks_hear(void *p, size_t bytes)
{
	char *from = p, *to = from + bytes;

	from = from > watched ? from : watched;
	to = to < watched_end ? to : watched_end;
	if (from >= to)
		return;
	heard = heard + (size_t)(to - from);
	times = times + 1;
}

static inline void watch(char *p, size_t bytes)
{
	watched = p;
	watched_end = p + bytes;
	heard = 0;
	times = 0;
	if (hooks_begin && bytes)
		hooks_begin(p, bytes);
}

/* The compiler may not reason about what malloc returns. */
static inline char *touched(size_t bytes)
{
	char *p = malloc(bytes);

	__asm__ volatile("" : "+r"(p));
	CHECK(p);
	memset(p, 1, bytes);
	return p;
}

/* Whole pages of [p, p + bytes), what a block's first and last may lack. */
static inline bool has_heard(size_t bytes)
{
	size_t left = hooks_settle ? hooks_settle(watched, (size_t)(watched_end - watched)) : 0;

	return heard + left >= bytes - 2 * 4096;
}

/* The first ones are kept for reuse where memory is plenty, and heard of in any case. */
static inline void freed(void)
{
	char *p;

	for (size_t bytes = 32 * MIB; bytes <= 256 * MIB; bytes *= 2)
		for (int round = 0; round < 3; round++) {
			p = touched(bytes);
			watch(p, bytes);
			free(p);
			CHECK(has_heard(bytes));
		}
}

static inline void shrunk(void)
{
	char *p = touched(256 * MIB), *q;

	watch(p + 65 * MIB, 191 * MIB);
	q = realloc(p, 64 * MIB);
	CHECK(q && q[64 * MIB - 1] == 1 && has_heard(191 * MIB));
	free(q);
}

/* A block that finds no room where it stands: another one is behind it, as a rule. */
static inline void grown(void)
{
	char *blocks[8], *p, *q, *old;
	unsigned int n = 0, moved = 0;

	while (n < 8 && moved < 2) {
		p = touched(48 * MIB);
		blocks[n++] = touched(48 * MIB);
		old = p;
		__asm__ volatile("" : "+r"(old)); /* only compared once it is gone */
		watch(p, 48 * MIB);
		q = realloc(p, 160 * MIB);
		CHECK(q && q[0] == 1 && q[48 * MIB - 1] == 1);
		if (q != old) {
			CHECK(has_heard(48 * MIB));
			moved++;
		}
		watch(NULL, 0);
		free(q);
	}
	CHECK(moved);
	while (n)
		free(blocks[--n]);
}

static inline void discarded(void)
{
	char *p = touched(40 * MIB), *page = (char *)(((uintptr_t)p + MIB) & ~(uintptr_t)4095);

	watch(page, 10 * MIB);
	CHECK(!madvise(page, 10 * MIB, MADV_DONTNEED));
	CHECK(!page[0] && !page[10 * MIB - 1] && page[10 * MIB] == 1);
	CHECK(has_heard(10 * MIB));
	CHECK(heard == 10 * MIB); /* in pieces, where the mapping is */
	free(p);
}

/* The C library keeps blocks of this size, too, when they come again: no event each. */
static inline void recycled(void)
{
	free(touched(8 * MIB));
	watch(NULL, 0);
	watched_end = (char *)UINTPTR_MAX;
	for (int i = 0; i < 100; i++)
		free(touched(MIB));
	CHECK(times < 10);
}

/* Of blocks of some pages that are given back when many are free, each page is heard of. Within a
 * small arena, of which little is kept. */
static inline void given_back(void)
{
	enum { BLOCKS = 320 };
	static char *blocks[BLOCKS];
	long full, left;

	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = touched(MIB);
	full = probe_status("RssShmem:");
	watch(NULL, 0);
	watched_end = (char *)UINTPTR_MAX;
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	left = probe_status("RssShmem:");
	CHECK(left < full - full / 3);
	CHECK(heard >= (size_t)(full - left) << 10);
}

static inline void hooks_check(const char *heap)
{
	if (!strcmp(heap, "small")) {
		given_back();
		return;
	}
	CHECK(!probe_arena().base == !strcmp(heap, "plain"));
	freed();
	shrunk();
	grown();
	discarded();
	recycled();
}

#endif
