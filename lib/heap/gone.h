/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_GONE_H
#define OC_HEAP_GONE_H

#include <stddef.h>
#include <stdint.h>

#include "base/pages.h"
#include "heap/dump.h"
#include "heap/huge.h"
#include "heap/place.h"
#include "heap/promote.h"

/* The pages of [p, p + bytes), in the arena, went back to the system and are of no block: they are
 * placed anew; and whole units of 2 MiB, in which huge pages are asked for anew, are left out of
 * core files. Any thread, for memory that is its own; errno may change. */
static inline void oc_heap_gone(char *p, size_t bytes)
{
	const uintptr_t mask = ~(OC_HUGE_PAGE - 1);
	uintptr_t from = ((uintptr_t)p + ~mask) & mask, to = (uintptr_t)(p + bytes) & mask;

	oc_heap_place_forget(p, bytes);
	if (from < to) {
		oc_heap_thp_forget((char *)from, to - from);
		oc_heap_promote_forget((char *)from, to - from);
		oc_heap_dump_drop((char *)from, to - from);
	}
}

#endif
