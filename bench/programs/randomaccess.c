// SPDX-License-Identifier: BSD-3-Clause
/*
 * randomaccess [MiB [million-updates]]: read-modify-writes all over a table,
 * each rank in its own, as the HPC Challenge's RandomAccess does. Bound by
 * address translation: shows the page size under large mallocs.
 */
#include "figure.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

#define LANES 16 /* independent streams, so that misses overlap */

static uint64_t next(uint64_t *state)
{
	/* G. Marsaglia, Xorshift RNGs, Journal of Statistical Software 8(14), 2003 */
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

int main(int argc, char **argv)
{
	size_t wanted = (size_t)(figure_argument(argc, argv, 1, 128) * (1 << 20));
	size_t updates = (size_t)(figure_argument(argc, argv, 2, 200) * 1e6);
	uint64_t state[LANES], *table;
	size_t words = 1;
	double start;

	MPI_Init(&argc, &argv);
	while (words * 2 * sizeof(*table) <= wanted)
		words *= 2;
	table = malloc(words * sizeof(*table));
	if (!table)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (size_t i = 0; i < words; i++)
		table[i] = i;
	for (size_t lane = 0; lane < LANES; lane++)
		state[lane] = 88172645463325252u + lane * 0x9e3779b97f4a7c15u;
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (size_t i = 0; i < updates / LANES; i++) {
		for (size_t lane = 0; lane < LANES; lane++) {
			uint64_t value = next(&state[lane]);

			table[value & (words - 1)] ^= value;
		}
	}
	figure_print("randomaccess", (double)updates / (MPI_Wtime() - start) / 1e6, "Mupdate/s");
	free(table);
	MPI_Finalize();
	return 0;
}
