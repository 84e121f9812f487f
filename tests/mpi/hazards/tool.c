// SPDX-License-Identifier: BSD-3-Clause
/* A profiling tool, by the standard's profiling interface (MPI 4.0, chapter
 * 15): linked to the program it counts what goes through MPI_Bcast. */
#include <mpi.h>

int tool_calls;

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	tool_calls++;
	return PMPI_Bcast(buffer, count, type, root, comm);
}
