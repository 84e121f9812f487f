/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_ADAPTER_H
#define OC_MPI_ADAPTER_H

/*
 * The MPI adapter: turns calls on communicators into operations of groups.
 *
 * Whether onecopy or the MPI serves a call must be decided alike on every
 * rank, yet ranks may pass different counts and datatypes of one signature. So
 * decisions rest only on what the standard makes equal everywhere: the bytes
 * of the signature, the communicator, and what was agreed at MPI_Init. How a
 * buffer is laid out, and where it lies, never decides; it only changes how
 * bytes are moved. Where counts are known to two ranks alone (Scatterv,
 * Gatherv, Alltoallv) each pair decides for itself by its own bytes, and the
 * MPI then gets the same call with the served pairs' counts set to zero. Where the ends of a pair
 * differ, which is an error, both find that out: oc_pair_rest().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "call.h"
#include "coll.h"
#include "exec/group.h"
#include "exec/inline.h"
#include "type_sizes.h"
#include "pmpi.h"

/* Fortran bindings and tools call PMPI_x, where the work is done; MPI_x goes
 * through a tool linked below us first, if there is one. */
#define OC_EXPORT __attribute__((visibility("default")))

/* What every rank of the node agreed on at MPI_Init. */
struct oc_agreed {
	char name[48];		     /* by which they meet where the job has none */
	uint64_t min[OC_COLL_COUNT]; /* bytes from which a collective is served */
	uint64_t stream;	     /* bytes from which stores may go past the caches */
	uint64_t eager;		     /* bytes up to which plans are eager where ranks share CPUs */
	uint64_t credit;	     /* bytes a communicator must have asked for to get a group */
	uint32_t version;
	uint32_t profile; /* nothing is served, but what would be is measured */
};

struct oc_adapter {
	bool active;	  /* between MPI_Init and MPI_Finalize, with a node of >= 2 */
	bool knows_types; /* the MPI is ours: its handles mean something */
	const char *idle; /* there too, if not: why */
	bool first;	  /* of the ranks here: speaks for them */
	struct oc_node *node;
	struct oc_agreed agreed;
	int keyval;
	MPI_Comm self;	    /* private: where progress is driven and data converted */
	int *node_of_world; /* world rank -> node rank or -1 */
	int world_size;
	MPI_Group world_group;
};
extern struct oc_adapter oc_adapter;

/* One communicator, attached to it as an attribute. */
struct oc_comm {
	struct oc_group *group; /* NULL: the MPI serves it */
	int rank;
	int size;
	uint64_t credit; /* bytes of calls that could have been served so far */
	bool tried;
	uint8_t outcome; /* enum oc_outcome of its calls when there is no group */
};

/*
 * The communicator's state for a call that all its ranks make with the same
 * @bytes. Its group is made, collectively, once enough bytes have passed to pay
 * for it. NULL: give the call to the MPI; @call is told which and why.
 */
struct oc_comm *oc_comm_get(struct oc_call *call, MPI_Comm comm, size_t bytes);

/* How many ranks a communicator has; 0 where the call is the MPI's in any case. */
int oc_comm_ranks(struct oc_call *call, MPI_Comm comm);

/* What a call counts for whose bytes not every rank knows. */
#define OC_CREDIT_CALL ((size_t)64 << 10)

int oc_comm_setup(void); /* 0 or -errno; collective over the node */
void oc_comm_teardown(void);

/* ---- failures (failure.c) -------------------------------------------------
 *
 * A failure, 0 if there is none, is -errno of an operation or, above 0, an MPI error code
 * of this process's buffers. Nobody has been told of it before it is reported.
 */

/* Reports it as the MPI reports its own errors: through the communicator's error handler.
 * The error code for the caller to return. */
int oc_failure_report(const struct oc_comm *oc, MPI_Comm comm, enum oc_coll coll, int failure);

