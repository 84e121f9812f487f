// SPDX-License-Identifier: BSD-3-Clause
/*
 * stream [MiB-per-array [rounds]]: the triad a = b + s * c over three arrays
 * far larger than the caches, the best round (J. McCalpin, Memory Bandwidth and
 * Machine Balance in Current High Performance Computers, 1995). Shows what the
 * kind of pages under large mallocs costs.
 */
#include "figure.h"

#include <mpi.h>
#include <stdlib.h>

static double *array_create(size_t n, double value)
{
	double *array = malloc(n * sizeof(*array));

	if (!array)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (size_t i = 0; i < n; i++)
		array[i] = value;
	return array;
}

int main(int argc, char **argv)
{
	size_t n = (size_t)(figure_argument(argc, argv, 1, 64) * (1 << 20)) / sizeof(double);
	int rounds = (int)figure_argument(argc, argv, 2, 20);
	double *a, *b, *c, best = 0;

	MPI_Init(&argc, &argv);
	a = array_create(n, 0);
	b = array_create(n, 1);
	c = array_create(n, 2);
	for (int round = 0; round < rounds; round++) {
		double start, rate;

		MPI_Barrier(MPI_COMM_WORLD);
		start = MPI_Wtime();
		for (size_t i = 0; i < n; i++)
			a[i] = b[i] + 3.0 * c[i];
		rate = 3.0 * (double)(n * sizeof(double)) / (MPI_Wtime() - start) / 1e6;
		if (rate > best)
			best = rate;
	}
	if (a[n / 2] != 7.0)
		MPI_Abort(MPI_COMM_WORLD, 1);
	figure_print("stream", best, "MB/s");
	free(c);
	free(b);
	free(a);
	MPI_Finalize();
	return 0;
}
