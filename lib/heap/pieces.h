/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_PIECES_H
#define OC_HEAP_PIECES_H

/*
 * What of the arena a forked child is to have: the file's pages under live blocks, in pieces with
 * little between them. For the child, in its fork handler, one thread.
 */

#include <stddef.h>

#include "heap/helper.h"

/* Mappings of a child, far from vm.max_map_count, and room to split two. */
#define OC_HEAP_PIECES (2048 + 2)

/* Finds them, and makes what is between them readable and writable where blocks are live. @copy has
 * room for OC_HEAP_PIECES, and count 0. @fd: the arena's file, or -1 where there is a view of it
 * (view.h). 0 or -errno. */
int oc_heap_pieces_find(struct oc_heap_copy *copy, int fd);

/* Maps them privately, and adds up their *@bytes. 0 or -errno. */
int oc_heap_pieces_map(const struct oc_heap_copy *copy, int fd, size_t *bytes);

#endif
