// SPDX-License-Identifier: BSD-3-Clause
/*
 * When a rank's memory may be used. The MPI synchronizes, and what is missing for us is to be sure
 * that it has:
 *
 * - The fence that begins an epoch is over at the target, too, with all that others did there
 *   before: every rank counts the fences it has left, where its peers see it. The one that ends an
 *   epoch lets nobody go before all are there (but where the program says that nothing was done),
 * so it need not be looked at.
 * - A lock is held. MPIs may get one only when there is something to do: then a transfer of one
 *   byte is, and MPI_Win_flush waits for it.
 * - The target has begun the exposure epoch that one of MPI_Win_start is for (rma_post.c).
 */
#include "rma_epoch.h"

#include <sched.h>

#include "base/clock.h"
#include "base/futex.h"
#include "rma_post.h"

/* Getting a lock costs about as much as a transfer: it is worth it for one that is long, and where
 * a few short ones have been made under it, for more will follow. */
#define LOCK_FROM  ((size_t)8 << 10)
#define LOCK_AFTER 4

#define STARTS ((uint64_t)1 << 63) /* their numbers, apart from those of fences */

#define LATE_NS 100000 /* longer than ranks leave a fence one after the other, if they run */
#define LOOKS	64     /* from one look at the clock to the next */

/* One that the MPI refuses begins nothing and is not counted: peers then take this rank for late.
 */
static void publish_fence(struct oc_rma *rma, bool begins)
{
	rma->fences++;
	atomic_fetch_add_explicit(rma->board, 1, memory_order_release);
	atomic_store(&rma->epoch, begins ? OC_RMA_FENCE : OC_RMA_NONE);
}

static bool has_left_fence(const struct oc_rma_target *target, uint64_t fence)
{
	return atomic_load_explicit(target->fences, memory_order_acquire) >= fence;
}

static bool has_posted(const struct oc_rma_target *target, uint64_t start)
{
	return oc_rma_has_posted(target);
}

/* Until it has done that of number @which. It does so without us, unless it waits for a message
 * that only this rank's MPI moves: then the transfer is the MPI's. */
static bool wait_for(struct oc_rma_target *target, uint64_t which,
		     bool (*is_there)(const struct oc_rma_target *target, uint64_t which))
{
	uint64_t until = 0;

	for (uint32_t looks = 1;; looks++) {
		if (is_there(target, which))
			return true;
		if (atomic_load_explicit(&target->late, memory_order_relaxed) == which)
			return false;
		if (oc_adapter.node->oversubscribed)
			sched_yield();
		else
			oc_cpu_relax();
		if (looks % LOOKS)
			continue;
		if (!until)
			until = oc_clock_ns() + LATE_NS;
		else if (oc_clock_ns() > until)
			break;
	}
	atomic_store_explicit(&target->late, which, memory_order_relaxed);
	return false;
}

/* By the first byte of the window, for it has one: a transfer's type may begin before its
 * displacement, which then is that of the window's end, or of a gap. */
static bool get_lock(struct oc_rma_target *target, MPI_Win win)
{
	/* Where MPIs can put it without asking the kernel: no thread's stack. */
	static char byte;

	if (pmpi()->Get(&byte, 1, oc_abi.byte, target->rank, 0, 1, oc_abi.byte, win) ||
	    pmpi()->Win_flush(target->rank, win))
		return false;
	atomic_store_explicit(&target->lock, OC_RMA_HELD, memory_order_release);
	return true;
}

static bool has_made_some(struct oc_rma_target *target)
{
	return atomic_fetch_add_explicit(&target->made, 1, memory_order_relaxed) >= LOCK_AFTER;
}

bool oc_rma_may_access(struct oc_rma *rma, struct oc_rma_target *target, MPI_Win win, size_t bytes)
{
	switch (atomic_load_explicit(&target->lock, memory_order_acquire)) {
	case OC_RMA_HELD:
		return true;
	case OC_RMA_ASKED:
		return (bytes >= LOCK_FROM || has_made_some(target)) && get_lock(target, win);
	default:
		break;
	}
	if (oc_rma_has_started(rma, target))
		return wait_for(target, STARTS | target->starts, has_posted);
	return atomic_load_explicit(&rma->epoch, memory_order_relaxed) == OC_RMA_FENCE &&
	       wait_for(target, target->fences_before + rma->fences, has_left_fence);
}

