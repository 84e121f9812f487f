// SPDX-License-Identifier: BSD-3-Clause
/*
 * places arena|plain: where blocks come from that are allocated after MPI_Init; those of
 * before are in the arena and stay good.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "pattern.h"

#define WORDS ((size_t)1 << 20)

static bool in_arena(const void *p)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	bool found = false;

	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long from, to;

		/* Private mappings are libonecopy's code. */
		if (strstr(line, "onecopy-heap") && strstr(line, " rw-s ") &&
		    sscanf(line, "%lx-%lx", &from, &to) == 2)
			found |= (uintptr_t)p >= from && (uintptr_t)p < to;
	}
	if (maps)
		fclose(maps);
	return found;
}

static void check(const unsigned int *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (data[i] != pattern_at(7, i))
			pattern_fail("a block's data");
}

static unsigned int *make(void)
{
	unsigned int *data = malloc(WORDS * sizeof(*data));

	pattern_fill(data, WORDS, 7);
	return data;
}

int main(int argc, char **argv)
{
	unsigned int *early[3] = {make(), make(), make()}, *late;
	bool heap = argc > 1 && !strcmp(argv[1], "arena");

	if (!in_arena(early[0]) && !getenv("ONECOPY"))
		return 3;
	MPI_Init(&argc, &argv);
	late = make();
	if (in_arena(late) != heap)
		pattern_fail("a late block is in the wrong place");
	for (int i = 0; i < 3; i++)
		check(early[i], WORDS);
	early[0] = realloc(early[0], 3 * WORDS * sizeof(**early));
	early[1] = realloc(early[1], WORDS / 3 * sizeof(**early));
	check(early[0], WORDS);
	check(early[1], WORDS / 3);
	if (in_arena(early[0]) != heap)
		pattern_fail("a block that grew is in the wrong place");
	for (int i = 0; i < 3; i++)
		free(early[i]);
	free(late);
	MPI_Finalize();
	return 0;
}
