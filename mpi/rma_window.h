/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_RMA_WINDOW_H
#define OC_MPI_RMA_WINDOW_H

/* Windows of MPI_Win_create, and where the ranks of this machine have theirs. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

#include "adapter.h"

/* Of a rank, at a time. Later ones are left to the MPI. */
#define OC_RMA_WINDOWS 64

enum oc_rma_lock {
	OC_RMA_UNLOCKED,
	OC_RMA_ASKED, /* the program has asked for it: the MPI may get it when it is needed */
	OC_RMA_HELD,
};

/* A rank of a window that is on this machine. */
struct oc_rma_target {
	int rank;	/* of the window's communicator */
	uint32_t there; /* of the node */
	uint64_t base;	/* as that rank has it */
	uint64_t bytes; /* 0: peers cannot reach it */
	uint64_t unit;	/* of displacements */
	/* Fences it has left, among them of windows that had its place before: so many when this
	 * window was made. */
	const _Atomic uint64_t *fences;
	uint64_t fences_before;
	_Atomic uint64_t late; /* the fence or start that it was waited for in vain */
	_Atomic uint32_t lock; /* enum oc_rma_lock */
	_Atomic uint32_t made; /* short transfers under it, by the MPI */
	/* Exposure epochs for this rank it has begun with this window, and epochs of MPI_Win_start
	 * for it, of which one is under way if @started. */
	const _Atomic uint32_t *posts;
	uint32_t starts;
	bool started;
};

enum oc_rma_epoch { OC_RMA_NONE, OC_RMA_FENCE, OC_RMA_START };

/* A window as this rank sees it. */
struct oc_rma {
	_Atomic uintptr_t win; /* 0: this place is free */
	_Atomic uint32_t epoch;
	uint64_t fences;	 /* this rank has left */
	_Atomic uint64_t *board; /* what it tells its peers of them */
	_Atomic uint32_t *posts; /* and of exposure epochs, by rank of the node */
	int ntargets;
	struct oc_rma_target *targets; /* by rank */
};

/* Windows that were made after oc_rma_setup(), and may have more than one rank here. */
extern _Atomic uint32_t oc_rma_windows;

struct oc_rma *oc_rma_find_any(MPI_Win win);

/* NULL: nothing is known of it. As long as it is not freed, which is nobody's right meanwhile. */
static inline struct oc_rma *oc_rma_find(MPI_Win win)
{
	return __builtin_expect(!!atomic_load_explicit(&oc_rma_windows, memory_order_relaxed), 0)
		       ? oc_rma_find_any(win)
		       : NULL;
}

/* NULL: the MPI's. */
struct oc_rma_target *oc_rma_target(const struct oc_rma *rma, int rank);

/* The same by the rank of the node. */
struct oc_rma_target *oc_rma_target_there(const struct oc_rma *rma, int there);

int oc_rma_setup(void); /* 0 or -EIO */
void oc_rma_teardown(void);

#endif
