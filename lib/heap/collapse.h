/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_COLLAPSE_H
#define OC_HEAP_COLLAPSE_H

/*
 * Small pages of a range made one huge page (MADV_COLLAPSE), and what huge pages cost. A
 * range is 2 MiB of the arena, aligned. Any thread; errno may change.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OC_HEAP_HUGE ((size_t)2 << 20)

/* How many small pages of the range are there. Memory is mostly filled from one end to the
 * other: unless it is @sparse, a range without its last page counts as empty. */
size_t oc_heap_resident(char *range, bool sparse);

/* False if huge pages proved dear. Other refusals, as of a page that is in use now, and
 * by kernels that cannot collapse at all, say nothing of that. */
bool oc_heap_collapse(char *range);

/* Whether so many huge pages took long, since oc_clock_thread_ns() was @since. */
bool oc_heap_huge_was_slow(uint64_t since, size_t ranges);

#endif
