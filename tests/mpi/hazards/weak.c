// SPDX-License-Identifier: BSD-3-Clause
/*
 * weak: built for several MPIs, it asks by weak references what the one that it finds has. Prints
 * which of the calls that came with MPI 4 are there, after a collective that is served.
 */
#include "pattern.h"

#define WORDS 100000

#pragma weak MPI_Session_init
#pragma weak MPI_Session_finalize
#pragma weak MPI_Comm_create_from_group
#pragma weak PMPI_Session_init
#pragma weak MPI_Bcast_c
#pragma weak PMPI_Allreduce_c
#pragma weak MPI_Win_create_c
extern int MPI_Session_init();
extern int MPI_Session_finalize();
extern int MPI_Comm_create_from_group();
extern int PMPI_Session_init();
extern int MPI_Bcast_c();
extern int PMPI_Allreduce_c();
extern int MPI_Win_create_c();

int main(int argc, char **argv)
{
	unsigned int *words = pattern_alloc(WORDS * sizeof(*words));
	int rank, size;

	pattern_start(&argc, &argv, 64, &rank, &size);
	pattern_fill(words, WORDS, (unsigned int)rank);
	MPI_Bcast(words, WORDS, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
	pattern_check(words, WORDS, 0, "bcast");
	printf("%d%d%d%d%d%d%d\n", !!MPI_Session_init, !!MPI_Session_finalize,
	       !!MPI_Comm_create_from_group, !!PMPI_Session_init, !!MPI_Bcast_c, !!PMPI_Allreduce_c,
	       !!MPI_Win_create_c);
	MPI_Finalize();
	return 0;
}
