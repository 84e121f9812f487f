/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_HELD_H
#define OC_HEAP_HELD_H

/*
 * Whether a child that fork() waits for is held: stopped, by a signal or by a tracer, so that it
 * may never come to what it is waited for. To tell that from what a tracer does in passing, it is
 * looked at again and again.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OC_HEAP_HELD_MS 20 /* from one look to the next */

/* All zero before the first look. */
struct oc_heap_held {
	pid_t pid;	   /* 0: not known yet */
	int stopped;	   /* looks in a row that found it stopped, */
	int still;	   /* and that found it traced, and as it was before */
	uint64_t switches; /* of contexts, its, until the last look */
};

/* One more look at the calling thread's newest child. The child may have written its PID to the
 * pipe that @turn reads. Preserves errno; no cancellation point. */
bool oc_heap_held(struct oc_heap_held *held, int turn);

#endif
