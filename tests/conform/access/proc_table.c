// SPDX-License-Identifier: BSD-3-Clause
/* lib/access/mech_table.c with a line more. */
#include "access/mech.h"

extern const struct oc_mech oc_mech_proc;

const struct oc_mech *const oc_mech_table[OC_MECH_COUNT] = {
	&oc_mech_heap, &oc_mech_map, &oc_mech_kcopy, &oc_mech_proc, &oc_mech_cma, &oc_mech_staged,
};
