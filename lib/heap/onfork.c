// SPDX-License-Identifier: BSD-3-Clause
#include "heap/onfork.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/quiet.h"
#include "heap/bits.h"
#include "heap/span.h"
#include "heap/static_data.h"
#include "heap/table.h"

enum { ABSENT, EMPTY, KINDS };

/* Inherited by children: theirs is to be told, too. */
static struct {
	char *base;
	size_t table_bytes;
	uint64_t *pages[KINDS]; /* a bit a page */
	size_t words;		/* of each; no bit was ever set from here on */
} onfork;

int oc_heap_onfork_create(char *base, size_t size)
{
	size_t words = oc_heap_words(size / OC_HEAP_PAGE);
	size_t bytes = KINDS * words * sizeof(uint64_t);
	uint64_t *table = oc_heap_table_map(bytes, true);

	if (!table)
		return -ENOMEM;
	onfork.base = base;
	onfork.table_bytes = bytes;
	for (int kind = 0; kind < KINDS; kind++)
		onfork.pages[kind] = table + (size_t)kind * words;
	onfork.words = 0;
	return 0;
}

void oc_heap_onfork_destroy(void)
{
	munmap(onfork.pages[0], onfork.table_bytes);
}

bool oc_heap_onfork_is(int advice)
{
	return advice == MADV_DONTFORK || advice == MADV_DOFORK || advice == MADV_WIPEONFORK ||
	       advice == MADV_KEEPONFORK;
}

/* Sets or clears pages [first, last). */
static void mark(int kind, size_t first, size_t last, bool set)
{
	size_t words = __atomic_load_n(&onfork.words, __ATOMIC_RELAXED);
	size_t end = oc_heap_words(last);

	if (!set && end > words)
		end = words;
	for (size_t i = first / OC_HEAP_BITS; i < end; i++) {
		uint64_t bits = oc_heap_bits(i, first, last);

		if (set)
			__atomic_fetch_or(&onfork.pages[kind][i], bits, __ATOMIC_RELAXED);
		else if (__atomic_load_n(&onfork.pages[kind][i], __ATOMIC_RELAXED) & bits)
			__atomic_fetch_and(&onfork.pages[kind][i], ~bits, __ATOMIC_RELAXED);
	}
	while (set && words < end &&
	       !__atomic_compare_exchange_n(&onfork.words, &words, end, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

void oc_heap_onfork_advise(char *p, size_t bytes, int advice)
{
	size_t first = (size_t)(p - onfork.base) / OC_HEAP_PAGE;
	bool of_absent = advice == MADV_DONTFORK || advice == MADV_DOFORK;

	mark(of_absent ? ABSENT : EMPTY, first, first + bytes / OC_HEAP_PAGE,
	     advice == MADV_DONTFORK || advice == MADV_WIPEONFORK);
}

void oc_heap_onfork_forget(char *p, size_t bytes)
{
	size_t at = (size_t)(p - onfork.base);
	size_t first = (at + OC_HEAP_PAGE - 1) / OC_HEAP_PAGE;
	size_t last = (at + bytes) / OC_HEAP_PAGE;

	if (!__atomic_load_n(&onfork.words, __ATOMIC_RELAXED) || first >= last)
		return;
	for (int kind = 0; kind < KINDS; kind++)
		mark(kind, first, last, false);
}

static int kind_of(size_t page)
{
	for (int kind = 0; kind < KINDS; kind++)
		if (onfork.pages[kind][page / OC_HEAP_BITS] >> page % OC_HEAP_BITS & 1)
			return kind;
	return KINDS;
}

bool oc_heap_onfork_lacks(const char *p)
{
	size_t page = (size_t)(p - onfork.base) / OC_HEAP_PAGE;

	return page < onfork.words * OC_HEAP_BITS && kind_of(page) == ABSENT;
}

/* Pages [first, last), which are all seen as one piece. */
static bool take_away(size_t first, size_t last, int kind)
{
	return oc_quiet_mmap(oc_heap_seen(onfork.base + first * OC_HEAP_PAGE),
			     (last - first) * OC_HEAP_PAGE,
			     kind == EMPTY ? PROT_READ | PROT_WRITE : PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			     0) != MAP_FAILED;
}

int oc_heap_onfork_apply(void)
{
	size_t pages = onfork.words * OC_HEAP_BITS;
	size_t page = 0;

	while (page < pages) {
		size_t first = page;
		int kind = kind_of(first);

		if (page % OC_HEAP_BITS == 0 && !(onfork.pages[ABSENT][page / OC_HEAP_BITS] |
						  onfork.pages[EMPTY][page / OC_HEAP_BITS])) {
			page += OC_HEAP_BITS;
			continue;
		}
		do
			page++;
		while (page < pages && kind_of(page) == kind);
		if (kind != KINDS && !take_away(first, page, kind))
			return -errno;
	}
	return 0;
}
