// SPDX-License-Identifier: BSD-3-Clause
/*
 * fresh: broadcasts into buffers nobody has touched, all kept. The receiver's are as much
 * in huge pages as the root's, whoever writes them. Prints KiB of both.
 */
#include <string.h>

#include "hugepages.h"
#include "pattern.h"

#define BYTES	((size_t)4 << 20)
#define BUFFERS 64

int main(int argc, char **argv)
{
	long mine, all[2];
	char *buffer = NULL;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < BUFFERS; i++) {
		buffer = malloc(BYTES);
		if (!buffer)
			pattern_fail("no memory");
		if (rank == 0)
			memset(buffer, i, BYTES);
		MPI_Bcast(buffer, (int)BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
		for (size_t at = 0; at < BYTES; at += 4096)
			if (buffer[at] != (char)i)
				pattern_fail("wrong data");
	}
	mine = huge_kib(buffer);
	MPI_Allgather(&mine, 1, MPI_LONG, all, 1, MPI_LONG, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%ld %ld\n", all[0], all[1]);
	MPI_Finalize();
	return 0;
}
