/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_ISA_H
#define OC_ISA_H

/*
 * Instruction sets: the arithmetic kernels exist once for each, and the best
 * one that this machine can run is chosen at the first use. All of them give
 * the same bytes.
 */

#include <stdbool.h>

#include "bytes/calc_table.h"

struct oc_isa {
	const char *name;
	bool (*usable)(void);
	const struct oc_calc_table *calc;
};

/* Every set this build has, best first, NULL at the end. The last one is
 * always usable. */
extern const struct oc_isa *const oc_isas[];

/* The chosen one. Any thread; never NULL. */
const struct oc_isa *oc_isa(void);

/* For tests: @isa from now on, NULL for the best again. -ENOTSUP when this
 * machine cannot run it. Not while another thread calculates. */
int oc_isa_select(const struct oc_isa *isa);

#endif
