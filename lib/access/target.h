/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TARGET_H
#define OC_TARGET_H

/*
 * Memory of a rank as those see it who want to get at it: what its owner has said of it,
 * in the table of its regions or in the line of an operation. Mechanisms know nothing
 * else of either. Holds no reference: who filled it in keeps the memory from going away.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "access/window.h"

struct oc_target {
	uint32_t owner; /* rank in the node */
	uint32_t flags; /* OC_REGION_*: what its owner lets be done with it */
	bool heap;	/* all of it lies in the owner's arena */
	uint64_t bytes;
	const struct iovec *segs; /* addresses in the owner's process */
	size_t nsegs;
	const struct oc_window_use *window; /* of the owner's arena */
	uint64_t cookie;		    /* by which its owner's service stages it, or 0 */
	uint64_t kernel;		    /* the same as a kernel region: its cookie, or 0 */
};

#endif