/* What a call ends with: MPI_SUCCESS, or a failure that is reported. */
static inline int oc_failure_end(const struct oc_comm *oc, MPI_Comm comm, enum oc_coll coll,
				 int failure)
{
	return failure ? oc_failure_report(oc, comm, coll, failure) : MPI_SUCCESS;
}

/* False if an error ends the job. If not, and a rank has died, that is said now: the MPI may
 * wait for it in vain. */
bool oc_failure_outlived(const struct oc_comm *oc, MPI_Comm comm, enum oc_coll coll, int failure);

/*
 * Whether the MPI is to get its part of a v-collective: also after ours failed, for other
 * ranks may be in the MPI's call already and wait for this one. Where the failure ends
 * the job that is what ends their wait.
 */
static inline bool oc_failure_goes_on(const struct oc_comm *oc, MPI_Comm comm, enum oc_coll coll,
				      int failure)
{
	return !failure || oc_failure_outlived(oc, comm, coll, failure);
}

/* The -errno for other ranks of an error code of this process's buffers. */
int oc_failure_of_code(int code);

/* ---- buffers (buffer.c) -------------------------------------------------- */

/* One side of a call as plain bytes: the user's memory when its layout is
 * contiguous, else a packed copy in the shared heap. */
struct oc_buffer {
	char *at;
	size_t bytes;
	void *user;   /* packed: where the data came from or goes */
	size_t count; /* packed: elements of type */
	MPI_Datatype type;
	bool packed;
	bool heap; /* the copy is in the shared heap, else malloc */
};

/* 0 or an MPI error code that nobody has been told of. */
int oc_buffer_send(struct oc_buffer *buffer, const void *user, size_t count, MPI_Datatype type);
/* to send from a copy in any case */
int oc_buffer_copy(struct oc_buffer *buffer, const void *user, size_t count, MPI_Datatype type);
int oc_buffer_recv(struct oc_buffer *buffer, void *user, size_t count, MPI_Datatype type);
/* Unpacks what was received if @unpack, and frees the copy. A failure. */
int oc_buffer_close(struct oc_buffer *buffer, bool unpack);

/* True if elements of @type follow each other without gaps, in order. */
bool oc_type_contiguous(MPI_Datatype type);

/* Finds out whether packing is concatenation in this MPI. 0 or -EOPNOTSUPP. */
int oc_buffer_setup(void);

/* ---- vectors of blocks (vbuffer.c) ---------------------------------------- */

/* The side of a v-collective that has one block a rank. Blocks below @min, and
 * those of other ranks' choosing, are left to the MPI through rest[]. */
struct oc_vbuffer {
	char *at;
	size_t bytes;
	uint64_t *off; /* [n] from at; NULL without memory */
	uint64_t *len; /* [n] bytes served, 0: none; behind it there is room for [n] more */
	int n;
	int skip; /* as given to oc_vbuffer_open */
	void *user;
	const int *counts;
	const int *displs;
	MPI_Datatype type;
	bool packed;
	bool heap;
	int rest[OC_MAX_RANKS]; /* [n] the counts left for the MPI, whatever fails */
};

/* Adds up counts; false if one is negative, which the MPI is to report. */
bool oc_counts_total(const int *counts, int n, uint64_t *total);

/* True if some block has at least @min bytes, not counting @skip: what to ask before
 * oc_vbuffer_open. */
bool oc_blocks_any(const int *counts, MPI_Datatype type, int n, size_t min, int skip);

static inline bool oc_vbuffer_serves(const struct oc_vbuffer *v, int i)
{
	return v->rest[i] != v->counts[i];
}

/* @skip: a block never served (own block in place), or -1. 0 or MPI error, and
 * then rest[] is as without. */
int oc_vbuffer_open(struct oc_vbuffer *v, const void *user, const int *counts, const int *displs,
		    MPI_Datatype type, int n, size_t min, int skip);
