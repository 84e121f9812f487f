/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_VBUFFER_H
#define OC_MPI_VBUFFER_H

/* Vectors of blocks: users' buffers in v-collectives. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "abi.h"
#include "bytes/layout.h"
#include "scratch.h"
#include "count.h"
#include "exec/op.h"
#include "segment/node.h"
#include "type_sizes.h"

/* The side of a v-collective that has one block a rank. Blocks below @min, and
 * those of other ranks' choosing, are left to the MPI through rest[]. The others are one sequence
 * of bytes: as they lie in the user's memory, or one after the other, in pieces or in a copy or,
 * where their types differ, some in this way and some in that. */
struct oc_vbuffer {
	char *at; /* where the sequence begins, or what its layout counts from */
	size_t bytes;
	struct oc_layout *layout; /* its pieces; NULL: it is in one */
	uint64_t *off;		  /* [n] in the sequence; NULL without memory */
	uint64_t *len; /* [n] bytes served, 0: none; behind it there is room for [n] more */
	uint64_t *put; /* [n] where in the copy, if anywhere: OC_VBUFFER_NOWHERE */
	int n;
	int skip;   /* as given when it was opened */
	bool plain; /* all blocks where they lie, of a type without gaps: off counts from at */
	bool apart; /* all blocks in a copy: the user's memory is written meanwhile */
	void *user;
	struct oc_counts counts;
	struct oc_counts displs;
	MPI_Datatype type;
	const MPI_Datatype *types; /* [n] of each block, whose displs are bytes; NULL: type */
	struct oc_scratch copy;	   /* of some blocks, or all */
	/* [n] the counts left for the MPI, whatever fails, as wide as those it was given */
	union {
		int rest[OC_MAX_RANKS];
		int64_t large_rest[OC_MAX_RANKS];
	};
};

#define OC_VBUFFER_NOWHERE UINT64_MAX

static inline MPI_Datatype oc_vbuffer_type(const struct oc_vbuffer *v, int i)
{
	return v->types ? v->types[i] : v->type;
}

/* Bytes of a block; 0 if the MPI is to report what is wrong with it. */
size_t oc_block_bytes(int64_t count, MPI_Datatype type);

/* Whether the MPI is to report what is wrong with a block, or with some of @n, be there no bytes at
 * all. */
static inline bool oc_block_wrong(int64_t count, MPI_Datatype type)
{
	return count < 0 || !type || type == oc_abi.type_null;
}

/* The same of what a rank sends, which may be there in place. */
static inline bool oc_sent_wrong(const void *user, int64_t count, MPI_Datatype type)
{
	return user != MPI_IN_PLACE && oc_block_wrong(count, type);
}

/* Whether a buffer is MPI_IN_PLACE that may not be, of which the @counts ored are not 0 if there is
 * data. */
static inline bool oc_in_place_wrong(const void *user, uint64_t counts)
{
	return user == MPI_IN_PLACE && (counts || !oc_abi_empty_in_place);
}

/* The same of the one block of a rank that is not the root. */
static inline bool oc_leaf_wrong(const void *user, int64_t count, MPI_Datatype type)
{
	return oc_in_place_wrong(user, (uint64_t)count) || oc_block_wrong(count, type);
}

static inline bool oc_blocks_wrong(struct oc_counts counts, struct oc_counts displs,
				   MPI_Datatype type, int n)
{
	return !counts.at || !displs.at || oc_block_wrong(0, type) || oc_counts_negative(counts, n);
}

/* With a type for each, which may be any where there is nothing. */
bool oc_blocks_wrong_each(struct oc_counts counts, struct oc_counts displs,
			  const MPI_Datatype *types, int n);

/* oc_blocks_any(), one by one. */
bool oc_blocks_find(struct oc_counts counts, MPI_Datatype type, int n, size_t min, int skip);

/* The same where each has a type of its own. */
bool oc_blocks_find_each(struct oc_counts counts, const MPI_Datatype *types, int n, size_t min,
			 int skip);

/* True if some block has at least @min bytes, not counting @skip: what to ask before
 * anything with a vbuffer. */
static inline bool oc_blocks_any(struct oc_counts counts, MPI_Datatype type, int n, size_t min,
				 int skip)
{
	/* Seldom is there any. */
	return oc_counts_bits(counts, n) * oc_type_bytes(type, 1) >= min &&
	       oc_blocks_find(counts, type, n, min, skip);
}

static inline struct oc_counts oc_vbuffer_rest(const struct oc_vbuffer *v)
{
	return (struct oc_counts){v->rest, v->counts.large};
}

static inline bool oc_vbuffer_serves(const struct oc_vbuffer *v, int i)
{
	return oc_counts_at(oc_vbuffer_rest(v), i) != oc_counts_at(v->counts, i);
}

/* Leaves so many elements of a block to the MPI. */
static inline void oc_vbuffer_set_rest(struct oc_vbuffer *v, int i, int64_t count)
{
	if (v->counts.large)
		v->large_rest[i] = count;
	else
		v->rest[i] = (int)count;
}

/* Memory for a copy of @bytes. */
int oc_vbuffer_alloc(struct oc_vbuffer *v, size_t bytes);
/* Where the user has a block. */
char *oc_vbuffer_user(const struct oc_vbuffer *v, int i, MPI_Aint extent);
/*
 * How many of a served block's @count elements are the MPI's after all, at the end that
 * @sends it or not. Fewer bytes than are expected it moves without an error, as it would have
 * alone. More are an error, in *@failure unless there is one: the MPI's part could overrun the
 * receiver (Open MPI 4.1 does, by CMA), or leave others waiting. It gets one element if the
 * receiver knows nothing of this and waits for a message.
 */
MPI_Count oc_pair_rest(enum oc_pair pair, MPI_Count count, bool sends, int *failure);
/* The same of all blocks, from @pair[n] to rest[]; those that were not moved have no len[] then. */
void oc_vbuffer_part(struct oc_vbuffer *v, const uint8_t *pair, bool sends, int *failure);
/* Before the operation: whether this rank's own block, whose other end is @count of @type, is moved
 * in it. If it were but for its ends, which differ, that is an error in any case: in @pair. */
bool oc_vbuffer_own(struct oc_vbuffer *v, int rank, MPI_Count count, MPI_Datatype type, bool sends,
		    uint8_t *pair);
/* Before peers write the blocks: their pages are this rank's first, and what lies between them
 * stays untouched. A sequence in pieces is left to who serves it (recv_whole). */
void oc_vbuffer_place(const struct oc_vbuffer *v);
/* Makes it what peers may read: at, bytes and off[] may be others than before. */
int oc_vbuffer_pack(struct oc_vbuffer *v);
/* True if a page between the blocks, outside the shared heap, may not be there. */
bool oc_vbuffer_has_hole(const struct oc_vbuffer *v);
/* A failure. */
int oc_vbuffer_unpack(struct oc_vbuffer *v);
void oc_vbuffer_close(struct oc_vbuffer *v);

#endif
