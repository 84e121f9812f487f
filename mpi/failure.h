/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_FAILURE_H
#define OC_MPI_FAILURE_H

/*
 * A failure, 0 if there is none, is -errno of an operation or, above 0, an MPI error code
 * of this process's buffers. Nobody has been told of it before it is reported.
 */

#include <stdbool.h>

#include <mpi.h>

#include "coll.h"
#include "comm.h"

/* Reports it as the MPI reports its own errors: through the communicator's error handler.
 * The error code for the caller to return. */
int oc_failure_report(const struct oc_comm *oc, MPI_Comm comm, enum oc_coll coll, int failure);

/* What a call ends with: MPI_SUCCESS, or a failure that is reported. */
static inline int oc_failure_end(const struct oc_comm *oc, MPI_Comm comm, enum oc_coll coll,
				 int failure)
{
	return failure ? oc_failure_report(oc, comm, coll, failure) : MPI_SUCCESS;
}

/* False if an error ends the job. If not, and a rank has died, that is said now: the MPI may
 * wait for it in vain. */
bool oc_failure_outlived(const struct oc_comm *oc, MPI_Comm comm, enum oc_coll coll, int failure);

/*
 * Whether the MPI is to get its part of a v-collective: also after ours failed, for other
 * ranks may be in the MPI's call already and wait for this one. Where the failure ends
 * the job that is what ends their wait.
 */
static inline bool oc_failure_goes_on(const struct oc_comm *oc, MPI_Comm comm, enum oc_coll coll,
				      int failure)
{
	return !failure || oc_failure_outlived(oc, comm, coll, failure);
}

/* The -errno for other ranks of an error code of this process's buffers. */
int oc_failure_of_code(int code);

#endif
