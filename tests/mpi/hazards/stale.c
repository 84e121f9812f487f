// SPDX-License-Identifier: BSD-3-Clause
/* Buffers whose addresses are used again for other memory between collectives. */
#include <string.h>
#include <sys/mman.h>

#include "pattern.h"

#define WORDS ((size_t)1 << 17)
#define BYTES (WORDS * 4)

static int rank, size;

static void exchange(unsigned int *data, unsigned int turn, int root)
{
	MPI_Bcast(data, (int)WORDS, MPI_UNSIGNED, root, MPI_COMM_WORLD);
	pattern_check(data, WORDS, turn, "bcast");
}

static void *map_at(void *at, int flags)
{
	void *p = mmap(at, BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0) | flags, -1, 0);

	if (p == MAP_FAILED)
		pattern_fail("mmap");
	return p;
}

/* The address is wished for, not forced: since the munmap() it may have become
 * somebody else's, such as the library's own mapping of a peer's memory. */
static void *map_near(void *wish)
{
	void *p = mmap(wish, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		pattern_fail("mmap");
	return p;
}

/* Each returns a buffer filled with the turn's pattern at the root. */
static void by_mapping(unsigned int turn, int root)
{
	static unsigned int *place;
	unsigned int *data = map_near(place);

	place = data;
	pattern_fill(data, WORDS, rank == root ? turn : ~turn);
	exchange(data, turn, root);
	if (munmap(data, BYTES))
		pattern_fail("munmap");
}

static void by_mremap(unsigned int turn, int root)
{
	unsigned int *data = map_at(NULL, 0), *old = data;

	pattern_fill(data, WORDS, turn);
	exchange(data, turn, root);
	data = mremap(data, BYTES, 2 * BYTES, MREMAP_MAYMOVE, NULL);
	if (data == MAP_FAILED)
		pattern_fail("mremap");
	if (data != old) /* something else where it was */
		memset(map_at(old, 0), 0x11, BYTES);
	pattern_fill(data, WORDS, rank == root ? turn + 1 : 0);
	exchange(data, turn + 1, root);
	munmap(data, 2 * BYTES);
	if (data != old)
		munmap(old, BYTES);
}

static void by_madvise(unsigned int turn, int root)
{
	unsigned int *data = map_at(NULL, 0);

	pattern_fill(data, WORDS, turn);
	exchange(data, turn, root);
	if (madvise(data, BYTES, MADV_DONTNEED))
		pattern_fail("madvise");
	if (rank != root)
		pattern_fill(data, WORDS, turn);
	MPI_Bcast(data, (int)WORDS, MPI_UNSIGNED, root, MPI_COMM_WORLD);
	for (size_t i = 0; i < WORDS; i++)
		if (data[i])
			pattern_fail("pages given back are still sent");
	munmap(data, BYTES);
}

static void by_malloc(unsigned int turn, int root)
{
	unsigned int *first = pattern_alloc(BYTES), *second;

	pattern_fill(first, WORDS, rank == root ? turn : 0);
	exchange(first, turn, root);
	free(first);
	second = pattern_alloc(BYTES * 2);
	pattern_fill(second, WORDS, rank == root ? turn + 1 : 0);
	exchange(second, turn + 1, root);
	second = realloc(second, BYTES * 8);
	if (!second)
		pattern_fail("realloc");
	pattern_check(second, WORDS, turn + 1, "realloc");
	memmove(second + 6 * WORDS, second, BYTES);
	exchange(second + 6 * WORDS, turn + 1, root);
	second = realloc(second, BYTES);
	if (!second)
		pattern_fail("realloc");
	pattern_fill(second, WORDS, rank == root ? turn + 2 : 0);
	exchange(second, turn + 2, root);
	free(second);
	first = calloc(WORDS, 4);
	for (size_t i = 0; i < WORDS; i++)
		if (!first || first[i])
			pattern_fail("calloc");
	free(first);
}

static void by_stack(unsigned int turn, int root)
{
	unsigned int data[WORDS];

	pattern_fill(data, WORDS, rank == root ? turn : 0);
	exchange(data, turn, root);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (unsigned int turn = 0; turn < 40; turn++) {
		int root = (int)turn % size;

		by_mapping(turn * 16, root);
		by_mremap(turn * 16 + 1, root);
		by_madvise(turn * 16 + 3, root);
		by_malloc(turn * 16 + 4, root);
		by_stack(turn * 16 + 8, root);
	}
	MPI_Finalize();
	return 0;
}
