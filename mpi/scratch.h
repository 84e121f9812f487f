/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_SCRATCH_H
#define OC_MPI_SCRATCH_H

/* Memory for a copy of what a call moves: in the shared heap, where peers reach it by a pointer, or
 * where that is full or off, like any other. */

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "heap/heap.h"

/* All zero: none. */
struct oc_scratch {
	char *at;
	bool heap;
};

/* False without memory. */
static inline bool oc_scratch_alloc(struct oc_scratch *scratch, size_t bytes)
{
	scratch->at = oc_heap_alloc(bytes);
	scratch->heap = scratch->at != NULL;
	if (!scratch->at)
		scratch->at = malloc(bytes);
	return scratch->at != NULL;
}

static inline void oc_scratch_free(struct oc_scratch *scratch)
{
	if (scratch->heap)
		oc_heap_free(scratch->at);
	else
		free(scratch->at);
}

#endif
