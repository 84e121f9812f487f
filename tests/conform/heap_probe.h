/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEAP_PROBE_H
#define HEAP_PROBE_H

/*
 * For programs that run under the preload and look at its heap from outside.
 * Each must be linked with -rdynamic: the heap wakes up in programs in which
 * MPI_Get_version can be found, and here that is ours.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

int MPI_Get_version(int *version, int *subversion);

int MPI_Get_version(int *version, int *subversion)
{
	*version = 3;
	*subversion = 1;
	return 0;
}

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

struct probe {
	char *base;
	char *end;
};

/* The arena's mapping; base is NULL without one. */
static inline struct probe probe_arena(void)
{
	struct probe probe = {NULL, NULL};
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long from, to;

		if (!strstr(line, "onecopy-heap") || sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		if (!probe.base)
			probe.base = (char *)from;
		probe.end = (char *)to;
	}
	if (maps)
		fclose(maps);
	return probe;
}

static inline bool probe_holds(const struct probe *probe, const void *p)
{
	return (const char *)p >= probe->base && (const char *)p < probe->end;
}

/* Where in the arena's file @p is, in bytes; -1 if the mapping that has it is of another. */
static inline off_t probe_place(const void *p)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	off_t place = -1;

	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long from, to, off;

		if (strstr(line, "onecopy-heap") &&
		    sscanf(line, "%lx-%lx %*s %lx", &from, &to, &off) == 3 &&
		    (unsigned long)p >= from && (unsigned long)p < to)
			place = (off_t)(off + ((unsigned long)p - from));
	}
	if (maps)
		fclose(maps);
	return place;
}

/* A field of /proc/self/status in KiB, as "RssShmem:". */
static inline long probe_status(const char *field)
{
	char line[256];
	long value = -1;
	FILE *status = fopen("/proc/self/status", "r");

	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, field, strlen(field)))
			value = strtol(line + strlen(field), NULL, 10);
	if (status)
		fclose(status);
	return value;
}

#endif
