/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PROCVM_COUNTS_H
#define OC_PROCVM_COUNTS_H

#include <stdint.h>

/* Where calls on ranks of the node, or parts of them, are counted: what was done, and its bytes,
 * each by index of OC_MECH_HEAP for copies and OC_MECH_CMA for the system's. All NULL: nowhere. */
struct oc_procvm_counts {
	uint64_t *calls;  /* [OC_MECH_COUNT] */
	uint64_t *bytes;  /* the same */
	uint64_t *helped; /* bytes that this process copied of calls of its peers */
};

#endif
