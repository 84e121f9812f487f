// SPDX-License-Identifier: BSD-3-Clause
/* Machines without kernels of their own: what the compiler makes of the plain ones. */
#include "bytes/isa.h"

static bool always(void)
{
	return true;
}

static const struct oc_isa any = {
	.name = "generic",
	.usable = always,
	.calc = &oc_calc_baseline,
};

const struct oc_isa *const oc_isas[] = {&any, NULL};
