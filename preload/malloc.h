/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PRELOAD_MALLOC_H
#define OC_PRELOAD_MALLOC_H

#include <stdbool.h>

/*
 * Places the program's large blocks in the shared heap from now on. Called by
 * the constructor if the program is linked to an MPI, by MPI_Init's wrapper once
 * it is known that the rank is served, as the MPI may have come by dlopen. Idempotent, any thread.
 * Does nothing where the heap is refused: see oc_heap_reason().
 */
void oc_malloc_activate(void);

/*
 * Large blocks come from whoever would have served the program without us from now on,
 * for good: peers are not going to read them. Those in the heap stay valid. Any thread.
 */
void oc_malloc_retire(void);

/*
 * Why the program's blocks are not to be placed in the shared heap, before it is
 * asked whether there is one; NULL if they are. Static storage, any thread.
 */
const char *oc_malloc_declined(void);

/*
 * For who asks a library by its handle for @name and has found @found there: our function, if that
 * takes blocks of malloc() and is the C library's, which does not know ours; else @found. Not where
 * another allocator comes behind us, which may be asking for what it is to call itself.
 */
bool oc_malloc_takes_blocks(const char *name);
void *oc_malloc_instead(const char *name, void *found);

/* While not 0, this thread's blocks all come from the C library: an MPI's own
 * buffers are no use to peers. Nests. */
extern __thread unsigned int oc_malloc_bypass
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

#endif
