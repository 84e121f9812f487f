// SPDX-License-Identifier: BSD-3-Clause
/*
 * oneshot once|again: collectives from and to mappings of the program's own, which
 * each call has anew (once) or all calls share (again).
 */
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "pattern.h"

#define WORDS ((size_t)1 << 17) /* of a block: 512 KiB */
#define TURNS 12u

static int rank, size;

/* Mappings stay, so none gets the address of another. */
static unsigned int *buffer(bool again, int which, size_t words)
{
	static unsigned int *kept[2];
	unsigned int *data = kept[which];

	if (!data || !again)
		data = mmap(NULL, words * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	if (data == MAP_FAILED)
		pattern_fail("mmap");
	kept[which] = data;
	return data;
}

static void gather_all(bool again, unsigned int turn)
{
	size_t all = WORDS * (size_t)size;
	unsigned int *send = buffer(again, 0, all), *recv = buffer(again, 1, all);

	pattern_fill(send, WORDS, turn * 64 + (unsigned int)rank);
	memset(recv, 0xcc, all * 4);
	MPI_Allgather(send, (int)WORDS, MPI_UNSIGNED, recv, (int)WORDS, MPI_UNSIGNED,
		      MPI_COMM_WORLD);
	memset(send, 0xee, WORDS * 4);
	for (int r = 0; r < size; r++)
		pattern_check(recv + (size_t)r * WORDS, WORDS, turn * 64 + (unsigned int)r,
			      "allgather");
}

static void exchange_all(bool again, unsigned int turn)
{
	size_t all = WORDS * (size_t)size;
	unsigned int *send = buffer(again, 0, all), *recv = buffer(again, 1, all);

	for (int r = 0; r < size; r++)
		pattern_fill(send + (size_t)r * WORDS, WORDS,
			     (turn * 64 + (unsigned int)rank) * 64 + (unsigned int)r);
	memset(recv, 0xcc, all * 4);
	MPI_Alltoall(send, (int)WORDS, MPI_UNSIGNED, recv, (int)WORDS, MPI_UNSIGNED,
		     MPI_COMM_WORLD);
	memset(send, 0xee, all * 4);
	for (int r = 0; r < size; r++)
		pattern_check(recv + (size_t)r * WORDS, WORDS,
			      (turn * 64 + (unsigned int)r) * 64 + (unsigned int)rank, "alltoall");
}

int main(int argc, char **argv)
{
	bool again = argc > 1 && !strcmp(argv[1], "again");

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (unsigned int turn = 0; turn < TURNS; turn++) {
		gather_all(again, turn);
		exchange_all(again, turn);
	}
	MPI_Finalize();
	return 0;
}
