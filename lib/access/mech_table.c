// SPDX-License-Identifier: BSD-3-Clause
/* Who is asked, in this order. Nothing else: a build with other mechanisms has a table of its own.
 */
#include "access/mech.h"

const struct oc_mech *const oc_mech_table[OC_MECH_COUNT] = {
	&oc_mech_heap, &oc_mech_map, &oc_mech_kcopy, &oc_mech_cma, &oc_mech_staged,
};
