/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_IDLE_H
#define OC_HEAP_IDLE_H

/*
 * Pages that freed blocks of mimalloc's have left with memory. mimalloc gives none back,
 * but keeps no more in a free block than a link at its beginning. So the rest of a block
 * can go back just before it is freed; and does where what is idle already is much.
 * Less is kept: the next blocks take no page faults. Any thread, no locks.
 */

#include <stdbool.h>
#include <stddef.h>

/* Once; @keep bytes at most are idle. 0 or -ENOMEM. */
int oc_heap_idle_create(char *base, size_t size, size_t keep);
void oc_heap_idle_destroy(void);

/* The block [p, p + bytes) was handed out. */
void oc_heap_idle_take(char *p, size_t bytes);
/* It is about to be freed: its pages are idle, or given back. */
void oc_heap_idle_leave(char *p, size_t bytes);

#endif
