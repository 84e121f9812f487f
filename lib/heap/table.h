/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_TABLE_H
#define OC_HEAP_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/* @bytes of zeros for a table over the whole arena, which is as large as the memory: they cost
 * what is written of them, also where everything gets huge pages. NULL without address space.
 * munmap() gives them back. @inherited: a forked child has use for it (lib/heap/fork.c). */
void *oc_heap_table_map(size_t bytes, bool inherited);

#endif
