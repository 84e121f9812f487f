// SPDX-License-Identifier: BSD-3-Clause
/*
 * An MPI of another ABI, as far as one process needs it: handles are numbers, and
 * each call says whether its arguments are those that otherprogram.c passes.
 */
#include "othermpi.h"

#include <stddef.h>

int PMPI_Init(int *argc, char ***argv)
{
	return argc && argv ? OTHER_SUCCESS : OTHER_FAILURE;
}

int PMPI_Bcast(void *buffer, int count, other_type type, int root, other_comm comm)
{
	if (!buffer || count != 1 << 20 || type != OTHER_BYTE || root != 3 || comm != OTHER_WORLD)
		return OTHER_FAILURE;
	return OTHER_SUCCESS;
}

int PMPI_Alltoallv(const void *send, const int *scounts, const int *sdispls, other_type stype,
		   void *recv, const int *rcounts, const int *rdispls, other_type rtype,
		   other_comm comm)
{
	if (!send || !recv || scounts != rcounts || sdispls != rdispls || stype != OTHER_BYTE ||
	    rtype != OTHER_BYTE || comm != OTHER_WORLD)
		return OTHER_FAILURE;
	return OTHER_SUCCESS;
}

int PMPI_Alloc_mem(ptrdiff_t size, other_info info, void *out)
{
	static char memory[64];

	*(void **)out = memory;
	return size == sizeof(memory) && info == OTHER_INFO_NULL ? OTHER_SUCCESS : OTHER_FAILURE;
}

int PMPI_Free_mem(void *base)
{
	return base ? OTHER_SUCCESS : OTHER_FAILURE;
}

int PMPI_Finalize(void)
{
	return OTHER_SUCCESS;
}

int MPI_Init(int *argc, char ***argv) __attribute__((weak, alias("PMPI_Init")));
int MPI_Bcast(void *buffer, int count, other_type type, int root, other_comm comm)
	__attribute__((weak, alias("PMPI_Bcast")));
int MPI_Alltoallv(const void *send, const int *scounts, const int *sdispls, other_type stype,
		  void *recv, const int *rcounts, const int *rdispls, other_type rtype,
		  other_comm comm) __attribute__((weak, alias("PMPI_Alltoallv")));
int MPI_Alloc_mem(ptrdiff_t size, other_info info, void *out)
	__attribute__((weak, alias("PMPI_Alloc_mem")));
int MPI_Free_mem(void *base) __attribute__((weak, alias("PMPI_Free_mem")));
int MPI_Finalize(void) __attribute__((weak, alias("PMPI_Finalize")));
