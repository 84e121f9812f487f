/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_ONFORK_H
#define OC_HEAP_ONFORK_H

/*
 * Which pages of the arena a forked child is to miss, or to find empty: what the program
 * has said by MADV_DONTFORK and MADV_WIPEONFORK. The kernel is not told. It must keep
 * all of the arena from children, where a shared mapping would let them write into their
 * parent (fork.c), and it wipes private memory alone. Any thread, no locks.
 */

#include <stdbool.h>
#include <stddef.h>

/* Once. 0 or -ENOMEM. */
int oc_heap_onfork_create(char *base, size_t size);
void oc_heap_onfork_destroy(void);

/* MADV_DONTFORK, MADV_DOFORK, MADV_WIPEONFORK and MADV_KEEPONFORK. */
bool oc_heap_onfork_is(int advice);
/* One of these for whole pages of the arena. */
void oc_heap_onfork_advise(char *p, size_t bytes, int advice);
/* The block [p, p + bytes) is freed: nothing is said of the next one there. */
void oc_heap_onfork_forget(char *p, size_t bytes);

/* In a child, in the midst of fork(): takes those pages away. 0 or -errno. */
int oc_heap_onfork_apply(void);
/* Whether that took @p's page away. */
bool oc_heap_onfork_lacks(const char *p);

#endif
