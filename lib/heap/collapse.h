/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_COLLAPSE_H
#define OC_HEAP_COLLAPSE_H

/*
 * Small pages of a range made one huge page. A range is 2 MiB of the arena, aligned. Any thread;
 * errno may change.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/pages.h"
#include "base/quiet.h"

#define OC_HEAP_HUGE_PAGES (OC_HUGE_PAGE / 4096) /* small ones in it, */

/* and so many make it worth while: the padding of arrays may never be touched. */
#define OC_HEAP_DENSE_PAGES (OC_HEAP_HUGE_PAGES - OC_HEAP_HUGE_PAGES / 16)

/* Of the last @count, at most all. */
static inline size_t oc_heap_count_resident(char *range, size_t count)
{
	unsigned char pages[OC_HEAP_HUGE_PAGES];
	size_t n = 0;

	if (mincore(range + OC_HUGE_PAGE - count * 4096, count * 4096, pages))
		return 0;
	for (size_t k = 0; k < count; k++)
		n += pages[k] & 1;
	return n;
}

/* How many small pages of the range are there. Memory is mostly filled from one end to the
 * other: unless it is @sparse, a range without its last pages counts as empty. */
static inline size_t oc_heap_resident(char *range, bool sparse)
{
	if (!sparse && !oc_heap_count_resident(range, 8))
		return 0;
	return oc_heap_count_resident(range, OC_HEAP_HUGE_PAGES);
}

/* 0 or -errno: -ENOMEM without a huge page; others say nothing of that, as of a page that is in use
 * now, and of kernels that cannot collapse at all. */
static inline int oc_heap_collapse(char *range)
{
	return oc_quiet_madvise(range, OC_HUGE_PAGE, MADV_COLLAPSE) ? -errno : 0;
}

#endif