/*
 * How many of a served block's @count elements are the MPI's after all, at the end that
 * @sends it or not. Fewer bytes than are expected it moves without an error, as it would have
 * alone. More are an error, in *@failure unless there is one: the MPI's part could overrun the
 * receiver (Open MPI 4.1 does, by CMA), or leave others waiting. It gets one element if the
 * receiver knows nothing of this and waits for a message.
 */
int oc_pair_rest(enum oc_pair pair, int count, bool sends, int *failure);
/* The same of all blocks, from @pair[n] to rest[]; those that were not moved have no len[] then. */
void oc_vbuffer_part(struct oc_vbuffer *v, const uint8_t *pair, bool sends, int *failure);
/* Before the operation: whether this rank's own block, whose other end is @count of @type, is moved
 * in it. If it were but for its ends, which differ, that is an error in any case: in @pair. */
bool oc_vbuffer_own(struct oc_vbuffer *v, int rank, int count, MPI_Datatype type, bool sends,
		    uint8_t *pair);
/* Makes it what peers may read: at, bytes and off[] may be others than before. */
int oc_vbuffer_pack(struct oc_vbuffer *v);
/* True if a page between the blocks, outside the shared heap, may not be there. */
bool oc_vbuffer_has_hole(const struct oc_vbuffer *v);
/* A failure. */
int oc_vbuffer_unpack(struct oc_vbuffer *v);
void oc_vbuffer_close(struct oc_vbuffer *v);

/* Packs (or unpacks) elements between a user's layout and plain bytes. 0 or an MPI
 * error code that nobody has been told of. */
int oc_convert(void *user, char *packed, size_t count, MPI_Datatype type, bool pack);

/* ---- running (serve.c) ------------------------------------------------------ */

/* Whether to look at a call at all. What is the MPI's in any case is looked at to be counted. */
static inline bool oc_call_known(const struct oc_call *call)
{
	return oc_adapter.active || (call->since && oc_adapter.knows_types);
}

/*
 * The first look at a call: true if it has a signature of at least the agreed
 * bytes, written to @bytes. Costs nanoseconds, touches no communicator.
 */
static inline bool oc_eligible(struct oc_call *call, int count, MPI_Datatype type, size_t *bytes)
{
	if (!oc_call_known(call))
		return false;
	if (count <= 0 || !type || type == oc_abi.type_null) {
		call->outcome = count ? OC_OUTCOME_INVALID : OC_OUTCOME_EMPTY;
		return false;
	}
	call->size = *bytes = oc_type_bytes(type, (size_t)count);
	if (!oc_adapter.active)
		return false;
	if (*bytes && *bytes >= oc_adapter.agreed.min[call->coll])
		return true;
	call->outcome = oc_outcome_below(oc_adapter.agreed.min[call->coll], *bytes);
	return false;
}

/* Whether a rank's other buffer has the @bytes that the standard wants of it, too: of what
 * a rank sends to itself both sides are known. */
static inline bool oc_same_bytes(int count, MPI_Datatype type, size_t bytes)
{
	return count >= 0 && oc_type_bytes(type, (size_t)count) == bytes;
}

/*
 * Runs a collective whose plan depends on @shape alone, from the group's cache.
 * @prepared is how opening the buffers went: after an error the others are told
 * that this rank cannot take part, and why. A failure.
 */
int oc_serve(struct oc_comm *oc, int prepared, const struct oc_shape *shape, struct oc_bind *bind);

/* The same with a plan of its own, NULL without memory, which it destroys. */
int oc_serve_plan(struct oc_comm *oc, int prepared, struct oc_plan *plan, struct oc_bind *bind);

/* Fills what all shapes share. */
struct oc_shape oc_shape_of(const struct oc_comm *oc, enum oc_coll coll, int root, size_t bytes);

/* True if stores of a call that writes @bytes on this rank may go past the caches:
 * whether they do is learned (lib/bytes/store_policy.h). */
bool oc_streams(size_t bytes);

#endif
