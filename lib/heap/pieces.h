/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_PIECES_H
#define OC_HEAP_PIECES_H

/*
 * What of the arena a forked child is to have: the pages of live blocks, in pieces that the file
 * has data for or has not. For the child, in its fork handler, one thread.
 */

#include <stddef.h>

#include "heap/helper.h"

/* Finds them for @copy, rising in the file, and makes them readable and writable. @fd: the arena's
 * file, or -1 where there is a view of it (view.h). They last as long as the process. 0 or -errno.
 */
int oc_heap_pieces_find(struct oc_heap_copy *copy, int fd);

/* Maps those with data privately, and adds up their *@bytes. What it has to copy instead is no
 * data any more. 0 or -errno. */
int oc_heap_pieces_map(struct oc_heap_copy *copy, int fd, size_t *bytes);

#endif
