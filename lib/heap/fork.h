/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_FORK_H
#define OC_HEAP_FORK_H

/* Registers the fork handlers. They must be the program's first: call it from
 * a constructor. Idempotent; oc_heap_init() calls it too. */
void oc_heap_fork_register(void);

#endif
