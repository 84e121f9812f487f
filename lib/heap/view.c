// SPDX-License-Identifier: BSD-3-Clause
#include "heap/view.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "base/pages.h"
#include "base/quiet.h"
#include "heap/extent.h"
#include "heap/helper.h"
#include "heap/span.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

#define STEP_PAGES ((size_t)512)

static struct {
	char *base;
	size_t size;
	size_t limit;
	char *at; /* NULL: not open */
} view;

void oc_heap_view_create(char *base, size_t size, size_t limit)
{
	view.base = base;
	view.size = size;
	view.limit = limit;
}

int oc_heap_view_open(void)
{
	/* An old size of zero duplicates a shared mapping: mremap(2). The new
	 * one has all of the file, though the program may have parted the old. */
	char *at = mremap(view.base, 0, view.size, MREMAP_MAYMOVE);
	int err;

	if (at == MAP_FAILED)
		return -errno;
	if (oc_quiet_madvise(at, view.size, MADV_DOFORK)) {
		err = -errno;
		oc_quiet_munmap(at, view.size);
		return err;
	}
	view.at = at;
	return 0;
}

void oc_heap_view_close(void)
{
	if (view.at)
		oc_quiet_munmap(view.at, view.size);
	view.at = NULL;
}

/* mincore(2) takes a page of shared memory that is swapped out for a hole. */
static bool swap_in_use(void)
{
	struct sysinfo info;

	return sysinfo(&info) || info.freeswap != info.totalswap;
}

size_t oc_heap_view_seek(size_t at, size_t end, bool data)
{
	unsigned char resident[STEP_PAGES];

	while (at < end) {
		size_t pages = (end - at) / OC_HEAP_PAGE;

		if (pages > STEP_PAGES)
			pages = STEP_PAGES;
		if (mincore(view.at + at, pages * OC_HEAP_PAGE, resident) || swap_in_use())
			return data ? at : end;
		for (size_t i = 0; i < pages; i++, at += OC_HEAP_PAGE)
			if ((resident[i] & 1) == data)
				return at;
	}
	return end;
}

/* Page faults one by one would cost more than the copy: few if there are huge
 * pages, many at a time from Linux 5.14 on, else they come as they come. */
static void fetch(char *to, char *from, size_t bytes)
{
	if (bytes >= OC_HEAP_EXTENT)
		oc_quiet_madvise(to, bytes, MADV_HUGEPAGE);
	oc_quiet_madvise(to, bytes, MADV_POPULATE_WRITE);
	oc_quiet_madvise(from, bytes, MADV_POPULATE_READ);
	memcpy(to, from, bytes);
}

int oc_heap_view_copy(const struct oc_heap_copy *copy)
{
	size_t bytes = 0;

	for (size_t i = 0; i < copy->count; i++)
		if (copy->pieces[i].data)
			bytes += copy->pieces[i].bytes;
	if (bytes > view.limit)
		return -EFBIG;
	for (size_t i = 0; i < copy->count; i++) {
		const struct oc_heap_piece *piece = &copy->pieces[i];

		if (piece->data)
			fetch(piece->at, view.at + piece->off, piece->bytes);
	}
	return 0;
}
