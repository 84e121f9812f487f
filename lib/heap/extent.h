/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_EXTENT_H
#define OC_HEAP_EXTENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pages.h"

/*
 * Blocks of many MiB, in their own part of the arena. mimalloc is not made for
 * them: 2.x rounds each up to 32 MiB, 3.0 takes none above that from an arena,
 * neither grows one in place or gives its pages back. Any thread.
 */
#define OC_HEAP_EXTENT OC_HUGE_PAGE /* granule */

/* @base is in a shared mapping and aligned to the granule; freed memory is kept up
 * to @keep bytes, the rest returned to the system. Once. 0 or -ENOMEM. */
int oc_heap_extent_create(char *base, size_t size, size_t keep);
void oc_heap_extent_destroy(void);

/* First fit by address. @usable gets the block's length. NULL when full. */
void *oc_heap_extent_alloc(size_t bytes, size_t align, size_t *usable);

/* For a block that grows: far from the others, with room for it after it that they
 * take last. As above. */
void *oc_heap_extent_alloc_growing(size_t bytes, size_t *usable);

/* Zeroes what a new block inherited from freed ones. */
void oc_heap_extent_zero(void *p, size_t bytes);

/* Grows or shrinks in place; the new length, or 0 if that can not be. */
size_t oc_heap_extent_resize(void *p, size_t usable, size_t bytes);

/* @empty: all its pages were given back. */
void oc_heap_extent_free(void *p, size_t usable, bool empty);

/* Gives back pages of a block, multiples of the granule: true if they are. */
bool oc_heap_extent_empty(void *p, size_t bytes);

#endif
