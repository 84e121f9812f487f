/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_VOPEN_H
#define OC_MPI_VOPEN_H

/* How a vector of blocks begins. */

#include "vbuffer.h"

/* A vector of @n blocks as a call names it. */
struct oc_vector {
	const void *user;
	struct oc_counts counts;
	struct oc_counts displs;
	MPI_Datatype type;
	const MPI_Datatype *types; /* [n] of each block, whose displs are bytes; NULL: type */
	int n;
	int skip;   /* a block never served (own block in place), or -1 */
	bool close; /* blocks follow each other in the sequence, wherever they lie */
};

/* Whether a block of @count elements among @blocks would be packed, for its pieces are short. */
bool oc_vbuffer_packs(MPI_Datatype type, int64_t count, int blocks);

/* 0 or MPI error, and then rest[] is as without. */
int oc_vbuffer_open(struct oc_vbuffer *v, const struct oc_vector *vector, size_t min);
/* The same of blocks to send while others are received over them. */
int oc_vbuffer_open_apart(struct oc_vbuffer *v, const struct oc_vector *vector, size_t min);

#endif
