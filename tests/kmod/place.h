/* SPDX-License-Identifier: BSD-3-Clause */
/* Where an owner tells its peers, in memory they share, of a region that comes and goes. */
#ifndef PLACE_H
#define PLACE_H

#include <stdbool.h>
#include <stdint.h>

/* The sequence is odd while it changes. */
struct place {
	volatile uint64_t sequence, cookie, seed;
};

/* Cookie 0: nothing is there. */
static inline void place_publish(struct place *place, uint64_t cookie, uint64_t seed)
{
	__atomic_add_fetch(&place->sequence, 1, __ATOMIC_SEQ_CST);
	place->cookie = cookie;
	place->seed = seed;
	__atomic_add_fetch(&place->sequence, 1, __ATOMIC_SEQ_CST);
}

/* False: nothing, or it changes just now. */
static inline bool place_look(const struct place *place, uint64_t *cookie, uint64_t *seed)
{
	uint64_t sequence = __atomic_load_n(&place->sequence, __ATOMIC_SEQ_CST);

	*cookie = place->cookie;
	*seed = place->seed;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return *cookie && !(sequence & 1) && sequence == place->sequence;
}

#endif
