/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_COMM_H
#define OC_MPI_COMM_H

/* Communicators and their groups. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "call.h"
#include "comm_free.h"
#include "exec/group.h"

struct oc_topology;

/* One communicator, attached to it as an attribute. */
struct oc_comm {
	struct oc_group *group; /* NULL: the MPI serves it */
	int rank;
	int size;
	uint64_t credit; /* bytes of calls that could have been served so far */
	bool tried;
	uint8_t outcome;	      /* enum oc_outcome of its calls when there is no group */
	struct oc_topology *topology; /* NULL: not known yet */
	uint64_t *there; /* [size] 1: rank of the other group; NULL: there is one group */
};

/* The communicator looked up last by this thread. Handles are used again after MPI_Comm_free, so
 * a count of freed ones says whether it still holds. */
struct oc_comm_last {
	MPI_Comm comm;
	struct oc_comm *oc;
	unsigned int freed;
};
extern _Thread_local struct oc_comm_last oc_comm_last __attribute__((tls_model("initial-exec")));

/* Whether it is @comm, and still is: its oc stands then. */
static inline bool oc_comm_is_last(MPI_Comm comm)
{
	return oc_comm_last.comm == comm && oc_comm_last.oc &&
	       oc_comm_last.freed == __atomic_load_n(&oc_comm_freed, __ATOMIC_ACQUIRE);
}

/* oc_comm_get() of any other. */
struct oc_comm *oc_comm_find(struct oc_call *call, MPI_Comm comm, size_t bytes);

/*
 * The communicator's state for a call that all its ranks make with the same
 * @bytes. Its group is made, collectively, once enough bytes have passed to pay
 * for it. NULL: give the call to the MPI; @call is told which and why.
 */
static inline struct oc_comm *oc_comm_get(struct oc_call *call, MPI_Comm comm, size_t bytes)
{
	struct oc_comm *oc = oc_comm_last.oc;

	if (!oc_comm_is_last(comm) || !oc_adapter.active || !oc->tried)
		return oc_comm_find(call, comm, bytes);
	call->outcome = oc->outcome;
	return oc->group ? oc : NULL;
}

/* A call that other ranks may take part in, and this one leaves to the MPI. NULL. */
static inline struct oc_comm *oc_comm_leave(struct oc_comm *oc)
{
	oc_group_skip(oc->group);
	return NULL;
}

/* How many ranks a communicator has; 0 where the call is the MPI's in any case. */
int oc_comm_ranks(struct oc_call *call, MPI_Comm comm);

/* This rank, for who is to tell the root's arguments from others'. False where none of them may be
 * looked at, for the call is the MPI's in any case: of intercommunicators' ranks some have others.
 */
bool oc_comm_rank(struct oc_call *call, MPI_Comm comm, int *rank);

/* What a call counts for whose bytes not every rank knows. */
#define OC_CREDIT_CALL ((size_t)64 << 10)

/* Whether the group of @comm that MPI_Comm_group or MPI_Comm_remote_group gives, of @size, is one
 * of processes of this node that run under onecopy. All its members on this node find the same. */
bool oc_comm_is_here(int (*group_of)(MPI_Comm, MPI_Group *), MPI_Comm comm, int size);

/* Collective: makes the group of @oc, whose rank and size in @comm are known, unless something is
 * against it, which all members find. */
void oc_comm_create_group(MPI_Comm comm, struct oc_comm *oc);

int oc_comm_setup(void); /* 0 or -errno; collective over the node */
void oc_comm_teardown(void);

#endif
