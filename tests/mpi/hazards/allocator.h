/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_ALLOCATOR_H
#define OC_TEST_ALLOCATOR_H

#include <stddef.h>

/* A block that free() takes, as C++'s operator new makes them in some allocators. */
void *allocator_new(size_t bytes);

#ifdef ALLOCATOR_REFUSES
/* Refuses the next block that this thread wants. */
void allocator_refuse_next(void);
#endif

#ifdef ALLOCATOR_DALLOCX
/* From aligned_alloc(), as jemalloc's operator new with an alignment makes them. */
void *allocator_new_aligned(size_t align, size_t bytes);
/* A name of jemalloc's: frees any block, and not by free(). */
void dallocx(void *p, int flags);
#endif

#endif
