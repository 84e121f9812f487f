/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_THP_H
#define OC_HEAP_THP_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Huge pages under the arena. Failure is silent: they are never needed. Any
 * thread, no locks; errno may change.
 */

/* Once, before the arena is used. @limit: bytes that may be made huge ahead of
 * the program's first touch. */
void oc_heap_thp_create(char *base, size_t size, size_t limit);
void oc_heap_thp_destroy(void);

/* True if private memory gets huge pages without asking. */
bool oc_heap_thp_is_default(void);

/* A block was handed out: backs the 2 MiB ranges of [p, p + bytes) nobody had yet. */
void oc_heap_thp_prepare(char *p, size_t bytes);

/* The pages of [p, p + bytes), both multiples of 2 MiB, were given back. */
void oc_heap_thp_forget(char *p, size_t bytes);

#endif
