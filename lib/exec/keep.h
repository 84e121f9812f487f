/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_KEEP_H
#define OC_KEEP_H

/*
 * Memory of the arena that one operation needs for itself: scratch slots, send
 * slots staged for peers, parcels. Blocks go round among all operations of the
 * process, whatever their group: a process that runs one at a time has what one
 * needs, however many communicators there are. A few small ones are kept ready;
 * larger ones are the heap's as soon as they are given back, which keeps them
 * for the next block of any kind or returns them to the system.
 *
 * Any thread.
 */

#include <stddef.h>

/* All-zero: nothing taken. */
struct oc_keep {
	char *at;
	size_t bytes;
};

/* At least @bytes, contents undefined, aligned to a page, the caller's until
 * oc_keep_give(). What @keep already has, if that is enough; so the first call
 * must ask for the most. NULL when the arena is full. */
void *oc_keep_take(struct oc_keep *keep, size_t bytes);

/* oc_keep_give() of what there is. */
void oc_keep_put(struct oc_keep *keep);

/* Gives it back, if there is any: no peer reads or writes it any more. */
static inline void oc_keep_give(struct oc_keep *keep)
{
	if (__builtin_expect(keep->at != NULL, 0))
		oc_keep_put(keep);
}

#endif
