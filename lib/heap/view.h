/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_VIEW_H
#define OC_HEAP_VIEW_H

/*
 * A second mapping of the arena, which fork hands on: it stands in for the
 * memfd's descriptor when the program has closed that. There is no getting the
 * descriptor back without privileges, and no private mapping without it, so a
 * child's copy is made at once. Only the forking thread, under the lock of
 * fork.c; nothing here allocates.
 */

#include <stdbool.h>
#include <stddef.h>

struct oc_heap_copy;

/* Once. More than @limit bytes are not copied. */
void oc_heap_view_create(char *base, size_t size, size_t limit);

/* In the parent, before fork: 0 or -errno. Until oc_heap_view_close(), to be
 * called on both sides; without a view it does nothing. */
int oc_heap_view_open(void);
void oc_heap_view_close(void);

/* The first byte of [at, end) that is in a page with or without data, or @end.
 * Offsets into the arena, multiples of a page. What cannot be told is data. */
size_t oc_heap_view_seek(size_t at, size_t end, bool data);

/* Fills the pieces that have data, where anonymous memory is by now. 0, or -EFBIG if
 * that were more than the limit. */
int oc_heap_view_copy(const struct oc_heap_copy *copy);

#endif
