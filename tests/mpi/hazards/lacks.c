// SPDX-License-Identifier: BSD-3-Clause
/* A call with large counts over an MPI that has no such call: an error, whatever the size, while
 * its other form goes on. Ends with the class of the error on stdout. */
#include "pattern.h"

#define COUNT 100000

int main(int argc, char **argv)
{
	static unsigned int data[COUNT];
	int rank, size, err, class;

	pattern_start(&argc, &argv, 8, &rank, &size);
	pattern_fill(data, COUNT, (unsigned int)rank);
	if (MPI_Bcast(data, COUNT, MPI_INT, 0, MPI_COMM_WORLD))
		pattern_fail("a broadcast");
	for (size_t i = 0; i < COUNT; i++)
		if (data[i] != pattern_at(0, i))
			pattern_fail("an element");
	for (int count = 1; count <= COUNT; count += COUNT - 1) {
		err = MPI_Bcast_c(data, count, MPI_INT, 0, MPI_COMM_WORLD);
		MPI_Error_class(err, &class);
		if (rank == 0)
			printf("%s\n",
			       class == MPI_ERR_UNSUPPORTED_OPERATION ? "unsupported" : "?");
	}
	MPI_Finalize();
	return 0;
}
