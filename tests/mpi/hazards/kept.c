// SPDX-License-Identifier: BSD-3-Clause
/*
 * kept: has filled a static array and a block, but for a page here and there, and goes on with
 * collectives or messages in them (argument: "bcast" or "messages"), or waits for short messages of
 * others ("waits"), until huge pages are under either, a minute at most. Prints the KiB of it, or
 * "none" where the kernel makes none out of small pages.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hugepages.h"
#include "pattern.h"

#define HUGE	 ((size_t)2 << 20)
#define BYTES	 (4 * HUGE)
#define PART	 ((size_t)1 << 20)
#define PAGE	 ((size_t)4096)
#define TURNS	 64
#define TOKENS	 1024
#define LONGEST	 60.0
#define COLLAPSE 25 /* MADV_COLLAPSE */

static char array[BYTES];

static int can_collapse(void)
{
	char *room =
		mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *range = room + (HUGE - (uintptr_t)room % HUGE) % HUGE;

	if (room == MAP_FAILED)
		return 0;
	range[0] = 1;
	return !madvise(range, HUGE, COLLAPSE);
}

static void broadcast(char *memory)
{
	for (int i = 0; i < TURNS; i++)
		MPI_Bcast(memory + i % 4 * PART, (int)PART, MPI_BYTE, 0, MPI_COMM_WORLD);
}

/* Both receive: it is who copies that looks after its memory. */
static void exchange(char *memory, int rank)
{
	for (int i = 0; i < TURNS; i++)
		MPI_Sendrecv(memory + i % 2 * PART, (int)PART, MPI_BYTE, 1 - rank, 0,
			     memory + (2 + i % 2) * PART, (int)PART, MPI_BYTE, 1 - rank, 0,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Messages too short for onecopy to see them. */
static void wait_for_others(int rank, int ranks)
{
	long token = rank;

	for (int i = 0; i < TOKENS; i++)
		MPI_Sendrecv_replace(&token, 1, MPI_LONG, (rank + 1) % ranks, 0,
				     (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
	if (token != (rank + ranks * TOKENS - TOKENS) % ranks)
		pattern_fail("wrong token");
}

/* Arrays have such: what is between their columns, say. */
static int is_hole(size_t at)
{
	return at % PART / PAGE % 100 == 99;
}

static void fill(char *memory, int rank)
{
	for (size_t at = 0; at < BYTES; at += PAGE)
		if (!is_hole(at))
			memset(memory + at, 1 + rank, PAGE);
}

/* [@came, @came_to) of @memory is @came_from's, the rest this rank's own. */
static void check(const char *memory, int rank, int came_from, size_t came, size_t came_to)
{
	for (size_t at = 0; at < BYTES; at++) {
		int owner = at >= came && at < came_to ? came_from : rank;

		if (memory[at] != (is_hole(at) ? 0 : 1 + owner))
			pattern_fail("wrong data");
	}
}

int main(int argc, char **argv)
{
	char *block = calloc(1, BYTES);
	long there[2] = {0, 0}, least[2] = {0, 0};
	int rank, ranks, all, able, collective, waits;
	double end;

	if (!block || argc < 2)
		pattern_fail("no memory");
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	collective = !strcmp(argv[1], "bcast");
	waits = !strcmp(argv[1], "waits");
	fill(block, rank);
	fill(array, rank);
	able = can_collapse();
	MPI_Allreduce(&able, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	end = MPI_Wtime() + LONGEST;
	while (all && (!least[0] || !least[1])) {
		int late = MPI_Wtime() > end, any_late;

		for (int k = 0; k < 2; k++) {
			char *memory = k ? array : block;

			if (collective) {
				broadcast(memory);
			} else if (waits) {
				wait_for_others(rank, ranks);
				/* A huge page is seen here once it has been used. */
				check(memory, rank, rank, 0, 0);
			} else {
				exchange(memory, rank);
			}
			there[k] = huge_kib_at(memory, BYTES);
		}
		MPI_Allreduce(there, least, 2, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
		MPI_Allreduce(&late, &any_late, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
		if (any_late)
			break;
	}
	for (int k = 0; k < 2 && all; k++)
		if (collective)
			check(k ? array : block, rank, 0, 0, 4 * PART);
		else if (!waits)
			check(k ? array : block, rank, 1 - rank, 2 * PART, 4 * PART);
	if (rank == 0 && all)
		printf("%ld %ld\n", least[0], least[1]);
	else if (rank == 0)
		printf("none\n");
	free(block);
	MPI_Finalize();
	return 0;
}
