// SPDX-License-Identifier: BSD-3-Clause
#include "heap/hot.h"

#include <stdint.h>
#include <sys/mman.h>

#include "heap/huge.h"
#include "heap/table.h"

#define HUGE	   ((size_t)2 << 20)
#define UNIT	   ((size_t)4096)
#define ENOUGH	   (3 * HUGE / UNIT) /* a use or two is common, and not worth it */
#define LOOK_AGAIN (HUGE / UNIT)     /* at a range that was not done yet */

static struct {
	const char *base;
	size_t bytes;	/* of the table */
	uint16_t *used; /* units used of each range, up to ENOUGH: then it has been seen to */
} hot;

void oc_heap_hot_create(char *base, size_t size)
{
	size_t bytes = size / HUGE * sizeof(*hot.used);
	void *table = oc_heap_table_map(bytes, false);

	if (!table)
		return;
	hot.base = base;
	hot.bytes = bytes;
	hot.used = table;
}

void oc_heap_hot_destroy(void)
{
	if (hot.used)
		munmap(hot.used, hot.bytes);
	hot.used = NULL;
}

/* Of range @i. Threads may count one use for two: nothing depends on it. */
static void count(size_t i, size_t units)
{
	size_t sum = __atomic_load_n(&hot.used[i], __ATOMIC_RELAXED);

	if (sum >= ENOUGH)
		return;
	sum += units;
	if (sum >= ENOUGH)
		sum = oc_heap_thp_collapse(hot.base + i * HUGE) ? ENOUGH : ENOUGH - LOOK_AGAIN;
	__atomic_store_n(&hot.used[i], (uint16_t)sum, __ATOMIC_RELAXED);
}

void oc_heap_hot_use(const char *p, size_t bytes)
{
	size_t at, end;

	if (!oc_heap_thp_left_some() || !hot.used)
		return;
	at = (size_t)(p - hot.base);
	for (end = at + bytes; at < end; at = (at / HUGE + 1) * HUGE) {
		size_t rest = HUGE - at % HUGE;

		count(at / HUGE, (end - at < rest ? end - at : rest) / UNIT);
	}
}

void oc_heap_hot_forget(const char *p, size_t bytes)
{
	size_t first = (size_t)(p - hot.base) / HUGE;

	/* Most never were: their part of the table need not be there. */
	for (size_t i = first; hot.used && i < first + bytes / HUGE; i++)
		if (__atomic_load_n(&hot.used[i], __ATOMIC_RELAXED))
			__atomic_store_n(&hot.used[i], 0, __ATOMIC_RELAXED);
}
