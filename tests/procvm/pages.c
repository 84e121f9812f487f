// SPDX-License-Identifier: BSD-3-Clause
/*
 * pages SECONDS: two ranks copy each other's mappings by process_vm_readv() until all of the first
 * kind has huge pages, or for so long, and half a second more, and say what came of each kind:
 * whole ones; ones of which every other page was written to; shared ones; and ones that are to have
 * no huge pages. What is copied is right all the while.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define HUGE	 ((size_t)2 << 20)
#define BYTES	 (4 * HUGE)
#define PAGE	 ((size_t)4096)
#define COLLAPSE 25 /* MADV_COLLAPSE */

enum { WHOLE, SPARSE, SHARED, ADVISED, KINDS };

static const char *const names[KINDS] = {"whole", "sparse", "shared", "advised"};

static char *maps[KINDS];

/* Between pages that nobody may touch, so that the kernel joins it with no other. */
static char *map(int flags)
{
	char *at = mmap(NULL, BYTES + 2 * HUGE, PROT_NONE, flags | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		MPI_Abort(MPI_COMM_WORLD, 71);
	at += HUGE - (uintptr_t)at % HUGE;
	if (mprotect(at, BYTES, PROT_READ | PROT_WRITE))
		MPI_Abort(MPI_COMM_WORLD, 71);
	return at;
}

static char byte_at(int kind, int rank, size_t page)
{
	return (char)(kind * 50 + rank * 100 + (int)page + 1);
}

static bool has(int kind, size_t page)
{
	return kind != SPARSE || page % 2;
}

static void fill(int rank)
{
	for (int kind = 0; kind < KINDS; kind++) {
		maps[kind] = map(kind == SHARED ? MAP_SHARED : MAP_PRIVATE);
		if (kind == ADVISED)
			madvise(maps[kind], BYTES, MADV_NOHUGEPAGE);
		for (size_t page = 0; page < BYTES / PAGE; page++)
			if (has(kind, page))
				memset(maps[kind] + page * PAGE, byte_at(kind, rank, page), PAGE);
	}
}

/* kB of a line of /proc/self/smaps about all mappings within this one. */
static long smaps(const char *at, const char *name)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	size_t length = strlen(name);
	bool within = false;
	char line[512];
	long sum = 0;

	while (file && fgets(line, sizeof(line), file)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			within = from < (uintptr_t)at + BYTES && to > (uintptr_t)at;
		else if (within && !strncmp(line, name, length) && line[length] == ':')
			sum += strtol(line + length + 1, NULL, 10);
	}
	if (file)
		fclose(file);
	return sum;
}

static void copy(pid_t peer, const uint64_t *theirs, int their_rank)
{
	static char *in;

	if (!in)
		in = malloc(BYTES);
	for (int kind = 0; kind < KINDS; kind++) {
		struct iovec here = {in, BYTES}, there = {(char *)NULL + theirs[kind], BYTES};

		if (process_vm_readv(peer, &here, 1, &there, 1, 0) != (ssize_t)BYTES)
			MPI_Abort(MPI_COMM_WORLD, 1);
		for (size_t page = 0; page < BYTES / PAGE; page++)
			if (in[page * PAGE + page] !=
			    (has(kind, page) ? byte_at(kind, their_rank, page) : 0))
				MPI_Abort(MPI_COMM_WORLD, 2);
	}
}

/* Whether a whole mapping can have them at all. */
static bool can_collapse(void)
{
	char *at = map(MAP_PRIVATE);

	memset(at, 1, HUGE);
	return !madvise(at, HUGE, COLLAPSE);
}

int main(int argc, char **argv)
{
	uint64_t mine[KINDS + 1], theirs[KINDS + 1];
	long rss[KINDS], huge[KINDS];
	int rank, here[2], everywhere[2];
	bool all = false;
	double until;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc != 2)
		MPI_Abort(MPI_COMM_WORLD, 64);
	if (!can_collapse() && rank == 0)
		printf("no collapse\n");
	fill(rank);
	for (int kind = 0; kind < KINDS; kind++) {
		mine[kind] = (uintptr_t)maps[kind];
		rss[kind] = smaps(maps[kind], "Rss");
		huge[kind] = smaps(maps[kind], "AnonHugePages");
	}
	mine[KINDS] = (uint64_t)getpid();
	MPI_Sendrecv(mine, KINDS + 1, MPI_UINT64_T, !rank, 0, theirs, KINDS + 1, MPI_UINT64_T,
		     !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	until = MPI_Wtime() + atof(argv[1]);
	do {
		copy((pid_t)theirs[KINDS], theirs, !rank);
		here[0] = smaps(maps[WHOLE], "AnonHugePages") == (long)(BYTES / 1024);
		here[1] = MPI_Wtime() < until;
		MPI_Allreduce(here, everywhere, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
		if (everywhere[0] && !all) {
			all = true;
			until = MPI_Wtime() + 0.6;
		}
	} while (everywhere[1]);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int kind = 0; kind < KINDS; kind++)
		printf("%d %s: huge %ld shared %ld grown %ld\n", rank, names[kind],
		       smaps(maps[kind], "AnonHugePages") - huge[kind],
		       smaps(maps[kind], "ShmemPmdMapped"), smaps(maps[kind], "Rss") - rss[kind]);
	MPI_Finalize();
	return 0;
}
