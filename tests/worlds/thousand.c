// SPDX-License-Identifier: BSD-3-Clause
/*
 * thousand TURNS: so many communicators, one after the other but for a few that live on for a
 * while: each is made, used by collectives that are served, and freed. Of what the process holds
 * then, in memory, mappings and descriptors, there is no more after the last than after the half of
 * them. Each rank prints by how much more there was; what the MPI by itself grows by is the test's
 * to look at.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "../mpi/hazards/pattern.h"

#define ALIVE 4	   /* communicators at a time */
#define WORDS 5000 /* of a call */

struct held {
	long resident; /* pages, shared ones included */
	long mappings;
	long descriptors;
};

static unsigned int *data, *other;

static long resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long size, pages;

	if (!file || fscanf(file, "%ld %ld", &size, &pages) != 2)
		pattern_fail("no statm");
	fclose(file);
	return pages;
}

static long mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	long lines = 0;
	int c;

	if (!file)
		pattern_fail("no maps");
	while ((c = getc(file)) != EOF)
		lines += c == '\n';
	fclose(file);
	return lines;
}

static long descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	long entries = 0;

	if (!directory)
		pattern_fail("no descriptors");
	while (readdir(directory))
		entries++;
	closedir(directory);
	return entries;
}

/* One of several kinds, of all ranks. */
static MPI_Comm make(int turn, int rank, int size)
{
	MPI_Comm comm = MPI_COMM_NULL;
	MPI_Group group;

	switch (turn % 3) {
	case 0:
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		break;
	case 1:
		MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &comm);
		break;
	default:
		MPI_Comm_group(MPI_COMM_WORLD, &group);
		MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
		MPI_Group_free(&group);
	}
	return comm;
}

static void use(MPI_Comm comm, int turn)
{
	int rank, size;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	pattern_fill(data, WORDS, (unsigned int)(rank == turn % size ? turn : -1));
	MPI_Bcast(data, WORDS, MPI_UNSIGNED, turn % size, comm);
	pattern_check(data, WORDS, (unsigned int)turn, "bcast");
	MPI_Allreduce(data, other, WORDS, MPI_UNSIGNED, MPI_MAX, comm);
	pattern_check(other, WORDS, (unsigned int)turn, "allreduce");
}

int main(int argc, char **argv)
{
	MPI_Comm alive[ALIVE] = {MPI_COMM_NULL};
	struct held now = {0}, half = {0};
	int rank, size, turns = atoi(argv[argc - 1]);

	pattern_start(&argc, &argv, 64, &rank, &size);
	data = pattern_alloc(WORDS * 4);
	other = pattern_alloc(WORDS * 4);
	for (int turn = 0; turn < turns; turn++) {
		MPI_Comm *at = &alive[turn % ALIVE];

		if (turn >= ALIVE)
			MPI_Comm_free(at);
		*at = make(turn, rank, size);
		use(*at, turn);
		if (turn + 1 != turns / 2 && turn + 1 != turns)
			continue;
		half = now;
		now = (struct held){resident(), mappings(), descriptors()};
	}
	for (int i = 0; i < ALIVE; i++)
		MPI_Comm_free(&alive[i]);
	printf("%ld %ld %ld\n", now.resident - half.resident, now.mappings - half.mappings,
	       now.descriptors - half.descriptors);
	MPI_Finalize();
	return 0;
}
