/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HUGEPAGES_H
#define HUGEPAGES_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* KiB of this process's arena, in which @block is, that huge pages map. */
static inline long huge_kib(const void *block)
{
	char line[512], file[32] = "?", other[32];
	long sum = 0, n;
	int ours = 0;

	/* Peers' arenas are mapped, too: first the file that @block lies in is found. */
	for (int turn = 0; turn < 2; turn++) {
		FILE *smaps = fopen("/proc/self/smaps", "r");

		while (smaps && fgets(line, sizeof(line), smaps)) {
			unsigned long from, to;

			if (sscanf(line, "%lx-%lx %*s %*s %31s", &from, &to, other) == 3) {
				ours = !strcmp(other, file);
				if (from <= (uintptr_t)block && (uintptr_t)block < to)
					strcpy(file, other);
			} else if (turn && ours && sscanf(line, "ShmemPmdMapped: %ld", &n) == 1) {
				sum += n;
			}
		}
		if (smaps)
			fclose(smaps);
	}
	return sum;
}

/* KiB that huge pages map in mappings that [p, p + bytes) is in. */
static inline long huge_kib_at(const void *p, size_t bytes)
{
	char line[512];
	long sum = 0, n;
	int inside = 0;
	FILE *smaps = fopen("/proc/self/smaps", "r");

	while (smaps && fgets(line, sizeof(line), smaps)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = from < (uintptr_t)p + bytes && to > (uintptr_t)p;
		else if (inside && sscanf(line, "ShmemPmdMapped: %ld", &n) == 1)
			sum += n;
	}
	if (smaps)
		fclose(smaps);
	return sum;
}

#endif
