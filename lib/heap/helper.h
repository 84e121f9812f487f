/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_HELPER_H
#define OC_HEAP_HELPER_H

/* The thread that gives a forked child its own pages: fork.c says why. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct oc_heap_piece {
	char *at; /* where the program sees it */
	size_t bytes;
	size_t off; /* in the file */
	bool data;  /* a private mapping of the file, to be made the child's own */
	bool zeros; /* a hole of the file, and the program relies on that */
};

struct oc_heap_mapping {
	char *base;
	size_t size;
};

#define OC_HEAP_MAPPINGS 2 /* the arena; static data */

struct oc_heap_copy {
	struct oc_heap_piece *pieces;
	size_t count;
	/* All that was mapped, MADV_DONTFORK until settled. */
	struct oc_heap_mapping mapping[OC_HEAP_MAPPINGS];
	int turn;	     /* write end of the parent's pipe */
	pid_t parent;	     /* who forks, as it knows itself */
	atomic_bool settled; /* all data is the child's own */
};

/*
 * Starts a thread that waits about a millisecond and settles @copy, which must
 * last as long as the process. It has a descriptor table of its own, in which
 * only @copy->turn stays open: whatever the program closes, the parent waits
 * until the thread ends, and exec or death of the process ends it. Once a
 * process. 0 or -errno: -ENOSYS where there is none for this machine.
 */
int oc_heap_helper_start(struct oc_heap_copy *copy);

/*
 * Returns once it is gone for the kernel, too: before calls that need a process of one thread, or
 * mean all its threads (preload/single.c). Leaves errno alone, and makes no system call where there
 * is none any more: some may be forbidden by then. Any thread, also in a child of vfork.
 */
void oc_heap_helper_wait(void);

/* In a child of fork: what is known of one is the parent's. */
void oc_heap_helper_forget(void);

#endif
