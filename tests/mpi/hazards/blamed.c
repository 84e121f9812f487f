// SPDX-License-Identifier: BSD-3-Clause
/* Errors in calls that have no communicator go to the handler that the program has set. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int size = 0, class = MPI_SUCCESS;

	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Error_class(MPI_Type_size(MPI_DATATYPE_NULL, &size), &class);
	if (class != MPI_ERR_TYPE)
		fprintf(stderr, "error of class %d\n", class);
	MPI_Finalize();
	return class != MPI_ERR_TYPE;
}
