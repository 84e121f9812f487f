/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_PROMOTE_H
#define OC_HEAP_PROMOTE_H

/*
 * Memory that a program keeps is promoted to huge pages in time, where it had none at first
 * touch: whole ranges of 2 MiB of live blocks and static data, 15 of 16 of whose small pages are
 * there, so that memory hardly grows by it. Where huge pages are dear this pays for those only
 * that run for long, or that copy much. So all that it does takes at most a 64th of the time
 * since the process began, but for its first second (as khugepaged is bounded, and as in Ingens,
 * Kwon et al., OSDI 2016), and as long as copies so far may have lost by small pages: who pays for
 * a remedy when its lack has cost as much never pays twice what was needed (Karlin et al.,
 * Competitive snoopy caching, Algorithmica 1988). Either counts as far as what was promoted is
 * kept. The processes of a machine do it at the same time, for each may be waited for by all.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/* Once, before the arena is used; @base is aligned to 2 MiB, as is @size. Nothing is done where
 * private memory has no huge pages either, even if it asks. */
void oc_heap_promote_create(char *base, size_t size);
void oc_heap_promote_destroy(void);

/* The pages of [p, p + bytes) were given back: ranges it touches are tried anew. Any thread. */
void oc_heap_promote_forget(char *p, size_t bytes);

/* The program wants no huge pages, or some, in ranges that [p, p + bytes) touches. Needed for
 * static data, of which the program speaks by another address than the kernel is asked by. Any
 * thread. */
void oc_heap_promote_advise(char *p, size_t bytes, bool huge);

/* Promotes until it has taken @ns, or has been through all there is: ranges promoted. One thread at
 * a time: others get 0 at once. errno may change. */
size_t oc_heap_promote(uint64_t ns);

/* Half seconds, as of which the last look was. */
extern uint64_t oc_heap_promote_turn __attribute__((visibility("hidden")));
void oc_heap_promote_begin_turn(uint64_t turn);

/* Copied by calls of this process; those of threads at once may get lost. */
extern uint64_t oc_heap_promote_copied __attribute__((visibility("hidden")));

/* Once in a call of which there are many, that copies some bytes: promotes what the time and all
 * copies allow, if it is time, and says whether it is. Any thread of a process that has not forked
 * off; errno stays. */
static inline bool oc_heap_promote_look(size_t copied)
{
	uint64_t turn = oc_clock_turn();
	uint64_t all = __atomic_load_n(&oc_heap_promote_copied, __ATOMIC_RELAXED);

	__atomic_store_n(&oc_heap_promote_copied, all + copied, __ATOMIC_RELAXED);

	if (__builtin_expect(turn == __atomic_load_n(&oc_heap_promote_turn, __ATOMIC_RELAXED), 1))
		return false;
	oc_heap_promote_begin_turn(turn);
	return true;
}

#endif
