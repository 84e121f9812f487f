// SPDX-License-Identifier: BSD-3-Clause
/*
 * Open MPI's progress engine (opal/runtime/opal_progress.h) calls a function in each of its turns,
 * or in one of eight ("low priority"), and moves one that is registered again. Each call costs a
 * short message its time, so every turn is looked in only as long as something was found lately.
 * What a function returns is the number of events it has seen.
 */
#include "look.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../procvm/procvm.h"
#include "base/env.h"
#include "pmpi.h"

/* Looks in vain, of 20 to 100 ns each: longer than the longest message takes. */
#define IN_VAIN (UINT32_C(1) << 16)

typedef int progress_register(int (*callback)(void));

static progress_register *each_turn, *some_turns, *no_turn;
static _Atomic uint32_t in_vain; /* since something was found; from IN_VAIN on, in some turns */

static int look(void)
{
	uint32_t looks = atomic_load_explicit(&in_vain, memory_order_relaxed);

	if (oc_procvm_help()) {
		if (atomic_exchange(&in_vain, 0) >= IN_VAIN)
			each_turn(look);
		return 1;
	}
	if (looks < IN_VAIN) {
		atomic_store_explicit(&in_vain, looks + 1, memory_order_relaxed);
		if (looks + 1 == IN_VAIN)
			some_turns(look);
	}
	return 0;
}

void oc_look_begin(void)
{
	each_turn = oc_pmpi_symbol("opal_progress_register");
	some_turns = oc_pmpi_symbol("opal_progress_register_lp");
	no_turn = oc_pmpi_symbol("opal_progress_unregister");
	if (!each_turn || !some_turns || !no_turn)
		return;
	atomic_store(&in_vain, IN_VAIN);
	if (some_turns(look))
		oc_note("the MPI refuses to call onecopy while it waits");
	else if (!oc_procvm_look())
		oc_look_end();
}

void oc_look_end(void)
{
	if (no_turn)
		no_turn(look);
}