static void set_lock(struct oc_rma_target *target, int assert, enum oc_rma_lock lock)
{
	/* Nobody else has or wants a lock that excludes this one. */
	if (lock == OC_RMA_ASKED && assert &MPI_MODE_NOCHECK)
		lock = OC_RMA_HELD;
	atomic_store_explicit(&target->made, 0, memory_order_relaxed);
	atomic_store_explicit(&target->lock, lock, memory_order_release);
}

static void set_lock_of(MPI_Win win, int rank, int assert, enum oc_rma_lock lock)
{
	struct oc_rma *rma = oc_rma_find(win);
	struct oc_rma_target *target = rma ? oc_rma_target(rma, rank) : NULL;

	if (rma)
		atomic_store(&rma->epoch, OC_RMA_NONE);
	if (target)
		set_lock(target, assert, lock);
}

static void set_locks(MPI_Win win, int assert, enum oc_rma_lock lock)
{
	struct oc_rma *rma = oc_rma_find(win);

	if (!rma)
		return;
	atomic_store(&rma->epoch, OC_RMA_NONE);
	for (int i = 0; i < rma->ntargets; i++)
		set_lock(&rma->targets[i], assert, lock);
}

OC_EXPORT int PMPI_Win_fence(int assert, MPI_Win win)
{
	int err = pmpi()->Win_fence(assert, win);
	struct oc_rma *rma = oc_rma_find(win);

	if (rma && err)
		atomic_store(&rma->epoch, OC_RMA_NONE);
	else if (rma)
		publish_fence(rma, !(assert &MPI_MODE_NOSUCCEED));
	return err;
}

OC_EXPORT int PMPI_Win_lock(int type, int rank, int assert, MPI_Win win)
{
	int err = pmpi()->Win_lock(type, rank, assert, win);

	if (!err)
		set_lock_of(win, rank, assert, OC_RMA_ASKED);
	return err;
}

OC_EXPORT int PMPI_Win_unlock(int rank, MPI_Win win)
{
	set_lock_of(win, rank, 0, OC_RMA_UNLOCKED);
	return pmpi()->Win_unlock(rank, win);
}

OC_EXPORT int PMPI_Win_lock_all(int assert, MPI_Win win)
{
	int err = pmpi()->Win_lock_all(assert, win);

	if (!err)
		set_locks(win, assert, OC_RMA_ASKED);
	return err;
}

OC_EXPORT int PMPI_Win_unlock_all(MPI_Win win)
{
	set_locks(win, 0, OC_RMA_UNLOCKED);
	return pmpi()->Win_unlock_all(win);
}

OC_EXPORT int MPI_Win_fence(int assert, MPI_Win win)
{
	return oc_tool()->Win_fence ? oc_tool()->Win_fence(assert, win)
				    : PMPI_Win_fence(assert, win);
}

OC_EXPORT int MPI_Win_lock(int type, int rank, int assert, MPI_Win win)
{
	return oc_tool()->Win_lock ? oc_tool()->Win_lock(type, rank, assert, win)
				   : PMPI_Win_lock(type, rank, assert, win);
}

OC_EXPORT int MPI_Win_unlock(int rank, MPI_Win win)
{
	return oc_tool()->Win_unlock ? oc_tool()->Win_unlock(rank, win)
				     : PMPI_Win_unlock(rank, win);
}

OC_EXPORT int MPI_Win_lock_all(int assert, MPI_Win win)
{
	return oc_tool()->Win_lock_all ? oc_tool()->Win_lock_all(assert, win)
				       : PMPI_Win_lock_all(assert, win);
}

OC_EXPORT int MPI_Win_unlock_all(MPI_Win win)
{
	return oc_tool()->Win_unlock_all ? oc_tool()->Win_unlock_all(win)
					 : PMPI_Win_unlock_all(win);
}
