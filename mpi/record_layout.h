/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_RECORD_LAYOUT_H
#define OC_MPI_RECORD_LAYOUT_H

/*
 * What one rank has done, as `onecopy run --stats` reads it: plain memory of fixed layout, without
 * pointers, that means the same wherever it is read. Where ONECOPY_STATS names a directory it is a
 * file in there, mapped, so that it outlives a rank that is killed; all of it is written once
 * before it is used, so that a full disk is met then and not by a store. Records of other machines
 * come into the same directory if that is on a shared file system, and may as well be sent as they
 * are: a record says which job and machine it is of, and names, not numbers, what it counted.
 *
 * cli/onecopy/record.py reads the same layout; it changes together with OC_RECORD_MAGIC.
 */

#include <stdint.h>

#include <onecopy/onecopy.h>

#define OC_RECORD_MAGIC "ocstats5"
#define OC_RECORD_CELLS 281

enum oc_record_state {
	OC_RECORD_STARTING, /* in MPI_Init */
	OC_RECORD_RUNNING,
	OC_RECORD_FINISHED, /* has called MPI_Finalize */
	OC_RECORD_ABORTED,  /* has called MPI_Abort */
};

/* What became of a one-sided transfer. */
enum oc_transfer {
	OC_TRANSFER_SERVED,
	OC_TRANSFER_WINDOW, /* the MPI's: its window, or what is wrong with it */
	OC_TRANSFER_TYPES,  /* they would have to be packed */
	OC_TRANSFER_EPOCH,  /* it could not be told whether it may be made by now */
	OC_TRANSFER_MEMORY, /* the caller's may not be used, or the target's not be reached */
	OC_TRANSFER_COUNT
};
#define OC_TRANSFER_NAMES "served", "window", "types", "epoch", "memory"

/* Calls of one collective and size that ended in one way. Written by any thread. */
struct oc_record_cell {
	char call[24];	  /* "bcast" ...; the last one written, readers wait for it */
	char outcome[16]; /* "served" or why not: mpi/call.h */
	uint64_t size; /* bytes of the calls, from this power of two up to the next; 0, 1 to 1023 */
	uint64_t calls;
	uint64_t bytes; /* sum of the sizes */
	uint64_t data;	/* bytes that this rank's buffers hold in these calls */
	uint64_t ns;	/* from entering them to leaving them */
};

struct oc_record {
	union {
		struct {
			char magic[8];
			uint32_t state; /* enum oc_record_state */
			uint32_t pid;
			uint64_t job; /* 0: its launcher has no name for it */
			uint32_t world_rank;
			uint32_t world_size; /* 0: the MPI is none we know */
			uint32_t node_rank;
			uint32_t node_size; /* ranks here that are served together; 0 none */
			uint32_t profile;   /* nothing was to be served */
			int32_t code;	    /* of MPI_Abort */
			uint64_t start_ns;  /* CLOCK_MONOTONIC, when MPI_Init was done */
			uint64_t end_ns;    /* in MPI_Finalize, until then after the last call */
			uint64_t min;	    /* bytes from which calls are served */
			uint64_t credit;    /* bytes a communicator has to have asked for */
			uint64_t mech_calls[OC_MECH_COUNT]; /* copies */
			uint64_t mech_bytes[OC_MECH_COUNT];
			uint64_t refused; /* copies that one of them refused to make */
			uint64_t message_calls[OC_MECH_COUNT]; /* copies for the MPI's own messages
								*/
			uint64_t message_bytes[OC_MECH_COUNT];
			uint64_t helped_bytes; /* of those of its peers, copied by this rank */
			uint64_t transfer_calls[OC_TRANSFER_COUNT];
			uint64_t transfer_bytes[OC_TRANSFER_COUNT];
			char version[16];
			char mpi[96];
			char host[64];
			char idle[256]; /* why nothing was served at all */
			char heap[256]; /* why malloc was left alone */
		};
		char header[2048];
	};
	struct oc_record_cell
		cell[OC_RECORD_CELLS]; /* used ones first; the last is for what has none */
};
_Static_assert(sizeof(struct oc_record_cell) == 80, "cli/onecopy/record.py");
_Static_assert(sizeof(struct oc_record) <= 24 << 10, "some pages");

#endif
