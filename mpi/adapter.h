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
 * MPI then gets the same call with the served pairs' counts set to zero.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "coll.h"
#include "exec.h"
#include "group.h"
#include "named.h"
#include "pmpi.h"

/* Fortran bindings and tools call PMPI_x, where the work is done; MPI_x goes
 * through a tool linked below us first, if there is one. */
#define OC_EXPORT __attribute__((visibility("default")))

/* What every rank of the node agreed on at MPI_Init. */
struct oc_agreed {
	char name[48];		     /* rendezvous */
	uint64_t min[OC_COLL_COUNT]; /* bytes from which a collective is served */
	uint64_t stream;	     /* bytes from which stores may go past the caches */
	uint64_t eager;		     /* bytes up to which plans are eager where ranks share CPUs */
	uint64_t credit;	     /* bytes a communicator must have asked for to get a group */
	uint32_t version;
};

struct oc_adapter {
	bool active;	  /* between MPI_Init and MPI_Finalize, with a node of >= 2 */
	const char *idle; /* there too, if not: why */
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
};

/*
 * The communicator's state for a call that all its ranks make with the same
 * @bytes. Its group is made, collectively, once enough bytes have passed to pay
 * for it. NULL: give the call to the MPI.
 */
struct oc_comm *oc_comm_get(MPI_Comm comm, size_t bytes);

/* How many ranks a communicator has; 0 where the call is the MPI's in any case. */
int oc_comm_ranks(MPI_Comm comm);

/* What a call counts for whose bytes not every rank knows. */
#define OC_CREDIT_CALL ((size_t)64 << 10)

/* Reports a failed operation, -errno, as the MPI reports its own: through the
 * communicator's error handler. The error code for the caller to return. */
int oc_comm_fail(MPI_Comm comm, int err);
/* The same for an error code of this process's buffers. */
int oc_comm_raise(MPI_Comm comm, int code);

int oc_comm_setup(void); /* 0 or -errno; collective over the node */
void oc_comm_teardown(void);

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
/* Unpacks what was received if @unpack, and frees the copy. 0, or an error that
 * has been through the error handler. */
int oc_buffer_close(struct oc_buffer *buffer, bool unpack, MPI_Comm comm);

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
	uint64_t *len; /* [n] bytes served, 0: none */
	uint64_t *off; /* [n] from at */
	int *rest;     /* [n] the counts left for the MPI */
	int n;
	int skip; /* as given to oc_vbuffer_open */
	void *user;
	const int *counts;
	const int *displs;
	MPI_Datatype type;
	bool packed;
	bool heap;
};

/* Adds up counts; false if one is negative, which the MPI is to report. */
bool oc_counts_total(const int *counts, int n, uint64_t *total);

/* True if some block has at least @min bytes: what to ask before oc_vbuffer_open. */
bool oc_blocks_any(const int *counts, MPI_Datatype type, int n, size_t min, int skip);

/* @skip: a block never served (own block in place), or -1. 0 or MPI error. */
int oc_vbuffer_open(struct oc_vbuffer *v, const void *user, const int *counts, const int *displs,
		    MPI_Datatype type, int n, size_t min, int skip);
/* Makes it what peers may read: at, bytes and off[] may be others than before. */
int oc_vbuffer_pack(struct oc_vbuffer *v);
/* True if a page between the blocks, outside the shared heap, may not be there. */
bool oc_vbuffer_has_hole(const struct oc_vbuffer *v);
/* 0, or an error that has been through the error handler. */
int oc_vbuffer_unpack(struct oc_vbuffer *v, MPI_Comm comm);
void oc_vbuffer_close(struct oc_vbuffer *v);

/* Packs (or unpacks) elements between a user's layout and plain bytes. 0 or an MPI
 * error code that nobody has been told of. */
int oc_convert(void *user, char *packed, size_t count, MPI_Datatype type, bool pack);

/* ---- running and counting (serve.c) -------------------------------------- */

/* Calls counted per collective; served counts bytes of the shape. */
struct oc_counter {
	uint64_t served;
	uint64_t passed;
	uint64_t bytes;
};
extern struct oc_counter oc_counters[OC_COLL_COUNT];

static inline void oc_count_passed(enum oc_coll coll)
{
	oc_counters[coll].passed++;
}

/*
 * The first look at a call: true if it has a signature of at least the agreed
 * bytes, written to @bytes. Costs nanoseconds, touches no communicator.
 */
static inline bool oc_eligible(enum oc_coll coll, int count, MPI_Datatype type, size_t *bytes)
{
	if (!oc_adapter.active || count <= 0 || !type || type == oc_abi.type_null)
		return false;
	*bytes = oc_type_bytes(type, (size_t)count);
	return *bytes && *bytes >= oc_adapter.agreed.min[coll];
}

/*
 * Runs a collective whose plan depends on @shape alone, from the group's cache.
 * @prepared is how opening the buffers went: after an error the others are told
 * that this rank cannot take part. MPI_SUCCESS, or an error that has been
 * through the communicator's error handler.
 */
int oc_serve(struct oc_comm *oc, MPI_Comm comm, int prepared, const struct oc_shape *shape,
	     struct oc_bind *bind);

/* The same with a plan of its own, NULL without memory, which it destroys. */
int oc_serve_plan(struct oc_comm *oc, MPI_Comm comm, int prepared, struct oc_plan *plan,
		  struct oc_bind *bind);

/* Takes part in an operation without a buffer: the others may have work. */
int oc_serve_absent(struct oc_comm *oc, MPI_Comm comm);

/* Fills what all shapes share. */
struct oc_shape oc_shape_of(const struct oc_comm *oc, enum oc_coll coll, int root, size_t bytes);

/* At MPI_Finalize: one JSON line to ONECOPY_STATS. */
void oc_stats_write(void);

/* True if stores of a call that writes @bytes on this rank may go past the caches:
 * whether they do is learned (lib/stores.h). */
bool oc_streams(size_t bytes);

#endif
