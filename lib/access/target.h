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
	uint32_t mech;	/* OC_MECH_* that may be asked */
	uint32_t flags; /* OC_REGION_*: what its owner lets be done with it */
	bool kept;	/* it stays as it is, or its owner knows, for as long as the target is used:
			 * pointers to it need no second look */
	bool heap;	/* all of it lies in the owner's arena */
	uint64_t bytes;
	const struct iovec *segs; /* addresses in the owner's process */
	size_t nsegs;
	const struct oc_window_use *window; /* of the owner's arena */
	uint64_t cookie;		    /* by which its owner's service stages it, or 0 */
	uint64_t kernel;		    /* a kernel region around it: its cookie, or 0 */
	uint64_t kernel_bytes;		    /* of that, where it is more than the target */
	uint64_t kernel_offset;		    /* of the target in that */
};

#endif
