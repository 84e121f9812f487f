/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_CHANGED_H
#define OC_HEAP_CHANGED_H

/*
 * What a program does to memory of blocks that stay. That it has protected, locked or bound to
 * nodes what is in large ones ends with the C library when such a block is freed, for the kernel
 * unmaps it; here the pages are the next block's. Programs that do nothing of the kind pay a look
 * at a word for each large block that they free. And what it has thrown away. Any thread, no locks.
 */

#include <stdbool.h>
#include <stddef.h>

enum oc_heap_change {
	OC_HEAP_PROTECTED = 1, /* other than for reading and writing */
	OC_HEAP_KEYED = 2,     /* with a protection key */
	OC_HEAP_LOCKED = 4,
	OC_HEAP_BOUND = 8,
};

/* Once. Without memory for its table nothing is remembered. */
void oc_heap_changed_create(char *base, size_t size);
void oc_heap_changed_destroy(void);

/* The program is about to do that to [p, p + bytes), in the arena or not. */
void oc_heap_change(const void *p, size_t bytes, enum oc_heap_change how);

/* The large block [p, p + bytes) is freed, or that part of it: multiples of 2 MiB. errno may
 * change. */
void oc_heap_restore(char *p, size_t bytes);

/*
 * Does to [p, p + bytes) of the arena, or of static data, which is at @at in the arena, what
 * madvise() with MADV_DONTNEED or, if @locked, MADV_DONTNEED_LOCKED does to private memory: whole
 * pages become zero and take none, however they are protected. Of what the program has mapped over
 * it, a file keeps its content. Returns what madvise() does, with its errno. Any thread.
 */
int oc_heap_discard(char *p, char *at, size_t bytes, bool locked);

#endif
