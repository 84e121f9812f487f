/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_STATIC_DATA_H
#define OC_STATIC_DATA_H

/*
 * Static data that the program's file does not fill (.bss: Fortran's COMMON blocks, SAVEd and
 * module arrays, C's static ones) as part of the arena. The pages stand where the linker put them,
 * and are those of a block of the arena: each byte has two addresses here, and peers reach it as
 * they do the heap. Of the program alone, never of a library, which could be unloaded.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/arena.h"

struct oc_heap_static {
	uintptr_t from;
	size_t bytes;  /* that peers reach; 0: it is not shared */
	size_t mapped; /* the same, or what was before oc_heap_static_look() */
	char *at;      /* where in the arena */
};
extern struct oc_heap_static oc_heap_static __attribute__((visibility("hidden")));

/* Shares it, if it is large, and the program has no other thread yet: from a constructor. The heap
 * has been made. Nothing is lost where that fails. */
void oc_heap_static_share(void);

/* Before peers are told of it: peers do not reach static data any more over which the program has
 * mapped other memory since (MAP_FIXED, SHM_REMAP). Such a child of fork() has not that memory, but
 * the static data as it was. */
void oc_heap_static_look(void);

/* Where the program sees byte @p of the arena. */
static inline char *oc_heap_seen(char *p)
{
	size_t off = (size_t)(p - oc_heap_static.at);

	return off < oc_heap_static.mapped ? (char *)oc_heap_static.from + off : p;
}

/* Where in the arena [p, p + len) lies: of blocks that is @p, of static data its other address.
 * NULL if it does not. */
static inline char *oc_heap_find(const void *p, size_t len)
{
	size_t off = (uintptr_t)p - oc_heap_static.from;

	if (oc_heap_contains(p, len))
		return (char *)(uintptr_t)p;
	return off < oc_heap_static.bytes && len <= oc_heap_static.bytes - off
		       ? oc_heap_static.at + off
		       : NULL;
}

/* Where in the arena byte @p is, of blocks or static data, whether peers reach it or not. */
static inline char *oc_heap_place_of(char *p)
{
	size_t off = (uintptr_t)p - oc_heap_static.from;

	return off < oc_heap_static.mapped ? oc_heap_static.at + off : p;
}

/* Whether [p, p + len) was made the arena's, of blocks or static data, whether peers reach it or
 * not.
 */
static inline bool oc_heap_has(const void *p, size_t len)
{
	size_t off = (uintptr_t)p - oc_heap_static.from;

	return oc_heap_contains(p, len) ||
	       (off < oc_heap_static.mapped && len <= oc_heap_static.mapped - off);
}

#endif
