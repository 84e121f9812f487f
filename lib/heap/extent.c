// SPDX-License-Identifier: BSD-3-Clause
/*
 * The arena's part for large blocks is a row of extents, each free or used,
 * whose lengths in granules stand at their first granule. Allocation walks the
 * row and joins free neighbours as it meets them, so free() only flips a bit.
 * That is linear in the number of large blocks, of which each costs thousands
 * of page faults: the walk does not show.
 *
 * A granule is dirty from its first allocation until it is punched out of the
 * file. Free dirty granules are kept to a limit, since the next block then
 * takes no page faults; past it they go back to the system, as glibc returns
 * every block of 32 MiB and more. Those who cache registrations of memory hear of
 * such a block in either case, as they would of that munmap().
 */
#include "heap/extent.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hooked.h"
#include "heap/changed.h"
#include "heap/gone.h"
#include "heap/table.h"

#define USED	 1u
#define GROWTH	 4		    /* times its length is for a block that grows */
#define TOLD_MIN ((size_t)32 << 20) /* glibc's largest threshold for munmap() in free() */

static struct {
	pthread_mutex_t lock; /* row, idle */
	char *base;
	size_t count; /* granules */
	size_t keep;  /* granules */
	size_t idle;  /* granules that are dirty and free */
	size_t table_bytes;
	uint32_t *row;	/* [count]: length << 1 | USED, at first granules only */
	uint8_t *dirty; /* [count]: written by the owner of the granule alone */
} extent = {.lock = PTHREAD_MUTEX_INITIALIZER};

int oc_heap_extent_create(char *base, size_t size, size_t keep)
{
	size_t count = size / OC_HEAP_EXTENT;
	size_t bytes = count * (sizeof(*extent.row) + sizeof(*extent.dirty));
	char *table = oc_heap_table_map(bytes, false);

	if (!table)
		return -ENOMEM;
	extent.base = base;
	extent.count = count;
	extent.keep = keep / OC_HEAP_EXTENT;
	extent.idle = 0;
	extent.table_bytes = bytes;
	extent.row = (uint32_t *)table;
	extent.dirty = (uint8_t *)(table + count * sizeof(*extent.row));
	extent.row[0] = (uint32_t)count << 1;
	return 0;
}

void oc_heap_extent_destroy(void)
{
	munmap(extent.row, extent.table_bytes);
	extent.count = 0;
}

static size_t granules(size_t bytes)
{
	/* Of any size: a program may ask for SIZE_MAX bytes. */
	return bytes / OC_HEAP_EXTENT + (bytes % OC_HEAP_EXTENT != 0);
}

static size_t granule_of(const void *p)
{
	return (size_t)((const char *)p - extent.base) / OC_HEAP_EXTENT;
}

static size_t length_at(size_t i)
{
	return extent.row[i] >> 1;
}

static void set_row(size_t i, size_t length, uint32_t used)
{
	if (length)
		extent.row[i] = (uint32_t)length << 1 | used;
}

static size_t count_dirty(size_t i, size_t length)
{
	size_t n = 0;

	for (size_t end = i + length; i < end; i++)
		n += extent.dirty[i];
	return n;
}

/* Length of the free extent at @i with all free ones that follow. */
static size_t join_free(size_t i)
{
	size_t length = length_at(i);

	while (i + length < extent.count && !(extent.row[i + length] & USED))
		length += length_at(i + length);
	set_row(i, length, 0);
	return length;
}

/* First granule of a block at or after @i that begins at a multiple of @align. */
static size_t align_granule(size_t i, size_t align)
{
	uintptr_t at = (uintptr_t)extent.base + i * OC_HEAP_EXTENT;

	return granule_of((char *)((at + align - 1) & ~(align - 1)));
}

/* Makes a block of the free extent [i, i + length) from @start on. */
static void *take(size_t i, size_t length, size_t start, size_t need)
{
	set_row(i, start - i, 0);
	set_row(start, need, USED);
	set_row(start + need, i + length - start - need, 0);
	extent.idle -= count_dirty(start, need);
	return extent.base + start * OC_HEAP_EXTENT;
}

