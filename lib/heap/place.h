/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_PLACE_H
#define OC_HEAP_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Memory is on the NUMA node of who touches it first, and in huge pages as that process
 * asked. Peers that write a receive buffer must not be that: where plans have them do so,
 * its owner touches it before.
 */

/* Once, before the arena is used, after oc_heap_thp_create(). Nothing is done where there
 * is one node of memory, and huge pages are asked for by nobody. */
void oc_heap_place_create(char *base, size_t size);
void oc_heap_place_destroy(void);

/* The calling thread is the first to touch what of [p, p + bytes), in the arena, nobody
 * has touched; the content stays. What was placed once is remembered: then it is a look
 * at a bit a page. Any thread; errno may change. */
void oc_heap_place(char *p, size_t bytes);

/* Whether that would do nothing. Any thread. */
bool oc_heap_is_placed(const char *p, size_t bytes);

/* The pages of [p, p + bytes), whole ones, were given back. */
void oc_heap_place_forget(char *p, size_t bytes);

#endif
