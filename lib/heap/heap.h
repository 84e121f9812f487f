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

#include "heap/arena.h"

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

/* So many processes with a heap, this one among them, share the machine's memory. */
void oc_heap_share(unsigned int processes);

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
size_t oc_heap_usable_size(const void *p); /* 0 if p is not a live block */

#endif
