/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_RMA_EPOCH_H
#define OC_MPI_RMA_EPOCH_H

/* When a rank's memory may be used. */

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

#include "rma_window.h"

/* Whether this rank may use the target's memory now: true, then it may until the end of the epoch.
 * May make the MPI get a lock, where @bytes pay for that, by a transfer from the target's window,
 * which is not empty. */
bool oc_rma_may_access(struct oc_rma *rma, struct oc_rma_target *target, MPI_Win win, size_t bytes);

#endif
