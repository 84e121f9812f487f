// SPDX-License-Identifier: BSD-3-Clause
/*
 * Where an MPI's progress engine calls functions of others, and what it costs: each call takes a
 * short message its time, so every turn is looked in only as long as something was found lately,
 * and else one of eight.
 *
 * Open MPI (opal/runtime/opal_progress.h) calls a function in each of its turns, or in one of eight
 * ("low priority"), and moves one that is registered again. What the function returns is the number
 * of events it has seen.
 *
 * MPICH (MPIX_Async_start, since 4.3) calls it in each turn until it says that it is done, and
 * waits for that in MPI_Finalize.
 */
#include "look.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../procvm/procvm.h"
#include "base/env.h"
#include "pmpi.h"

/* Looks in vain, of 20 to 100 ns each: longer than the longest message takes. */
#define IN_VAIN (UINT32_C(1) << 16)
#define ONE_OF	8

/* Copies that both ends make, in bytes. Of less asking costs as much as is won, or more where cores
 * share no cache (of a message of 64 KiB Open MPI sends the first 4 by itself); MPICH's turns are
 * longer. */
#define OPAL_FROM  ((size_t)64 << 10)
#define MPICH_FROM ((size_t)512 << 10)

/* As mpi.h of MPICH has them: int handles, and what its functions return. */
#define MPICH_STREAM_NULL 0x3c000000
enum { MPICH_ASYNC_NOPROGRESS, MPICH_ASYNC_DONE };

typedef int opal_register(int (*callback)(void));
typedef int mpich_start(int (*poll)(void *thing), void *state, int stream);

static opal_register *each_turn, *some_turns, *no_turn;
static _Atomic uint32_t in_vain; /* since something was found; from IN_VAIN on, in some turns */
static _Atomic uint32_t turns;	 /* of MPICH's, while few are looked in */
static _Atomic bool wanted;	 /* of MPICH: to go on */
static _Atomic bool polled;	 /* it has not been told yet that it is over */

static int look(void)
{
	uint32_t looks = atomic_load_explicit(&in_vain, memory_order_relaxed);

	if (oc_procvm_help()) {
		if (atomic_exchange(&in_vain, 0) >= IN_VAIN && each_turn)
			each_turn(look);
		return 1;
	}
	if (looks < IN_VAIN) {
		atomic_store_explicit(&in_vain, looks + 1, memory_order_relaxed);
		if (looks + 1 == IN_VAIN && some_turns)
			some_turns(look);
	}
	return 0;
}

/* Each: from how many bytes on copies are shared, or 0: that is not the MPI. */
static size_t begin_opal(void)
{
	each_turn = oc_pmpi_symbol("opal_progress_register");
	some_turns = oc_pmpi_symbol("opal_progress_register_lp");
	no_turn = oc_pmpi_symbol("opal_progress_unregister");
	if (!each_turn || !some_turns || !no_turn) {
		each_turn = some_turns = no_turn = NULL;
		return 0;
	}
	return some_turns(look) ? 0 : OPAL_FROM;
}

static int poll(void *thing)
{
	uint32_t turn;

	if (!atomic_load_explicit(&wanted, memory_order_relaxed)) {
		atomic_store(&polled, false);
		return MPICH_ASYNC_DONE;
	}
	if (atomic_load_explicit(&in_vain, memory_order_relaxed) >= IN_VAIN) {
		turn = atomic_load_explicit(&turns, memory_order_relaxed) + 1;
		atomic_store_explicit(&turns, turn, memory_order_relaxed);
		if (turn % ONE_OF)
			return MPICH_ASYNC_NOPROGRESS;
	}
	look();
	return MPICH_ASYNC_NOPROGRESS;
}

static size_t begin_mpich(void)
{
	mpich_start *start = oc_pmpi_symbol("PMPIX_Async_start");

	atomic_store(&wanted, true);
	if (start && !atomic_load(&polled))
		atomic_store(&polled, !start(poll, NULL, MPICH_STREAM_NULL));
	return atomic_load(&polled) ? MPICH_FROM : 0;
}

void oc_look_begin(void)
{
	size_t from;

	atomic_store(&in_vain, IN_VAIN);
	from = begin_opal();
	if (!from)
		from = begin_mpich();
	if (from && !oc_procvm_look(from))
		oc_look_end();
}

void oc_look_end(void)
{
	atomic_store(&wanted, false);
	if (no_turn)
		no_turn(look);
}
