// SPDX-License-Identifier: BSD-3-Clause
/*
 * unpacked CALL HOW: a strided type with pieces of 4 KiB, made as a vector, dealt out to two, or
 * with large counts, between blocks of the heap that peers have seen. Whoever packed it would need
 * memory for that.
 */
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

#include "pattern.h"

#define RANKS 4
#define PIECE 1024 /* words */
#define WORDS ((size_t)PIECE * 2 * 1024 * RANKS)

static int rank, size;
static unsigned int *send, *recv;

static long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

/* Every rank has looked at every buffer. */
static void show(unsigned int *buffer)
{
	for (int root = 0; root < size; root++)
		MPI_Bcast(buffer, (int)WORDS, MPI_UNSIGNED, root, MPI_COMM_WORLD);
}

static void exchange(MPI_Datatype type, size_t block)
{
	int counts[RANKS], displs[RANKS];
	MPI_Datatype types[RANKS];

	for (int r = 0; r < size; r++) {
		counts[r] = 1;
		displs[r] = (int)(4 * (size_t)r * block);
		types[r] = type;
	}
	MPI_Alltoallw(send, counts, displs, types, recv, counts, displs, types, MPI_COMM_WORLD);
}

static void check(const char *call, size_t block, bool all)
{
	for (int r = 0; r < size; r++) {
		unsigned int *from = recv + (size_t)r * block;
		size_t skipped = all ? (size_t)rank * block : 0;

		for (size_t i = 0; i < block; i++)
			if (i / PIECE % 2 == 0 &&
			    from[i] != pattern_at((unsigned int)r, skipped + i)) {
				fprintf(stderr, "%s: word %zu from rank %d\n", call, i, r);
				pattern_fail("wrong");
			}
	}
}

/* Every other piece of a block, in a type that is as long as the block. */
static MPI_Datatype make(const char *how, size_t block)
{
	int words = (int)block, cyclic = MPI_DISTRIBUTE_CYCLIC, piece = PIECE, two = 2;
	MPI_Datatype vector, type;

	if (!strcmp(how, "dealt")) {
		MPI_Type_create_darray(2, 0, 1, &words, &cyclic, &piece, &two, MPI_ORDER_C,
				       MPI_UNSIGNED, &type);
		MPI_Type_commit(&type);
		return type;
	}
#if MPI_VERSION >= 4
	if (!strcmp(how, "large")) {
		MPI_Type_vector_c((MPI_Count)(block / PIECE / 2), PIECE, (MPI_Count)2 * PIECE,
				  MPI_UNSIGNED, &vector);
		MPI_Type_create_resized_c(vector, 0, (MPI_Count)(4 * block), &type);
	} else
#endif
	{
		MPI_Type_vector((int)(block / PIECE / 2), PIECE, 2 * PIECE, MPI_UNSIGNED, &vector);
		MPI_Type_create_resized(vector, 0, (MPI_Aint)(4 * block), &type);
	}
	MPI_Type_free(&vector);
	MPI_Type_commit(&type);
	return type;
}

int main(int argc, char **argv)
{
	size_t block;
	long before, more;
	MPI_Datatype type;

	pattern_start(&argc, &argv, RANKS, &rank, &size);
	if (argc < 3)
		return 64;
	block = WORDS / (size_t)size / PIECE / 2 * PIECE * 2;
	type = make(argv[2], block);
	send = pattern_alloc(WORDS * 4);
	recv = pattern_alloc(WORDS * 4);
	show(send);
	show(recv);
	pattern_fill(send, WORDS, (unsigned int)rank);
	memset(recv, 0, WORDS * 4);
	before = peak_kib();
	if (!strcmp(argv[1], "bcast")) {
		MPI_Bcast(rank ? recv : send, size, type, 0, MPI_COMM_WORLD);
		for (size_t i = 0; rank && i < block * (size_t)size; i++)
			if (i / PIECE % 2 == 0 && recv[i] != pattern_at(0, i))
				pattern_fail("wrong");
	} else if (!strcmp(argv[1], "allgather")) {
		MPI_Allgather(send, 1, type, recv, 1, type, MPI_COMM_WORLD);
		check(argv[1], block, false);
	} else if (!strcmp(argv[1], "alltoall")) {
		MPI_Alltoall(send, 1, type, recv, 1, type, MPI_COMM_WORLD);
		check(argv[1], block, true);
	} else {
		exchange(type, block);
		check(argv[1], block, true);
	}
	more = peak_kib() - before;
	printf("%s: %ld KiB more\n", argv[1], more);
	if (more * 1024 > (long)WORDS * 4 / 4)
		pattern_fail("that was packed");
	MPI_Type_free(&type);
	MPI_Finalize();
	return 0;
}
