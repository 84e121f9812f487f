/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_FORK_H
#define OC_HEAP_FORK_H

/* In a forked child, once its copy of the arena stands: from now on the heap
 * hands out nothing and frees without the allocator. Closes the memfd, unless the
 * program has. */
void oc_heap_become_copy(void);

#endif
