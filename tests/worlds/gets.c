// SPDX-License-Identifier: BSD-3-Clause
/*
 * gets SEED ROUNDS: all ranks get and put at random places of each other's windows, short and long,
 * with gaps and without, between fences and under locks. Says how many bytes all ranks together got
 * and put of others under locks that are long.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"

#define WORDS ((size_t)1 << 19) /* of a window; as many again are a rank's to get into */
#define PARTS 8			/* of a window: one to be put into by each rank at most */
#define PART  (WORDS / PARTS)
#define LONG  ((size_t)1 << 14) /* words */

static int rank, size;
static uint64_t seed;

static unsigned int word_of(int owner, unsigned int round, size_t i)
{
	return ((unsigned int)i * 2654435761u) ^ ((unsigned int)owner << 24) ^ round * 40503u;
}

static void expect(bool right, const char *what, size_t at)
{
	if (right)
		return;
	fprintf(stderr, "rank %d: %s at word %zu\n", rank, what, at);
	MPI_Abort(MPI_COMM_WORLD, 2);
}

/* Every second word, or all. */
static MPI_Datatype type_of(size_t words, bool gaps)
{
	MPI_Datatype type;

	if (gaps)
		MPI_Type_vector((int)(words / 2), 1, 2, MPI_UNSIGNED, &type);
	else
		MPI_Type_contiguous((int)words, MPI_UNSIGNED, &type);
	MPI_Type_commit(&type);
	return type;
}

/* What others put is in the upper half of their parts, what is got in the lower half. */
static size_t exchange(MPI_Win win, unsigned int *got, unsigned int *put, bool locks,
		       unsigned int round)
{
	size_t words = 2 + 2 * (size_t)(random_next(&seed) % (PART / 4));
	size_t from = (size_t)(random_next(&seed) % PARTS) * PART;
	int other = (int)(random_next(&seed) % (uint64_t)size);
	bool gaps = random_next(&seed) % 4 == 0;
	MPI_Datatype type = type_of(words, gaps);

	memset(got, 0xff, (words + 1) * sizeof(*got));
	for (size_t i = 0; i < words; i++)
		put[i] = word_of(rank, round, i);
	if (locks)
		MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win);
	MPI_Get(got, 1, type, other, (MPI_Aint)from, 1, type, win);
	MPI_Put(put, (int)words, MPI_UNSIGNED, other, (MPI_Aint)((size_t)rank * PART + PART / 2),
		(int)words, MPI_UNSIGNED, win);
	if (locks)
		MPI_Win_unlock(other, win);
	else
		MPI_Win_fence(0, win);
	for (size_t i = 0; i < words; i++)
		expect(got[i] == (gaps && i % 2 ? UINT32_MAX : word_of(other, 0, from + i)),
		       "what was got", i);
	expect(got[words] == UINT32_MAX, "behind what was got", words);
	/* What was put, got back. */
	if (locks)
		MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win);
	MPI_Get(got, (int)words, MPI_UNSIGNED, other, (MPI_Aint)((size_t)rank * PART + PART / 2),
		(int)words, MPI_UNSIGNED, win);
	if (locks)
		MPI_Win_unlock(other, win);
	else
		MPI_Win_fence(0, win);
	for (size_t i = 0; i < words; i++)
		expect(got[i] == word_of(rank, round, i), "what was put", i);
	MPI_Type_free(&type);
	return other == rank || words < LONG ? 0 : words * sizeof(*got) * (gaps ? 5 : 6) / 2;
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 2 ? (unsigned int)atoi(argv[2]) : 10;
	unsigned int *base, *got, *put;
	unsigned long long bytes = 0, all = 0;
	MPI_Win win;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	expect(size <= PARTS, "too many ranks", 0);
	seed = strtoull(argv[1], NULL, 0) + (uint64_t)rank;
	base = malloc(WORDS * sizeof(*base));
	got = malloc(WORDS * sizeof(*got));
	put = malloc(WORDS * sizeof(*put));
	for (size_t i = 0; i < WORDS; i++)
		base[i] = word_of(rank, 0, i);
	MPI_Win_create(base, (MPI_Aint)(WORDS * sizeof(*base)), sizeof(*base), MPI_INFO_NULL,
		       MPI_COMM_WORLD, &win);
	MPI_Win_fence(0, win);
	for (unsigned int round = 0; round < rounds; round++)
		exchange(win, got, put, false, round);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	for (unsigned int round = 0; round < rounds; round++)
		bytes += exchange(win, got, put, true, round);
	MPI_Win_free(&win);
	MPI_Reduce(&bytes, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("%llu bytes\n", all);
	MPI_Finalize();
	free(base);
	free(got);
	free(put);
	return 0;
}
