// SPDX-License-Identifier: BSD-3-Clause
/*
 * Blocks that lie more than 2 GiB apart, in the calls that place blocks by MPI_Aint. Nothing
 * between the blocks is ever touched. One rank makes the call with small displacements, in the
 * other form.
 */
#include "pattern.h"

#define FAR   ((MPI_Aint)1 << 29) /* ints: 2 GiB */
#define BLOCK 30000

static int rank, size;
static unsigned int *far, *near;

static void fill(unsigned int *data, MPI_Aint stride)
{
	for (int r = 0; r < size; r++)
		pattern_fill(data + r * stride, BLOCK, (unsigned int)(100 * rank + r));
}

/* Block @r of what this rank received: what rank @from made for rank @to. */
static void check(const unsigned int *data, MPI_Aint stride, int r, int from, int to)
{
	for (size_t i = 0; i < BLOCK; i++)
		if (data[r * stride + (MPI_Aint)i] !=
		    pattern_at((unsigned int)(100 * from + to), i))
			pattern_fail("a block");
}

int main(int argc, char **argv)
{
	int counts[8], displs[8];
	MPI_Count far_counts[8];
	MPI_Aint far_displs[8];
	unsigned int *block;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	far = calloc((size_t)(size * FAR), sizeof(*far));
	near = calloc((size_t)size * BLOCK, sizeof(*near));
	block = calloc(BLOCK, sizeof(*block));
	if (!far || !near || !block)
		pattern_fail("no memory");
	for (int r = 0; r < size; r++) {
		far_counts[r] = counts[r] = BLOCK;
		displs[r] = r * BLOCK;
		far_displs[r] = r * FAR;
	}

	fill(far, FAR);
	if (rank == 0)
		MPI_Scatterv_c(far, far_counts, far_displs, MPI_INT, block, BLOCK, MPI_INT, 0,
			       MPI_COMM_WORLD);
	else
		MPI_Scatterv(NULL, NULL, NULL, MPI_INT, block, BLOCK, MPI_INT, 0, MPI_COMM_WORLD);
	check(block, BLOCK, 0, 0, rank);

	pattern_fill(block, BLOCK, (unsigned int)(100 * rank));
	if (rank == 0)
		MPI_Gatherv_c(block, BLOCK, MPI_INT, far, far_counts, far_displs, MPI_INT, 0,
			      MPI_COMM_WORLD);
	else
		MPI_Gatherv(block, BLOCK, MPI_INT, NULL, NULL, NULL, MPI_INT, 0, MPI_COMM_WORLD);
	for (int r = 0; r < size && rank == 0; r++)
		check(far, FAR, r, r, 0);

	fill(far, FAR);
	if (rank == 1)
		MPI_Allgatherv(block, BLOCK, MPI_INT, near, counts, displs, MPI_INT,
			       MPI_COMM_WORLD);
	else
		MPI_Allgatherv_c(block, BLOCK, MPI_INT, far, far_counts, far_displs, MPI_INT,
				 MPI_COMM_WORLD);
	for (int r = 0; r < size; r++)
		check(rank == 1 ? near : far, rank == 1 ? BLOCK : FAR, r, r, 0);

	fill(far, FAR);
	if (rank == 1) {
		unsigned int *to = calloc((size_t)size * BLOCK, sizeof(*to));

		fill(near, BLOCK);
		MPI_Alltoallv(near, counts, displs, MPI_INT, to, counts, displs, MPI_INT,
			      MPI_COMM_WORLD);
		for (int r = 0; r < size; r++)
			check(to, BLOCK, r, r, rank);
		free(to);
	} else {
		/* Between the blocks that are sent. */
		MPI_Alltoallv_c(far, far_counts, far_displs, MPI_INT, far + FAR / 2, far_counts,
				far_displs, MPI_INT, MPI_COMM_WORLD);
		for (int r = 0; r < size; r++)
			check(far + FAR / 2, FAR, r, r, rank);
	}
	free(far);
	free(near);
	free(block);
	MPI_Finalize();
	return 0;
}
