// SPDX-License-Identifier: BSD-3-Clause
#include "heap/idle.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/hooked.h"
#include "heap/bits.h"
#include "heap/gone.h"
#include "heap/span.h"
#include "heap/table.h"

#define LINK 64			      /* more than mimalloc keeps in a free block */
#define LOT  (((long)1 << 20) / 4096) /* pages that a thread counts on its own */

static struct {
	char *base;
	uint64_t *pages; /* a bit a page: idle */
	size_t table_bytes;
	long keep;  /* pages */
	long count; /* of the bits set, but for what living threads have not told yet */
	pthread_key_t end_key;
} idle;

static __thread struct {
	long untold; /* pages, */
	long most;   /* so many at most: none until the thread tells the rest at its end */
} self __attribute__((tls_model("initial-exec")));

static void tell(void)
{
	__atomic_fetch_add(&idle.count, self.untold, __ATOMIC_RELAXED);
	self.untold = 0;
}

/* Destructors that run later may still free blocks: the next does this once more. */
static void end_thread(void *arg)
{
	self.most = 0;
	tell();
}

int oc_heap_idle_create(char *base, size_t size, size_t keep)
{
	size_t bytes = oc_heap_words(size / OC_HEAP_PAGE) * sizeof(*idle.pages);
	void *table = oc_heap_table_map(bytes, false);

	if (!table)
		return -ENOMEM;
	if (pthread_key_create(&idle.end_key, end_thread)) {
		munmap(table, bytes);
		return -ENOMEM;
	}
	idle.base = base;
	idle.pages = table;
	idle.table_bytes = bytes;
	idle.keep = (long)(keep / OC_HEAP_PAGE);
	idle.count = 0;
	return 0;
}

void oc_heap_idle_destroy(void)
{
	pthread_key_delete(idle.end_key);
	munmap(idle.pages, idle.table_bytes);
}

/* All threads free: they would take turns at one counter. */
static void count(long pages)
{
	self.untold += pages;
	if (self.untold <= self.most && self.untold >= -self.most)
		return;
	tell();
	if (!self.most && !pthread_setspecific(idle.end_key, &self))
		self.most = LOT;
}

void oc_heap_idle_take(char *p, size_t bytes)
{
	size_t at = (size_t)(p - idle.base);
	size_t first = at / OC_HEAP_PAGE;
	size_t last = (at + bytes + OC_HEAP_PAGE - 1) / OC_HEAP_PAGE;
	long pages = 0;

	for (size_t i = first / OC_HEAP_BITS; i < oc_heap_words(last); i++) {
		uint64_t bits = oc_heap_bits(i, first, last);

		if (!(__atomic_load_n(&idle.pages[i], __ATOMIC_RELAXED) & bits))
			continue;
		bits &= __atomic_fetch_and(&idle.pages[i], ~bits, __ATOMIC_RELAXED);
		pages += __builtin_popcountll(bits);
	}
	if (pages)
		count(-pages);
}

static void keep(size_t first, size_t last)
{
	long pages = 0;

	for (size_t i = first / OC_HEAP_BITS; i < oc_heap_words(last); i++) {
		uint64_t bits = oc_heap_bits(i, first, last);

		bits &= ~__atomic_fetch_or(&idle.pages[i], bits, __ATOMIC_RELAXED);
		pages += __builtin_popcountll(bits);
	}
	count(pages);
}

static bool give_back(char *at, size_t bytes)
{
	if (!oc_hooked_remove(at, bytes))
		return false;
	oc_heap_gone(at, bytes);
	return true;
}

void oc_heap_idle_leave(char *p, size_t bytes)
{
	size_t at = (size_t)(p - idle.base);
	size_t first = (at + LINK + OC_HEAP_PAGE - 1) / OC_HEAP_PAGE;
	size_t last = (at + bytes) / OC_HEAP_PAGE;

	if (first >= last)
		return;
	if (__atomic_load_n(&idle.count, __ATOMIC_RELAXED) + (long)(last - first) > idle.keep &&
	    give_back(idle.base + first * OC_HEAP_PAGE, (last - first) * OC_HEAP_PAGE))
		return;
	keep(first, last);
}
