// SPDX-License-Identifier: BSD-3-Clause
#include "heap/collapse.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/quiet.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define HUGE_PAGES (OC_HEAP_HUGE / 4096)
#define SLOW_NS	   1000000 /* a range; 512 small pages take about as long, a huge one a fifth */

size_t oc_heap_resident(char *range, bool sparse)
{
	unsigned char pages[HUGE_PAGES];
	size_t n = 0;

	if (!sparse && (mincore(range + OC_HEAP_HUGE - 4096, 1, pages) || !(pages[0] & 1)))
		return 0;
	if (mincore(range, OC_HEAP_HUGE, pages))
		return 0;
	for (size_t k = 0; k < HUGE_PAGES; k++)
		n += pages[k] & 1;
	return n;
}

bool oc_heap_huge_was_slow(uint64_t since, size_t ranges)
{
	return oc_env()->thp != OC_ENV_THP_ALWAYS &&
	       oc_clock_thread_ns() - since > ranges * SLOW_NS;
}

bool oc_heap_collapse(char *range)
{
	uint64_t start = oc_clock_thread_ns();

	if (oc_quiet_madvise(range, OC_HEAP_HUGE, MADV_COLLAPSE))
		return errno != ENOMEM || oc_env()->thp == OC_ENV_THP_ALWAYS;
	/* The copy takes as long as a huge page. */
	return !oc_heap_huge_was_slow(start, 2);
}
