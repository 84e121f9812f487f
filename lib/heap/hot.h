/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_HOT_H
#define OC_HEAP_HOT_H

/*
 * Memory of the arena that collectives copy from or to again and again: it gets huge pages
 * even where these are dear (huge.h), which makes copies a quarter to a half faster. What
 * is used once or twice is left alone. Failure is silent. Any thread; errno may change.
 */

#include <stddef.h>

void oc_heap_hot_create(char *base, size_t size);
void oc_heap_hot_destroy(void);

/* [p, p + bytes) is used once more; may collapse what of it is used much. */
void oc_heap_hot_use(const char *p, size_t bytes);

/* The pages of [p, p + bytes), both multiples of 2 MiB, were given back. */
void oc_heap_hot_forget(const char *p, size_t bytes);

#endif
