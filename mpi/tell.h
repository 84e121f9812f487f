/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_TELL_H
#define OC_MPI_TELL_H

/* What ONECOPY_VERBOSE says at the start: once for each node, by its first rank. */

#include "adapter.h"

/* Collective over the ranks of a node, not all of which are willing: @why this rank is not, or
 * NULL. Who has the reason that the first rank has leaves it to that one to say. */
void oc_tell_unwilling(MPI_Comm node_comm, int rank, const char *why);

/* By the first rank of a node, when it is settled: what is used, or why nothing is. */
void oc_tell_start(void);

#endif
