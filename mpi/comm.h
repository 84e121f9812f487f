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
	uint64_t credit; /* what the calls that could have been served so far count for */
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

/* oc_comm_look() at any other. */
struct oc_comm *oc_comm_find(struct oc_call *call, MPI_Comm comm);

/* oc_comm_join() of one that has not been tried yet. */
void oc_comm_count(struct oc_call *call, MPI_Comm comm, struct oc_comm *oc, size_t bytes);

/* The communicator's state, for its rank and size. Local. NULL: give the call to the MPI; @call is
 * told why. */
static inline struct oc_comm *oc_comm_look(struct oc_call *call, MPI_Comm comm)
{
	struct oc_comm *oc = oc_comm_last.oc;

	if (!oc_comm_is_last(comm) || !oc_adapter.active)
		oc = oc_comm_find(call, comm);
	if (!oc || (unsigned int)call->root < (unsigned int)oc->size)
		return oc;
	call->outcome = OC_OUTCOME_INVALID;
	return NULL;
}

/*
 * True if the MPI is to report what is @wrong with a call. It may be this rank's alone, or the
 * others may never make it: so it has no part in the communicator's sequence of calls, and who
 * makes it waits for nobody.
 */
static inline bool oc_comm_refuses(struct oc_call *call, bool wrong)
{
	if (__builtin_expect(wrong, 0))
		call->outcome = OC_OUTCOME_INVALID;
	return wrong;
}

/*
 * Of one looked at, or NULL, for a call that is not @wrong and that all its ranks make with the
 * same @bytes. Its group is made, collectively, once enough has passed to pay for it. NULL: as
 * oc_comm_look().
 */
static inline struct oc_comm *oc_comm_join(struct oc_call *call, MPI_Comm comm, struct oc_comm *oc,
					   size_t bytes, bool wrong)
{
	if (!oc || oc_comm_refuses(call, wrong))
		return NULL;
	if (!oc->tried)
		oc_comm_count(call, comm, oc, bytes);
	call->outcome = oc->outcome;
	return oc->group ? oc : NULL;
}

/* Both, where what is wrong does not depend on the communicator. */
static inline struct oc_comm *oc_comm_get(struct oc_call *call, MPI_Comm comm, size_t bytes,
					  bool wrong)
{
	return oc_comm_join(call, comm, oc_comm_look(call, comm), bytes, wrong);
}

/* To be asked again what became of it: oc_call_end(). @credit as in oc_call. */
static inline void oc_comm_note(struct oc_call *call, struct oc_comm *oc, size_t credit)
{
	call->counted = oc;
	call->credit = credit;
	call->freed = __atomic_load_n(&oc_comm_freed, __ATOMIC_ACQUIRE);
}

/* A call that other ranks may take part in, and this one leaves to the MPI. Before the MPI has it,
 * for they may wait to hear of this. NULL. */
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

/* What a call counts for whose bytes not every rank knows, or that has fewer than make a group at
 * once: ranks that wrongly pass different lengths stay together. */
#define OC_CREDIT_CALL ((size_t)64 << 10)

/* Whether the group of @comm that MPI_Comm_group or MPI_Comm_remote_group gives, of @size, is one
 * of processes of this node that run under onecopy. All its members on this node find the same. */
bool oc_comm_is_here(int (*group_of)(MPI_Comm, MPI_Group *), MPI_Comm comm, int size);

/* Collective: makes the group of @oc, whose rank and size in @comm are known, unless something is
 * against it, which all members find. */
void oc_comm_create_group(MPI_Comm comm, struct oc_comm *oc);

/* One turn of the MPI's progress engine, for who waits outside the MPI. While calls are served. */
void oc_comm_drive_progress(void);

/* The copy function of what belongs to one communicator: duplicates get their own. */
int oc_comm_not_copied(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag);

int oc_comm_setup(void); /* 0 or -errno; collective over the node */
void oc_comm_teardown(void);

#endif
