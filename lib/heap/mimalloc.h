/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_MIMALLOC_H
#define OC_HEAP_MIMALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Arenas and blocks of every mimalloc served here are aligned to this. */
#define OC_MI_SEGMENT ((size_t)32 << 20)

/* A mimalloc heap: opaque, its own thread's unless oc_mi.heap_is_shared. */
struct oc_mi_heap;

/* What we use of libmimalloc, bound at run time. Valid after oc_mi_load(). */
struct oc_mi {
	void *(*malloc)(struct oc_mi_heap *heap, size_t bytes);
	void *(*zalloc)(struct oc_mi_heap *heap, size_t bytes);
	/* NULL where it cannot be relied upon (3.0, 3.1). */
	void *(*memalign)(struct oc_mi_heap *heap, size_t bytes, size_t align);
	void (*free)(void *p);
	size_t (*usable_size)(const void *p);
	bool heap_is_shared; /* one heap serves all threads (mimalloc >= 3.2) */
	size_t arena_max;    /* bytes oc_mi_manage() takes at most, a multiple of OC_MI_SEGMENT */
};
extern struct oc_mi oc_mi;

/* Loads libmimalloc next to, never instead of, the program's malloc. 0, or
 * -ENOENT with a static string in @why. One thread. */
int oc_mi_load(const char **why);

/* Hands [base, base + size) to mimalloc for good, as zeroed memory it may never
 * give back to the system. 0 or -ENOMEM. One thread, after oc_mi_load(). */
int oc_mi_manage(void *base, size_t size);

/* Aligned to @align, a power of two, within a block that begins *@before bytes, below @align,
 * earlier: that one is to be freed. NULL without memory. */
void *oc_mi_memalign(struct oc_mi_heap *heap, size_t bytes, size_t align, size_t *before);

/* A heap that allocates from that arena alone. NULL without memory. Deleted by
 * mimalloc when the thread ends; its live blocks pass to other heaps. */
struct oc_mi_heap *oc_mi_heap_create(void);

/* In a forked child, which has blocks of the arena and no records of them: the end of this thread
 * is nothing to mimalloc any more. */
void oc_mi_forget_thread(void);

#endif
