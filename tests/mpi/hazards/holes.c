// SPDX-License-Identifier: BSD-3-Clause
/* Strided types over mappings of the program's own, whose gaps nobody may touch. */
#include <string.h>
#include <sys/mman.h>

#include "pattern.h"

#define RANKS 4
#define PAGE  ((size_t)4096)
#define WORDS ((int)PAGE / 4)
#define PAGES 8 /* of a block */
#define BLOCK (2 * PAGE * PAGES)

static int rank, size;

/* Blocks whose every other page is there. */
static char *open_blocks(void)
{
	char *at = mmap(NULL, RANKS * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	if (at == MAP_FAILED)
		pattern_fail("no memory");
	for (size_t page = 1; page < RANKS * 2 * PAGES; page += 2)
		if (page % 4 == 1 ? munmap(at + page * PAGE, PAGE)
				  : mprotect(at + page * PAGE, PAGE, PROT_NONE))
			pattern_fail("no hole");
	return at;
}

static unsigned int *page_of(char *blocks, int block, int page)
{
	return (unsigned int *)(blocks + (size_t)block * BLOCK + 2 * (size_t)page * PAGE);
}

static void fill(char *send, char *recv, unsigned int turn)
{
	for (int b = 0; b < size; b++)
		for (int p = 0; p < PAGES; p++) {
			pattern_fill(page_of(send, b, p), (size_t)WORDS,
				     turn + (unsigned int)(rank * RANKS + b) * PAGES +
					     (unsigned int)p);
			memset(page_of(recv, b, p), 0, PAGE);
		}
}

static void check(char *recv, int block, int from, int to, unsigned int turn, const char *what)
{
	for (int p = 0; p < PAGES; p++)
		pattern_check(page_of(recv, block, p), (size_t)WORDS,
			      turn + (unsigned int)(from * RANKS + to) * PAGES + (unsigned int)p,
			      what);
}

int main(int argc, char **argv)
{
	int counts[RANKS], displs[RANKS];
	MPI_Datatype vector, type, types[RANKS];
	char *send, *recv;

	pattern_start(&argc, &argv, RANKS, &rank, &size);
	MPI_Type_vector(PAGES, WORDS, 2 * WORDS, MPI_UNSIGNED, &vector);
	MPI_Type_create_resized(vector, 0, (MPI_Aint)BLOCK, &type);
	MPI_Type_commit(&type);
	for (int r = 0; r < size; r++) {
		counts[r] = 1;
		displs[r] = r * (int)BLOCK;
		types[r] = type;
	}
	send = open_blocks();
	recv = open_blocks();
	for (unsigned int turn = 0; turn < 8; turn++) {
		int root = (int)turn % size;

		fill(send, recv, turn);
		MPI_Bcast(rank == root ? send : recv, 1, type, root, MPI_COMM_WORLD);
		if (rank != root)
			check(recv, 0, root, 0, turn, "bcast");
		fill(send, recv, turn);
		MPI_Gather(send, 1, type, recv, 1, type, root, MPI_COMM_WORLD);
		for (int r = 0; rank == root && r < size; r++)
			check(recv, r, r, 0, turn, "gather");
		fill(send, recv, turn);
		MPI_Alltoall(send, 1, type, recv, 1, type, MPI_COMM_WORLD);
		for (int r = 0; r < size; r++)
			check(recv, r, r, rank, turn, "alltoall");
		fill(send, recv, turn);
		MPI_Alltoallw(send, counts, displs, types, recv, counts, displs, types,
			      MPI_COMM_WORLD);
		for (int r = 0; r < size; r++)
			check(recv, r, r, rank, turn, "alltoallw");
	}
	MPI_Type_free(&vector);
	MPI_Type_free(&type);
	MPI_Finalize();
	return 0;
}
