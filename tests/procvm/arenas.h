/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ARENAS_H
#define ARENAS_H

/* What /proc says of where onecopy's arenas are mapped. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* Whether so many are mapped here, this process's own among them. */
static inline bool shows_arenas(int wanted)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long long seen[8] = {0};
	char line[512];
	int count = 0;

	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long long dev_major, dev_minor, ino;
		int known = 0;

		if (!strstr(line, "onecopy-heap") ||
		    sscanf(line, "%*s %*s %*s %llx:%llx %llu", &dev_major, &dev_minor, &ino) != 3)
			continue;
		ino = ino << 32 | dev_major << 16 | dev_minor;
		for (int i = 0; i < count && i < 8; i++)
			known |= seen[i] == ino;
		if (!known && count < 8)
			seen[count++] = ino;
	}
	if (maps)
		fclose(maps);
	return count == wanted;
}

/* Whether that address of process @pid is in one. */
static inline bool is_in_arena(pid_t pid, uintptr_t at)
{
	unsigned long from = 0, to = 0;
	char text[512];
	FILE *maps;

	snprintf(text, sizeof(text), "/proc/%d/maps", (int)pid);
	maps = fopen(text, "r");
	while (maps && at >= to && fgets(text, sizeof(text), maps))
		if (sscanf(text, "%lx-%lx", &from, &to) != 2)
			break;
	if (maps)
		fclose(maps);
	return at >= from && at < to && strstr(text, "onecopy-heap");
}

#endif
