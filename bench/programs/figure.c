// SPDX-License-Identifier: BSD-3-Clause
#include "figure.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

void figure_print(const char *program, double rate, const char *unit)
{
	double sum = 0;
	int rank;

	MPI_Reduce(&rate, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0)
		printf("%s,%.6g,%s\n", program, sum, unit);
}

double figure_argument(int argc, char **argv, int i, double otherwise)
{
	return i < argc ? atof(argv[i]) : otherwise;
}
