/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_OTHERMPI_H
#define OC_TEST_OTHERMPI_H

/* What an mpi.h of another ABI than Open MPI's looks like. */

#include <stddef.h>

typedef int other_comm;
typedef int other_type;
typedef int other_info;

#define OTHER_WORLD	((other_comm)0x44000000)
#define OTHER_BYTE	((other_type)0x4c00010d)
#define OTHER_INFO_NULL ((other_info)0x1c000000)
#define OTHER_SUCCESS	0
#define OTHER_FAILURE	15

int MPI_Init(int *argc, char ***argv);
int MPI_Bcast(void *buffer, int count, other_type type, int root, other_comm comm);
int MPI_Alltoallv(const void *send, const int *scounts, const int *sdispls, other_type stype,
		  void *recv, const int *rcounts, const int *rdispls, other_type rtype,
		  other_comm comm);
int MPI_Alloc_mem(ptrdiff_t size, other_info info, void *out);
int MPI_Free_mem(void *base);
int MPI_Finalize(void);

#endif
