/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_SPAN_H
#define OC_HEAP_SPAN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Which blocks of the arena are live and how long each is, kept outside the
 * arena: fork copies live blocks only, free() knows a wild pointer, and a
 * forked child frees without asking mimalloc. Blocks are at least a page long,
 * so at most one starts in any page. All calls: any thread, no locks.
 */
#define OC_HEAP_PAGE ((size_t)4096)

/* Once, before anything else. 0 or -ENOMEM. */
int oc_heap_span_create(char *base, size_t size);
void oc_heap_span_destroy(void);

void oc_heap_span_add(const void *p, size_t usable);

/* Of a block that is aligned within one of mimalloc's, which begins @before bytes earlier: a
 * multiple of 16 below OC_HEAP_SPAN_BEFORE. */
#define OC_HEAP_SPAN_BEFORE ((size_t)512 << 10)
void oc_heap_span_add_after(const void *p, size_t usable, size_t before);

/* Usable bytes of the block that starts at @p, 0 if none does. */
size_t oc_heap_span_usable(const void *p);

/* The same, and forgets it; of racing calls one gets the size, the others 0. What was before it is
 * in *@before. */
size_t oc_heap_span_remove(const void *p, size_t *before);

/* The program relies on it that what it has not written of the block at @p is zeros: calloc. Until
 * the block is removed. */
void oc_heap_span_keep_zeros(const void *p);
bool oc_heap_span_keeps_zeros(const void *p);
/* It does so in blocks of any kind from now on: it has emptied parts of some. */
void oc_heap_span_keep_all_zeros(void);

/* @zeros: oc_heap_span_keep_zeros() was said of it. */
typedef bool oc_heap_span_found(char *run, size_t bytes, bool zeros, void *arg);

/* Calls @found for runs of whole pages, rising, disjoint, that cover every live
 * block; as long as there are. Stops when it returns false. */
void oc_heap_span_walk(oc_heap_span_found *found, void *arg);

#endif
