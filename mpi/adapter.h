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
 * Gatherv, Alltoallv, Alltoallw, neighbours) each pair decides for itself by its own bytes, and the
 * MPI then gets the same call with the served pairs' counts set to zero. There a sender alone may
 * leave a pair to the MPI for what it knows of its buffer: its receiver hears of it. Where the ends
 * of a pair differ, which is an error, both find that out: oc_pair_rest() (mpi/vbuffer.h).
 */

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

#include "abi.h"
#include "coll.h"
#include "pmpi.h"
#include "segment/node.h"

/* Fortran bindings and tools call PMPI_x, where the work is done; MPI_x goes
 * through a tool linked below us first, if there is one. */
#define OC_EXPORT __attribute__((visibility("default")))

/* Calls with large counts. Where the MPI has none, a program that looks for them must not find
 * ours: there is a library without them (preload/meson.build). */
#define OC_EXPORT_LARGE OC_EXPORT

/* One body for both forms of a call, the plain of which must not pay for the large one. */
#define OC_BOTH inline __attribute__((always_inline))

/* Has lists of all ranks on the stack: apart, so that a call that is left to the MPI runs where it
 * would without us, on pages and lines of the stack that are in use. */
#define OC_APART __attribute__((noinline))

/* What every rank of the node agreed on at MPI_Init. */
struct oc_agreed {
	char name[48];		     /* by which they meet where the job has none */
	uint64_t min[OC_COLL_COUNT]; /* bytes from which a collective is served */
	uint64_t stream;	     /* bytes from which stores may go past the caches */
	uint64_t eager;		     /* bytes up to which plans are eager where ranks share CPUs */
	uint64_t credit;	     /* bytes a communicator must have asked for to get a group */
	uint64_t operators;	     /* what MPI_Init found out of them, in short */
	uint32_t version;
	uint32_t profile; /* nothing is served, but what would be is measured */
};

struct oc_adapter {
	bool active; /* between MPI_Init and MPI_Finalize, or in sessions, with a node of >= 2 */
	bool knows_types; /* the MPI is ours: its handles mean something */
	const char *idle; /* there too, if not: why */
	bool first;	  /* of the ranks here: speaks for them */
	bool inter;	  /* there are intercommunicators that may be served, or were */
	struct oc_node *node;
	struct oc_agreed agreed;
	int keyval;
	MPI_Comm alone;	    /* MPI_COMM_SELF, or what sessions have for it */
	MPI_Comm self;	    /* private: where progress is driven and data converted */
	MPI_Request never;  /* a receive there that nobody sends to, unless probes do */
	int *node_of_world; /* world rank -> node rank or -1 */
	int world_size, world_rank;
	MPI_Group world_group;
};
extern struct oc_adapter oc_adapter;

#endif
