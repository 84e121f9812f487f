// SPDX-License-Identifier: BSD-3-Clause
/* Types of Fortran's kinds (MPI_Type_create_f90_real and its like) within others: they are
 * predefined, and not to be freed, and are reduced as what they stand for. */
#include <stdint.h>
#include <string.h>

#include "pattern.h"

#define PAIRS	 20000
#define EXTENDED 10 /* bytes of x86's that have a value, of 16 */

static void broadcast(MPI_Datatype type, MPI_Aint words, int rank, unsigned int seed)
{
	size_t n = PAIRS * (size_t)words;
	unsigned int *data = pattern_alloc(n * sizeof(*data));

	pattern_fill(data, n, rank ? ~seed : seed);
	MPI_Bcast(data, PAIRS, type, 0, MPI_COMM_WORLD);
	pattern_check(data, n, seed, "bcast");
	free(data);
}

static void wrong(const char *what, int i)
{
	fprintf(stderr, "%s: element %d\n", what, i);
	pattern_fail("a wrong result");
}

/* A float, a double or a long double, by its size. */
static void put(char *at, size_t bytes, double value)
{
	float single = (float)value;
	long double extended = value;
	const void *from = bytes == sizeof(single)  ? (void *)&single
			   : bytes == sizeof(value) ? (void *)&value
						    : (void *)&extended;

	memset(at, 0, bytes);
	memcpy(at, from, bytes == sizeof(extended) ? EXTENDED : bytes);
}

/* Of kinds of @parts numbers, one or two, an element; all sums are exact. */
static void sum(MPI_Datatype type, size_t parts, int rank, int size)
{
	size_t n = PAIRS * parts, bytes;
	char *own, *all, right[sizeof(long double)];
	int element;

	MPI_Type_size(type, &element);
	bytes = (size_t)element / parts;
	own = pattern_alloc(n * bytes);
	all = pattern_alloc(n * bytes);
	for (size_t i = 0; i < n; i++)
		put(own + i * bytes, bytes, rank + 0.5 * (double)i);
	MPI_Allreduce(own, all, PAIRS, type, MPI_SUM, MPI_COMM_WORLD);
	for (size_t i = 0; i < n; i++) {
		put(right, bytes, size * (size - 1) / 2.0 + 0.5 * (double)i * size);
		if (memcmp(all + i * bytes, right, bytes == sizeof(right) ? EXTENDED : bytes))
			wrong("a sum", (int)i);
	}
	free(own);
	free(all);
}

/* The kinds of real and complex numbers of as many digits, if the MPI has them; how many. */
static int sum_kinds(int digits, int rank, int size)
{
	MPI_Datatype type;

	if (MPI_Type_create_f90_real(digits, MPI_UNDEFINED, &type))
		return 0;
	sum(type, 1, rank, size);
	MPI_Type_create_f90_complex(digits, MPI_UNDEFINED, &type);
	sum(type, 2, rank, size);
	return 2;
}

static void find_most(MPI_Datatype type, int rank, int size)
{
	int64_t *own = pattern_alloc(PAIRS * sizeof(*own)),
		*all = pattern_alloc(PAIRS * sizeof(*all));

	for (int i = 0; i < PAIRS; i++)
		own[i] = ((int64_t)1 << 40) * (i % 2 ? -rank : rank) + i;
	MPI_Allreduce(own, all, PAIRS, type, MPI_MAX, MPI_COMM_WORLD);
	for (int i = 0; i < PAIRS; i++)
		if (all[i] != ((int64_t)1 << 40) * (i % 2 ? 0 : size - 1) + i)
			wrong("integers", i);
	free(own);
	free(all);
}

int main(int argc, char **argv)
{
	static const int digits[] = {6, 15, 18};
	MPI_Datatype kinds[3], type;
	int rank, size, sums = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Type_create_f90_real(15, MPI_UNDEFINED, &kinds[0]);
	MPI_Type_create_f90_complex(15, MPI_UNDEFINED, &kinds[1]);
	MPI_Type_create_f90_integer(12, &kinds[2]);
	for (unsigned int turn = 0; turn < 6; turn++) {
		MPI_Datatype kind = kinds[turn / 2];
		MPI_Aint lb, extent;

		MPI_Type_get_extent(kind, &lb, &extent);
		if (turn % 2)
			MPI_Type_dup(kind, &type);
		else
			MPI_Type_contiguous(2, kind, &type);
		MPI_Type_commit(&type);
		broadcast(type, extent / 4 * (turn % 2 ? 1 : 2), rank, 5 + turn);
		MPI_Type_free(&type);
		broadcast(kind, extent / 4, rank, 50 + turn);
	}
	find_most(kinds[2], rank, size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (size_t i = 0; i < sizeof(digits) / sizeof(digits[0]); i++)
		sums += sum_kinds(digits[i], rank, size);
	if (!rank)
		printf("sums: %d\n", sums);
	MPI_Finalize();
	return 0;
}
