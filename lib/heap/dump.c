// SPDX-License-Identifier: BSD-3-Clause
#include "heap/dump.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/pages.h"
#include "base/quiet.h"
#include "heap/table.h"

#define WORD_BITS 64

static struct {
	char *base;
	size_t table_bytes;
	uint64_t *dumped; /* bit a granule */
} dump;

void oc_heap_dump_create(char *base, size_t size)
{
	size_t granules = size / OC_HUGE_PAGE;
	size_t bytes = (granules + WORD_BITS - 1) / WORD_BITS * sizeof(*dump.dumped);
	void *table = oc_heap_table_map(bytes, false);

	oc_quiet_madvise(base, size, MADV_DONTDUMP);
	dump.dumped = NULL;
	if (!table)
		return;
	dump.base = base;
	dump.table_bytes = bytes;
	dump.dumped = table;
}

void oc_heap_dump_destroy(void)
{
	if (dump.dumped)
		munmap(dump.dumped, dump.table_bytes);
	dump.dumped = NULL;
}

/* Sets the bit of a granule, or clears it. True if that is news. */
static bool mark(size_t i, bool on)
{
	uint64_t bit = (uint64_t)1 << i % WORD_BITS;
	uint64_t *word = &dump.dumped[i / WORD_BITS];

	if (!!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit) == on)
		return false;
	if (on)
		return !(__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit);
	return __atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED) & bit;
}

/* One call for a run of granules that change. A refusal, of too many mappings, changes
 * what a core file holds and nothing else. */
static void advise(size_t first, size_t end, bool on)
{
	for (size_t i = first; i < end; i++) {
		size_t from = i;

		while (i < end && mark(i, on))
			i++;
		if (i > from)
			oc_quiet_madvise(dump.base + from * OC_HUGE_PAGE, (i - from) * OC_HUGE_PAGE,
					 on ? MADV_DODUMP : MADV_DONTDUMP);
	}
}

void oc_heap_dump_add(const char *p, size_t bytes)
{
	size_t off = (size_t)(p - dump.base);

	if (dump.dumped && bytes)
		advise(off / OC_HUGE_PAGE, (off + bytes - 1) / OC_HUGE_PAGE + 1, true);
}

void oc_heap_dump_drop(const char *p, size_t bytes)
{
	size_t off = (size_t)(p - dump.base);

	if (dump.dumped)
		advise(off / OC_HUGE_PAGE, (off + bytes) / OC_HUGE_PAGE, false);
}
