// SPDX-License-Identifier: BSD-3-Clause
/*
 * Blocks outside the shared heap with pages between them that nobody may touch.
 * Blocks to send may overlap, by more than the pages between others.
 */
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pattern.h"

#define WORDS  ((size_t)16 << 10) /* of a block: 64 KiB */
#define WHOLE  ((size_t)3 << 20)  /* bytes of a mapping with much between blocks */
#define RANKS  4
#define REPEAT 3 /* what comes again may be served in another way */

static int rank, size;
static int counts[RANKS];
static unsigned int *own; /* a block */

struct sparse {
	char *at;
	size_t bytes;
	int displs[RANKS];
};

enum { WIDE = 1, REVERSED = 2, OVERLAP = 4, VARIANTS = 8 };

/* All blocks but the last one or, reversed, the first, then a hole, then that. */
static void sparse_open(struct sparse *s, int variant)
{
	size_t near = variant & OVERLAP ? 1 : (size_t)size - 1;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t hole = variant & WIDE ? WHOLE - (near + 1) * WORDS * 4 : page;

	s->bytes = (near + 1) * WORDS * 4 + hole;
	s->at = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->at == MAP_FAILED || mprotect(s->at + near * WORDS * 4, hole, PROT_NONE))
		pattern_fail("mmap");
	for (int i = 0; i < size; i++) {
		int r = variant & REVERSED ? size - 1 - i : i;

		s->displs[r] = variant & OVERLAP ? 0 : i * (int)WORDS;
		if (i == size - 1)
			s->displs[r] = (int)(near * WORDS + hole / 4);
	}
}

static unsigned int *sparse_block(const struct sparse *s, int r)
{
	return (unsigned int *)s->at + s->displs[r];
}

static void sparse_close(struct sparse *s)
{
	munmap(s->at, s->bytes);
}

/* Blocks that overlap hold the same. */
static unsigned int seed_of(const struct sparse *send, int from, int to, unsigned int turn)
{
	return (turn * RANKS + (unsigned int)from) * (RANKS + 1) +
	       (unsigned int)(send->displs[to] ? to + 1 : 0);
}

static void fill(const struct sparse *send, unsigned int turn)
{
	for (int r = 0; r < size; r++)
		pattern_fill(sparse_block(send, r), WORDS, seed_of(send, rank, r, turn));
}

static void clear(const struct sparse *recv)
{
	for (int r = 0; r < size; r++)
		memset(sparse_block(recv, r), 0xcc, WORDS * 4);
}

static void scatter(const struct sparse *send, unsigned int turn, int root, bool in_place)
{
	bool keeps = in_place && rank == root;

	fill(send, turn);
	memset(own, 0xcc, WORDS * 4);
	MPI_Scatterv(send->at, counts, send->displs, MPI_UNSIGNED, keeps ? MPI_IN_PLACE : own,
		     (int)WORDS, MPI_UNSIGNED, root, MPI_COMM_WORLD);
	if (!keeps)
		pattern_check(own, WORDS, seed_of(send, root, rank, turn), "scatterv");
}

static void gather(const struct sparse *recv, unsigned int turn, int root, bool in_place)
{
	bool keeps = in_place && rank == root;

	clear(recv);
	pattern_fill(keeps ? sparse_block(recv, rank) : own, WORDS, turn + (unsigned int)rank);
	MPI_Gatherv(keeps ? MPI_IN_PLACE : own, (int)WORDS, MPI_UNSIGNED, recv->at, counts,
		    recv->displs, MPI_UNSIGNED, root, MPI_COMM_WORLD);
	for (int r = 0; r < size && rank == root; r++)
		pattern_check(sparse_block(recv, r), WORDS, turn + (unsigned int)r, "gatherv");
}

static void allgather(const struct sparse *recv, unsigned int turn, bool in_place)
{
	clear(recv);
	pattern_fill(in_place ? sparse_block(recv, rank) : own, WORDS, turn + (unsigned int)rank);
	MPI_Allgatherv(in_place ? MPI_IN_PLACE : own, (int)WORDS, MPI_UNSIGNED, recv->at, counts,
		       recv->displs, MPI_UNSIGNED, MPI_COMM_WORLD);
	for (int r = 0; r < size; r++)
		pattern_check(sparse_block(recv, r), WORDS, turn + (unsigned int)r, "allgatherv");
}

static void alltoall(const struct sparse *send, const struct sparse *recv, unsigned int turn)
{
	fill(send, turn);
	clear(recv);
	MPI_Alltoallv(send->at, counts, send->displs, MPI_UNSIGNED, recv->at, counts, recv->displs,
		      MPI_UNSIGNED, MPI_COMM_WORLD);
	for (int r = 0; r < size; r++)
		pattern_check(sparse_block(recv, r), WORDS, seed_of(send, r, rank, turn),
			      "alltoallv");
}

int main(int argc, char **argv)
{
	unsigned int turn = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size > RANKS)
		pattern_fail("too many ranks");
	own = pattern_alloc(WORDS * 4);
	for (int r = 0; r < size; r++)
		counts[r] = (int)WORDS;
	for (int variant = 0; variant < VARIANTS; variant++) {
		struct sparse send, recv;

		sparse_open(&send, variant);
		sparse_open(&recv, variant & ~OVERLAP);
		for (int i = 0; i < REPEAT * size; i++, turn++) {
			scatter(&send, turn, i % size, i & 1);
			gather(&recv, turn, i % size, i & 1);
			allgather(&recv, turn, i & 1);
			alltoall(&send, &recv, turn);
		}
		sparse_close(&send);
		sparse_close(&recv);
	}
	MPI_Finalize();
	return 0;
}
