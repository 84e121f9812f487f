// SPDX-License-Identifier: BSD-3-Clause
/*
 * What zeroing a block of the arena leaves: zeroes, and no pages where there were
 * none, wherever the block begins and ends.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "heap/arena.h"

#define PAGE  ((size_t)4096)
#define BLOCK ((size_t)4 << 20)
#define STEP  16 /* pages that one written page may cost */

static long pages(const struct oc_heap_arena *arena)
{
	struct stat stat;

	return fstat(arena->fd, &stat) ? -1 : (long)(stat.st_blocks * 512 / (long)PAGE);
}

/* A block @off into the arena, with neighbours, one byte of it written at @at. */
static int check(const struct oc_heap_arena *arena, size_t off, size_t bytes, size_t at)
{
	char *block = arena->base + off;
	long before, after;

	block[-1] = block[bytes] = 7;
	block[at] = 1;
	before = pages(arena);
	oc_heap_arena_zero(arena, block, bytes);
	after = pages(arena);
	/* For the byte, and where the neighbours' pages reach into the block. */
	if (before < 0 || after - before > 3 * STEP) {
		fprintf(stderr, "%zu bytes at %zu, one at %zu: %ld pages, then %ld\n", bytes, off,
			at, before, after);
		return 1;
	}
	for (size_t i = 0; i < bytes; i++)
		if (block[i]) {
			fprintf(stderr, "%zu bytes at %zu: byte %zu is not zero\n", bytes, off, i);
			return 1;
		}
	if (block[-1] != 7 || block[bytes] != 7) {
		fprintf(stderr, "%zu bytes at %zu: a neighbour was written\n", bytes, off);
		return 1;
	}
	return 0;
}

int main(void)
{
	static const size_t begins[] = {1, 128, PAGE - 1, PAGE, 15 * PAGE + 64};
	struct oc_heap_arena arena;
	const char *why = "";
	size_t off = BLOCK;
	int failed = 0;

	if (oc_heap_arena_create(&arena, &why)) {
		fprintf(stderr, "no arena: %s\n", why);
		return 77;
	}
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
		failed |= check(&arena, off + begins[i], BLOCK, BLOCK / 3);
		off += 3 * BLOCK;
		failed |= check(&arena, off + begins[i], BLOCK - 100, 0);
		off += 3 * BLOCK;
		failed |= check(&arena, off + begins[i], PAGE * 17 + 5, PAGE * 17 + 4);
		off += 3 * BLOCK;
	}
	oc_heap_arena_destroy(&arena);
	return failed;
}
