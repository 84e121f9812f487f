/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_SPACE_H
#define OC_SPACE_H

/*
 * How a process divides its addresses between its own arena and its peers'. The
 * arena is as large as the program could fill it. Of the peers' arenas so much is
 * mapped as keeps all of it below an eighth of what can be addressed, and below
 * 20 times the memory, however many ranks there are. Any thread.
 */

#include <stddef.h>
#include <stdint.h>

struct oc_space {
	size_t span;   /* what a process can address */
	size_t memory; /* of the machine */
	size_t limit;  /* RLIMIT_AS; SIZE_MAX: none */
};

/* Of this process. Zeroes where the system does not tell. */
void oc_space_measure(struct oc_space *space);

/* So many addresses are the library's from now on, whether it has something there already or may
 * have at any time, or are not any more. What the program limits itself to is beside them. */
void oc_space_take(size_t bytes);
void oc_space_give(size_t bytes);
size_t oc_space_taken(void);
/* Of what was taken no more than that: in a forked child, which inherits less. */
void oc_space_keep(size_t bytes);

/* What an arena wants: room in each of its two parts (heap/heap.c) for all the memory,
 * as far as there are addresses. */
size_t oc_space_arena(const struct oc_space *space);

/* What peers' arenas may take: lib/access/window.h. */
struct oc_space_windows {
	size_t total;	 /* bytes mapped at once */
	size_t chunk;	 /* windows begin and end at multiples: a power of two */
	size_t step;	 /* a multiple of that: what making one takes beside, at most */
	size_t resident; /* bytes touched through them before the oldest are dropped */
};

void oc_space_windows(const struct oc_space *space, uint32_t nranks, struct oc_space_windows *out);

#endif
