// SPDX-License-Identifier: BSD-3-Clause
/*
 * What the kernel would write into a core file: what blocks are in, not an arena as large
 * as the memory, whose holes it would fill first.
 */
#include <unistd.h>

#include "../heap_probe.h"

#define MIB ((size_t)1 << 20)

static struct probe arena;

/* Bytes of the arena that a core file would hold, and those of [at, at + bytes) among them. */
static size_t dumped(uintptr_t at, size_t bytes, size_t *of_block)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	size_t from = 0, to = 0, all = 0;
	char line[512];

	CHECK(maps);
	*of_block = 0;
	while (fgets(line, sizeof(line), maps)) {
		size_t low, high;

		if (sscanf(line, "%zx-%zx ", &low, &high) == 2) {
			from = low;
			to = high;
			continue;
		}
		if (strncmp(line, "VmFlags:", 8) || strstr(line, " dd") ||
		    from < (uintptr_t)arena.base || from >= (uintptr_t)arena.end)
			continue;
		all += to - from;
		low = from > at ? from : at;
		high = to < at + bytes ? to : at + bytes;
		*of_block += high > low ? high - low : 0;
	}
	fclose(maps);
	return all;
}

int main(void)
{
	size_t bytes, of_block;
	char *small, *large;
	uintptr_t at;

	arena = probe_arena();
	CHECK(arena.base);
	/* Twice that is all there is for large blocks. */
	bytes = (size_t)(arena.end - arena.base) / 4 - 2 * MIB;
	small = malloc(64 << 10);
	large = malloc(bytes);
	at = (uintptr_t)large;
	CHECK(small && large);
	dumped((uintptr_t)small, 64 << 10, &of_block);
	CHECK(of_block == 64 << 10);
	CHECK(dumped(at, bytes, &of_block) < bytes + 64 * MIB);
	CHECK(of_block == bytes);
	large = realloc(large, 2 * bytes);
	at = (uintptr_t)large;
	CHECK(large && dumped(at, 2 * bytes, &of_block) < 2 * bytes + 64 * MIB);
	CHECK(of_block == 2 * bytes);
	/* More than is kept of freed blocks. */
	free(large);
	CHECK(dumped(at, 2 * bytes, &of_block) < 64 * MIB);
	CHECK(!of_block);
	free(small);
	return 0;
}
