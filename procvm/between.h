/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PROCVM_BETWEEN_H
#define OC_PROCVM_BETWEEN_H

/*
 * A copy between this process and a rank for who has no need of a system call: he knows the rank,
 * and that both may be touched. MPI_Put and MPI_Get are such (mpi/rma.c).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "access/access.h"
#include "bytes/layout.h"

struct oc_procvm_between {
	enum oc_direction direction;
	size_t bytes;
	char *here; /* the first element; the first byte without a layout */
	const struct oc_layout *here_layout; /* NULL: it is in one piece */
	uint64_t there;			     /* the same as the rank has it */
	const struct oc_layout *there_layout;
};

/* True with all of it copied, which is seen by who is told of it after that. False, and some of it
 * may have been, where it is not in memory that is shared, or nothing is answered
 * (procvm/procvm.h). @rank is not this one. Any thread. */
bool oc_procvm_copy(uint32_t rank, const struct oc_procvm_between *it);

#endif
