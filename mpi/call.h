/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_CALL_H
#define OC_MPI_CALL_H

/*
 * One call of a collective, watched from entering it to leaving it, if anybody asked for
 * statistics. Who decides notes what it decided, and oc_call_end() adds the call to the rank's
 * record (mpi/record.h). Where nobody asked that is two looks at a pointer and some stores to the
 * stack.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "adapter.h"
#include "base/clock.h"
#include "coll.h"
#include "count.h"
#include "record.h"

/* What became of it: served, or why it was left to the MPI. */
enum oc_outcome {
	OC_OUTCOME_SERVED,
	OC_OUTCOME_FAILED,   /* served, with an error */
	OC_OUTCOME_PROFILE,  /* would have been, but that only time is to be measured */
	OC_OUTCOME_IDLE,     /* nothing is: the record says why */
	OC_OUTCOME_EMPTY,    /* no bytes */
	OC_OUTCOME_SMALL,    /* below the limit */
	OC_OUTCOME_NEVER,    /* not with the mechanisms that are allowed */
	OC_OUTCOME_EARLY,    /* the communicator has not been used enough */
	OC_OUTCOME_ALONE,    /* it has one rank */
	OC_OUTCOME_BEYOND,   /* it has ranks on other nodes, or without onecopy */
	OC_OUTCOME_INTER,    /* it has two groups */
	OC_OUTCOME_SETUP,    /* it has none of ours: a member lacked a board or memory */
	OC_OUTCOME_OPERATOR, /* not one of those reduced here, or not of that type */
	OC_OUTCOME_FREED,    /* in a callback of the communicator's own end */
	OC_OUTCOME_INVALID,  /* the MPI is to report it */
	OC_OUTCOME_COUNT
};

/* Of a call of @bytes below the limit @min. */
static inline enum oc_outcome oc_outcome_below(uint64_t min, uint64_t bytes)
{
	return !bytes ? OC_OUTCOME_EMPTY : min == UINT64_MAX ? OC_OUTCOME_NEVER : OC_OUTCOME_SMALL;
}

struct oc_comm;

struct oc_call {
	uint64_t since; /* ns; 0: nobody asked */
	uint64_t size;	/* bytes of the message, or of one block */
	uint64_t data;	/* of this rank's buffers; 0: to be found out from size */
	MPI_Comm comm;
	int root;
	uint8_t coll;
	uint8_t outcome;
	/* A communicator that has no group yet and what this has counted for, which it does not if
	 * the MPI refuses it: oc_comm_counted(). */
	struct oc_comm *counted;
	size_t credit;
	unsigned int freed; /* how many communicators were, before it */
};

void oc_comm_counted(const struct oc_call *call, int err);

/* What a collective is called in statistics: the call's name, in small letters, without MPI_. */
const char *oc_call_name(enum oc_coll coll);

void oc_call_count(struct oc_call *call, int err);

/* The record is a new one. No call is under way. */
void oc_call_count_anew(void);

static inline struct oc_call oc_call_begin(enum oc_coll coll, int root, MPI_Comm comm)
{
	return (struct oc_call){
		.since = __builtin_expect(oc_record != NULL, 0) ? oc_clock_ns() : 0,
		.comm = comm,
		.root = root,
		.coll = (uint8_t)coll,
		.outcome = OC_OUTCOME_IDLE,
	};
}

/* False on ranks of an intercommunicator that have no part in the call, or get or send all of it
 * (MPI_PROC_NULL, MPI_ROOT): their other arguments may be anything. */
static inline bool oc_call_has_root(struct oc_call *call)
{
	if (__builtin_expect(call->root >= 0, 1))
		return true;
	if (oc_adapter.active)
		call->outcome = OC_OUTCOME_INTER;
	return false;
}

/* @err is what the call returns, and is returned. */
static inline int oc_call_end(struct oc_call *call, int err)
{
	if (__builtin_expect(call->counted != NULL, 0))
		oc_comm_counted(call, err);
	if (__builtin_expect(call->since != 0, 0))
		oc_call_count(call, err);
	return err;
}

/* Whether to look at a call at all. What is the MPI's in any case is looked at to be counted. */
static inline bool oc_call_known(const struct oc_call *call)
{
	return oc_adapter.active || (call->since && oc_adapter.knows_types);
}

/* The size and data of a call with blocks of their own lengths for each rank on either side, or
 * (NULL) one. Only where somebody asked. */
void oc_call_measure(struct oc_call *call, struct oc_counts out, MPI_Datatype otype,
		     struct oc_counts in, MPI_Datatype itype);
/* With a type for each block. */
void oc_call_measure_each(struct oc_call *call, struct oc_counts out, const MPI_Datatype *otypes,
			  struct oc_counts in, const MPI_Datatype *itypes);
/* The same with such blocks at the root, @blocks of @btype, and one of @count elements at each
 * rank. */
void oc_call_measure_rooted(struct oc_call *call, struct oc_counts blocks, MPI_Datatype btype,
			    MPI_Count count, MPI_Datatype type);

#endif
