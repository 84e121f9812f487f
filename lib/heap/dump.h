/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_DUMP_H
#define OC_HEAP_DUMP_H

/*
 * What of the arena a core file holds: the ranges that blocks were placed in. The kernel
 * takes a file's pages for present: it fills holes of shared memory as it dumps them, so
 * an arena as large as the memory would fill the memory of a machine on which a rank has
 * just crashed, and then a disk.
 *
 * Any thread, for memory that is its own.
 */

#include <stddef.h>

/* Without memory for its table all of the arena is left out of core files. */
void oc_heap_dump_create(char *base, size_t size);
void oc_heap_dump_destroy(void);

/* The program is handed [p, p + bytes). Cheap where it was before. */
void oc_heap_dump_add(const char *p, size_t bytes);

/* Of what has gone back to the system, whole units of 2 MiB. */
void oc_heap_dump_drop(const char *p, size_t bytes);

#endif
