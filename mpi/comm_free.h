/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_COMM_FREE_H
#define OC_MPI_COMM_FREE_H

/* Communicators that come to their end. */

#include <stdbool.h>

#include <mpi.h>

/* Rises with each that is freed: handles are used again. */
extern unsigned int oc_comm_freed;

/* Whether @comm is being freed by this thread, and the MPI calls its attributes' callbacks: what
 * they call on it is the MPI's on every rank, for nothing that is attached now would be deleted. */
bool oc_comm_is_freed(MPI_Comm comm);

#endif
