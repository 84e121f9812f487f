// SPDX-License-Identifier: BSD-3-Clause
#include "heap/span.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "heap/table.h"

#define CHUNK	    ((size_t)32 << 20)
#define CHUNK_PAGES (CHUNK / OC_HEAP_PAGE)

/* Of a word. */
#define ZEROS	     (UINT64_C(1) << 63) /* oc_heap_span_keep_zeros() */
#define BEFORE_SHIFT 48			 /* oc_heap_span_add_after(), in units of 16 bytes */
#define USABLE	     ((UINT64_C(1) << BEFORE_SHIFT) - 1)

/* One 8-byte word a page costs 1/512 of what is used: the table is sparse too. */
static struct {
	char *base;
	size_t pages;
	size_t chunks;
	size_t table_bytes;
	uint64_t *words;    /* [pages]: of the block that starts in that page */
	uint32_t *live;	    /* [chunks]: blocks that start in that chunk */
	size_t used_chunks; /* no block was ever seen past these */
	bool keep_all_zeros;
} span;

int oc_heap_span_create(char *base, size_t size)
{
	size_t pages = size / OC_HEAP_PAGE;
	size_t chunks = (size + CHUNK - 1) / CHUNK;
	size_t bytes = pages * sizeof(*span.words) + chunks * sizeof(*span.live);
	char *table = oc_heap_table_map(bytes, true);

	if (!table)
		return -ENOMEM;
	span.base = base;
	span.pages = pages;
	span.chunks = chunks;
	span.table_bytes = bytes;
	span.words = (uint64_t *)table;
	span.live = (uint32_t *)(table + pages * sizeof(*span.words));
	span.used_chunks = 0;
	return 0;
}

void oc_heap_span_destroy(void)
{
	munmap(span.words, span.table_bytes);
	span.words = NULL;
	span.pages = 0;
}

static size_t page_of(const void *p)
{
	return (size_t)((const char *)p - span.base) / OC_HEAP_PAGE;
}

void oc_heap_span_add_after(const void *p, size_t usable, size_t before)
{
	size_t page = page_of(p);
	size_t chunk = page / CHUNK_PAGES;
	size_t used = __atomic_load_n(&span.used_chunks, __ATOMIC_RELAXED);

	__atomic_store_n(&span.words[page], usable | (uint64_t)before / 16 << BEFORE_SHIFT,
			 __ATOMIC_RELAXED);
	__atomic_fetch_add(&span.live[chunk], 1, __ATOMIC_RELAXED);
	while (used <= chunk &&
	       !__atomic_compare_exchange_n(&span.used_chunks, &used, chunk + 1, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void oc_heap_span_add(const void *p, size_t usable)
{
	oc_heap_span_add_after(p, usable, 0);
}

size_t oc_heap_span_usable(const void *p)
{
	return __atomic_load_n(&span.words[page_of(p)], __ATOMIC_RELAXED) & USABLE;
}

size_t oc_heap_span_remove(const void *p, size_t *before)
{
	size_t page = page_of(p);
	uint64_t word = __atomic_exchange_n(&span.words[page], 0, __ATOMIC_RELAXED);

	if (word)
		__atomic_fetch_sub(&span.live[page / CHUNK_PAGES], 1, __ATOMIC_RELAXED);
	*before = (size_t)((word & ~ZEROS) >> BEFORE_SHIFT) * 16;
	return word & USABLE;
}

void oc_heap_span_keep_zeros(const void *p)
{
	__atomic_fetch_or(&span.words[page_of(p)], ZEROS, __ATOMIC_RELAXED);
}

bool oc_heap_span_keeps_zeros(const void *p)
{
	return __atomic_load_n(&span.words[page_of(p)], __ATOMIC_RELAXED) & ZEROS;
}

void oc_heap_span_keep_all_zeros(void)
{
	__atomic_store_n(&span.keep_all_zeros, true, __ATOMIC_RELAXED);
}

/* In pages; empty if from and to are equal. */
struct run {
	size_t from;
	size_t to;
	bool zeros;
};

static bool tell(const struct run *run, oc_heap_span_found *found, void *arg)
{
	return run->to <= run->from || found(span.base + run->from * OC_HEAP_PAGE,
					     (run->to - run->from) * OC_HEAP_PAGE, run->zeros, arg);
}

/* @run grows by the block @next, or is told and becomes it. */
static bool join(struct run *run, struct run next, oc_heap_span_found *found, void *arg)
{
	if (run->to > run->from && next.from <= run->to && next.zeros == run->zeros) {
		run->to = next.to > run->to ? next.to : run->to;
		return true;
	}
	/* Of a page that both may have, zeros are kept. */
	if (next.from < run->to && next.zeros)
		run->to = next.from;
	else if (next.from < run->to)
		next.from = run->to;
	if (!tell(run, found, arg))
		return false;
	*run = next;
	return true;
}

void oc_heap_span_walk(oc_heap_span_found *found, void *arg)
{
	size_t chunks = __atomic_load_n(&span.used_chunks, __ATOMIC_RELAXED);
	bool all = __atomic_load_n(&span.keep_all_zeros, __ATOMIC_RELAXED);
	struct run run = {0};

	for (size_t chunk = 0; chunk < chunks; chunk++) {
		size_t page = chunk * CHUNK_PAGES;
		size_t end = page + CHUNK_PAGES < span.pages ? page + CHUNK_PAGES : span.pages;

		if (!__atomic_load_n(&span.live[chunk], __ATOMIC_RELAXED))
			continue;
		while (page < end) {
			uint64_t word = __atomic_load_n(&span.words[page], __ATOMIC_RELAXED);
			size_t usable = word & USABLE;
			struct run next = {.from = page, .zeros = all || (word & ZEROS)};

			if (!usable) {
				page++;
				continue;
			}
			/* It may start anywhere in its first page. */
			next.to = page + (usable + 2 * OC_HEAP_PAGE - 2) / OC_HEAP_PAGE;
			if (next.to > span.pages)
				next.to = span.pages;
			if (!join(&run, next, found, arg))
				return;
			page += usable / OC_HEAP_PAGE ? usable / OC_HEAP_PAGE : 1;
		}
	}
	tell(&run, found, arg);
}
