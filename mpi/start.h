/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_START_H
#define OC_MPI_START_H

/* How a rank comes to its node and leaves it. One thread at a time. */

#include <mpi.h>

/* What a session has for MPI_COMM_WORLD and MPI_COMM_SELF. */
struct oc_start_session {
	MPI_Group world; /* of mpi://WORLD; the adapter's from now on */
	MPI_Comm alone;	 /* the caller's, longer than the node */
};

/* Before the MPI's own initialisation. */
void oc_start_before(void);

/* After it, on every rank of the world that runs under us; sets the adapter up. @session is NULL in
 * the World Model. */
void oc_start(const struct oc_start_session *session);

/* Before the MPI's own end. */
void oc_stop(void);

#endif
