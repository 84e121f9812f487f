/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_THP_H
#define OC_HEAP_THP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Huge pages under the arena. Failure is silent: they are never needed. Any
 * thread; errno may change.
 */

/* A file for the arena whose pages may be huge, or -errno: then a memfd is as good.
 * The descriptor is the caller's. Once, before oc_heap_thp_create(). */
int oc_heap_thp_file(const char *name, uint64_t bytes);

/* So much at the end of the arena is handed out to nobody: it may be filled, and is emptied again,
 * at any time. */
#define OC_HEAP_THP_TRIAL ((size_t)4 << 20)

/* Once, before the arena is used; @base is aligned to 2 MiB, as are the sizes of the arena and of
 * what is kept at its end. */
void oc_heap_thp_create(char *base, size_t size);
void oc_heap_thp_destroy(void);

/* True if private memory gets huge pages without asking. */
bool oc_heap_thp_is_default(void);

/* True if huge pages are asked for range by range: by this process, not by its peers. */
bool oc_heap_thp_asks(void);

/* How much memory, of which it is not known that the program uses all, may get huge
 * pages that the C library's blocks would not have had. */
void oc_heap_thp_allow(size_t bytes);

/* [p, p + bytes) was handed out and will be used, and the rest of the @unit it
 * is in will soon be, a multiple of 2 MiB. The memory is not touched. */
void oc_heap_thp_prepare(char *p, size_t bytes, size_t unit);

/* Looks what has become of the memory that was handed out before. Costs nothing when
 * there is nothing to see. */
void oc_heap_thp_settle(void);

/* The pages of [p, p + bytes), both multiples of 2 MiB, were given back. */
void oc_heap_thp_forget(char *p, size_t bytes);

#endif
