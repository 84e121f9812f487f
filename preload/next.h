/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PRELOAD_NEXT_H
#define OC_PRELOAD_NEXT_H

#include <stddef.h>

/*
 * Who would serve the program without us: the C library, or an allocator that the
 * program brings (jemalloc, say). Each function is that one's own, for it may have made
 * blocks without malloc(), as its operator new does, and knows no others'. What it lacks
 * is made of what it has, or is whose it would have been without us. Callable at any
 * time.
 */
struct oc_next {
	void *(*malloc)(size_t bytes);
	void *(*calloc)(size_t n, size_t bytes);
	void *(*realloc)(void *p, size_t bytes);
	void (*free)(void *p);
	void *(*memalign)(size_t align, size_t bytes);
	void *(*aligned_alloc)(size_t align, size_t bytes);
	int (*posix_memalign)(void **out, size_t align, size_t bytes);
	void *(*valloc)(size_t bytes);
	void *(*pvalloc)(size_t bytes);
	size_t (*usable_size)(void *p); /* 0 for all blocks where it has none */
};
extern struct oc_next oc_next __attribute__((visibility("hidden")));

/* Finds them; else the first call of one does. */
void oc_next_resolve(void);

/* The C library's own, by a name that nobody else has. */
void __libc_free(void *p);

/* What the program or library that has @symbol begins with in memory, or NULL: not to be looked at,
 * but compared. */
const void *oc_next_module_of(const void *symbol);

#endif
