/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_CHANGED_H
#define OC_HEAP_CHANGED_H

/*
 * What the program has done to memory of large blocks: protected, locked or bound it to nodes. With
 * the C library that ends when the block is freed, for the kernel unmaps it; here the pages are
 * the next block's. Programs that do nothing of the kind pay a look at a word for each large
 * block that they free. Any thread, no locks.
 */

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

#endif