void *oc_heap_extent_alloc(size_t bytes, size_t align, size_t *usable)
{
	size_t need = granules(bytes);
	void *p = NULL;

	if (!need || need > extent.count || align > (size_t)1 << 40)
		return NULL;
	pthread_mutex_lock(&extent.lock);
	for (size_t i = 0, length; i < extent.count; i += length) {
		size_t start = i;

		length = length_at(i);
		if (extent.row[i] & USED)
			continue;
		length = join_free(i);
		if (align > OC_HEAP_EXTENT)
			start = align_granule(i, align);
		if (start + need > i + length)
			continue;
		p = take(i, length, start, need);
		break;
	}
	pthread_mutex_unlock(&extent.lock);
	if (p)
		*usable = need * OC_HEAP_EXTENT;
	return p;
}

void *oc_heap_extent_alloc_growing(size_t bytes, size_t *usable)
{
	size_t need = granules(bytes);
	size_t want = need * GROWTH;
	size_t last = 0, last_length = 0;
	void *p = NULL;

	if (!need || need > extent.count / GROWTH)
		return oc_heap_extent_alloc(bytes, 1, usable);
	pthread_mutex_lock(&extent.lock);
	for (size_t i = 0, length; i < extent.count; i += length) {
		length = length_at(i);
		if (extent.row[i] & USED)
			continue;
		length = join_free(i);
		if (length >= want) {
			last = i;
			last_length = length;
		}
	}
	if (last_length)
		p = take(last, last_length, last + last_length - want, need);
	pthread_mutex_unlock(&extent.lock);
	if (!p)
		return oc_heap_extent_alloc(bytes, 1, usable);
	*usable = need * OC_HEAP_EXTENT;
	return p;
}

void oc_heap_extent_zero(void *p, size_t bytes)
{
	size_t first = granule_of(p);
	size_t last = first + granules(bytes);

	for (size_t i = first; i < last; i++)
		if (extent.dirty[i])
			memset(extent.base + i * OC_HEAP_EXTENT, 0, OC_HEAP_EXTENT);
}

/* Granules [i, i + length) are this thread's. What was handed out may have been
 * written. */
static bool empty(size_t i, size_t length)
{
	char *at = extent.base + i * OC_HEAP_EXTENT;
	size_t bytes = length * OC_HEAP_EXTENT;
	bool done = oc_hooked_remove(at, bytes);

	memset(extent.dirty + i, !done, length);
	if (done)
		oc_heap_gone(at, bytes);
	return done;
}

static void set_free(size_t i, size_t length)
{
	pthread_mutex_lock(&extent.lock);
	extent.idle += count_dirty(i, length);
	set_row(i, length, 0);
	pthread_mutex_unlock(&extent.lock);
}

static void release(size_t i, size_t length)
{
	size_t bytes = length * OC_HEAP_EXTENT;
	bool full;

	oc_heap_restore(extent.base + i * OC_HEAP_EXTENT, bytes);
	pthread_mutex_lock(&extent.lock);
	full = extent.idle + length > extent.keep;
	pthread_mutex_unlock(&extent.lock);
	if (!full || !empty(i, length)) {
		memset(extent.dirty + i, 1, length);
		if (bytes >= TOLD_MIN)
			oc_hooked_tell(extent.base + i * OC_HEAP_EXTENT, bytes);
	}
	set_free(i, length);
}

size_t oc_heap_extent_resize(void *p, size_t usable, size_t bytes)
{
	size_t first = granule_of(p);
	size_t have = granules(usable);
	size_t need = granules(bytes);
	size_t more;

	if (need <= have) {
		if (need == have)
			return usable;
		pthread_mutex_lock(&extent.lock);
		set_row(first, need, USED);
		set_row(first + need, have - need, USED);
		pthread_mutex_unlock(&extent.lock);
		release(first + need, have - need);
		return need * OC_HEAP_EXTENT;
	}

	pthread_mutex_lock(&extent.lock);
	more = 0;
	if (first + have < extent.count && !(extent.row[first + have] & USED))
		more = join_free(first + have);
	if (have + more >= need) {
		set_row(first, need, USED);
		set_row(first + need, have + more - need, 0);
		extent.idle -= count_dirty(first + have, need - have);
	}
	pthread_mutex_unlock(&extent.lock);
	return have + more >= need ? need * OC_HEAP_EXTENT : 0;
}

void oc_heap_extent_free(void *p, size_t usable, bool is_empty)
{
	if (!is_empty) {
		release(granule_of(p), granules(usable));
		return;
	}
	oc_heap_restore(p, usable);
	set_free(granule_of(p), granules(usable));
}

bool oc_heap_extent_empty(void *p, size_t bytes)
{
	return empty(granule_of(p), granules(bytes));
}
