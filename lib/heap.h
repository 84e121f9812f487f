/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_H
#define OC_HEAP_H

/*
 * The shared heap: one memfd arena a process, mapped MAP_SHARED at a fixed
 * range for the life of the process, managed by mimalloc. Peers map it, or
 * windows of it, so an offset into it names memory for good.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Hot: read by every free() of the program. Written once, by oc_heap_init(),
 * base before size, while other threads may read. */
struct oc_heap_range {
	uintptr_t base;
	size_t size; /* 0: no arena */
};
extern struct oc_heap_range oc_heap_range __attribute__((visibility("hidden")));

/* True if all of [p, p + len) lies in this process's arena. */
static inline bool oc_heap_contains(const void *p, size_t len)
{
	size_t size = __atomic_load_n(&oc_heap_range.size, __ATOMIC_ACQUIRE);
	size_t off = (uintptr_t)p - __atomic_load_n(&oc_heap_range.base, __ATOMIC_RELAXED);

	return off < size && len <= size - off;
}

/*
 * Makes the arena. Idempotent and thread-safe. 0, or -errno with the reason in
 * oc_heap_reason(): -EPERM forbidden by ONECOPY=off, -ENOENT no usable
 * libmimalloc, -ENOMEM address space (RLIMIT_AS), strict overcommit or memory
 * refused, -EFBIG RLIMIT_FSIZE, -ENOSYS no memfd_create. After a failure every
 * other call here returns NULL / does nothing.
 */
int oc_heap_init(void);
/* Why not, or why no peer can have it; "" when usable. Static storage. */
const char *oc_heap_reason(void);

/* The arena's memfd, owned by the heap. -1 without an arena; in a forked child,
 * whose copy of the heap is its own and nobody's peer; and when the program has
 * closed it. Then the heap goes on, but no new peer can map it. */
int oc_heap_fd(void);

/* So many processes with a heap, this one among them, share the machine's memory. */
void oc_heap_share(unsigned int processes);

/* Registers the fork handlers. They must be the program's first: call it from
 * a constructor. Idempotent; oc_heap_init() calls it too. */
void oc_heap_fork_register(void);

/*
 * Any thread; memory may be freed by any thread. NULL when full, in a thread
 * that is past its thread-specific destructors and in a forked child: callers
 * fall back to the C library. errno is never touched.
 */
void *oc_heap_alloc(size_t bytes);
void *oc_heap_calloc(size_t bytes);		    /* zeroed */
void *oc_heap_memalign(size_t align, size_t bytes); /* align: a power of two */

/* Like realloc() for p from this heap, not NULL. On NULL p is as it was. Grows
 * geometrically: the slack is address space, not memory. */
void *oc_heap_realloc(void *p, size_t bytes);
void oc_heap_free(void *p); /* p from this heap, not NULL; aborts if it is not live */
/* The advice that does to whole pages of the heap what MADV_DONTNEED does to private
 * memory: they become zero and take none. A forked child's heap is private. */
int oc_heap_discard_advice(void);
size_t oc_heap_usable_size(const void *p); /* 0 if p is not a live block */

#endif
