// SPDX-License-Identifier: BSD-3-Clause
#include "heap/place.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/file.h"
#include "base/pages.h"
#include "base/quiet.h"
#include "heap/bits.h"
#include "heap/huge.h"
#include "heap/span.h"
#include "heap/table.h"

static struct {
	char *base;
	size_t words;
	uint64_t *placed; /* bit a page; NULL: nothing to do */
	bool populates;	  /* the kernel does, if asked; else each page is touched */
} place;

/* As in "0-1" or "0,8", and not "0". */
static bool has_nodes(void)
{
	char text[256];

	oc_file_read_text("/sys/devices/system/node/has_memory", text, sizeof(text));
	return strpbrk(text, ",-") != NULL;
}

void oc_heap_place_create(char *base, size_t size)
{
	size_t words = oc_heap_words(size / OC_HEAP_PAGE);
	void *table;

	if (!has_nodes() && !oc_heap_thp_asks())
		return;
	table = oc_heap_table_map(words * sizeof(*place.placed), true);
	if (!table)
		return;
	place.base = base;
	place.words = words;
	place.placed = table;
	/* Of memory that cannot be written it says the same as a kernel that has no such advice. */
	place.populates = !oc_quiet_madvise(table, OC_HEAP_PAGE, MADV_POPULATE_WRITE);
}

void oc_heap_place_destroy(void)
{
	if (place.placed)
		munmap(place.placed, place.words * sizeof(*place.placed));
	place.placed = NULL;
}

static bool are_placed(size_t first, size_t end)
{
	for (size_t i = first / OC_HEAP_BITS; i < oc_heap_words(end); i++) {
		uint64_t bits = oc_heap_bits(i, first, end);

		if ((__atomic_load_n(&place.placed[i], __ATOMIC_RELAXED) & bits) != bits)
			return false;
	}
	return true;
}

/* Touches without changing: peers may be writing next to it. */
static void touch(char *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += OC_HEAP_PAGE)
		__atomic_fetch_or(p + i, 0, __ATOMIC_RELAXED);
}

static size_t first_page(const char *p)
{
	return (size_t)(p - place.base) / OC_HEAP_PAGE;
}

static size_t end_page(const char *p, size_t bytes)
{
	return first_page(p + bytes - 1) + 1;
}

bool oc_heap_is_placed(const char *p, size_t bytes)
{
	return !place.placed || !bytes || are_placed(first_page(p), end_page(p, bytes));
}

void oc_heap_place(char *p, size_t bytes)
{
	size_t first, end;
	char *at;

	if (oc_heap_is_placed(p, bytes))
		return;
	first = first_page(p);
	end = end_page(p, bytes);
	at = place.base + first * OC_HEAP_PAGE;
	if (place.populates)
		oc_quiet_madvise(at, (end - first) * OC_HEAP_PAGE, MADV_POPULATE_WRITE);
	else
		touch(at, (end - first) * OC_HEAP_PAGE);
	for (size_t i = first / OC_HEAP_BITS; i < oc_heap_words(end); i++)
		__atomic_fetch_or(&place.placed[i], oc_heap_bits(i, first, end), __ATOMIC_RELAXED);
}

void oc_heap_place_forget(char *p, size_t bytes)
{
	size_t first = first_page(p);
	size_t end = first + bytes / OC_HEAP_PAGE;

	if (!place.placed)
		return;
	for (size_t i = first / OC_HEAP_BITS; i < oc_heap_words(end); i++)
		__atomic_fetch_and(&place.placed[i], ~oc_heap_bits(i, first, end),
				   __ATOMIC_RELAXED);
}
