/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_VOPEN_H
#define OC_MPI_VOPEN_H

/* How a vector of blocks begins. */

#include "vbuffer.h"

/* @skip: a block never served (own block in place), or -1. 0 or MPI error, and
 * then rest[] is as without. */
int oc_vbuffer_open(struct oc_vbuffer *v, const void *user, struct oc_counts counts,
		    struct oc_counts displs, MPI_Datatype type, int n, size_t min, int skip);
/* The same with a type for each block, whose @displs are in bytes. */
int oc_vbuffer_open_each(struct oc_vbuffer *v, const void *user, struct oc_counts counts,
			 struct oc_counts displs, const MPI_Datatype *types, int n, size_t min);

#endif
