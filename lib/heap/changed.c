// SPDX-License-Identifier: BSD-3-Clause
#include "heap/changed.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hooked.h"
#include "base/pages.h"
#include "base/quiet.h"
#include "base/raw_call.h"
#include "heap/arena.h"
#include "heap/place.h"
#include "heap/promote.h"
#include "heap/span.h"
#include "heap/table.h"

static struct {
	char *base;
	size_t granules;
	uint8_t *how; /* [granules]: of enum oc_heap_change */
	bool any;
} changed;

void oc_heap_changed_create(char *base, size_t size)
{
	changed.base = base;
	changed.granules = size / OC_HUGE_PAGE;
	changed.any = false;
	/* fork() protects what a child is not to have. */
	changed.how = oc_heap_table_map(changed.granules, true);
}

void oc_heap_changed_destroy(void)
{
	if (changed.how)
		munmap(changed.how, changed.granules);
	changed.how = NULL;
}

void oc_heap_change(const void *p, size_t bytes, enum oc_heap_change how)
{
	size_t first = (size_t)((const char *)p - changed.base) / OC_HUGE_PAGE;
	size_t last;

	if (!changed.how || first >= changed.granules || !bytes)
		return;
	last = ((size_t)((const char *)p - changed.base) + bytes - 1) / OC_HUGE_PAGE;
	for (size_t i = first; i <= last && i < changed.granules; i++)
		__atomic_fetch_or(&changed.how[i], (uint8_t)how, __ATOMIC_RELAXED);
	__atomic_store_n(&changed.any, true, __ATOMIC_RELAXED);
}

static void restore(char *p, size_t bytes, unsigned int how)
{
	const int usual = PROT_READ | PROT_WRITE;

	if (how & OC_HEAP_KEYED)
		pkey_mprotect(p, bytes, usual, 0);
	else if (how & OC_HEAP_PROTECTED)
		mprotect(p, bytes, usual);
	if (how & OC_HEAP_LOCKED)
		munlock(p, bytes);
	if (how & OC_HEAP_BOUND)
		syscall(SYS_mbind, p, bytes, MPOL_DEFAULT, NULL, 0, 0);
}

void oc_heap_restore(char *p, size_t bytes)
{
	size_t i = (size_t)(p - changed.base) / OC_HUGE_PAGE;
	size_t end = i + bytes / OC_HUGE_PAGE;

	if (!__atomic_load_n(&changed.any, __ATOMIC_RELAXED))
		return;
	while (i < end) {
		size_t first = i;
		unsigned int how = changed.how[first];

		for (; i < end && changed.how[i] == how; i++)
			changed.how[i] = 0;
		if (how)
			restore(changed.base + first * OC_HUGE_PAGE, (i - first) * OC_HUGE_PAGE,
				how);
	}
}

/* By the file, as long as that is there: the program may have protected the pages, or have mapped a
 * file of its own there, of which MADV_REMOVE would take what is in it. */
static bool give_back(char *p, size_t bytes)
{
	const struct oc_heap_arena *arena = oc_heap_arena();
	const int how = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	/* Not by the C library's fallocate(), which is a cancellation point. */
	if (oc_file_is(&arena->file, arena->fd) &&
	    !oc_raw_call(SYS_fallocate, arena->fd, how, p - arena->base, (long)bytes, 0, 0))
		return true;
	return oc_hooked_remove(p, bytes);
}

int oc_heap_discard(char *p, char *at, size_t bytes, bool locked)
{
	size_t whole = (bytes + OC_HEAP_PAGE - 1) & ~(OC_HEAP_PAGE - 1);

	if (oc_heap_is_copy) {
		/* What is dropped of a private mapping of the file would be the parent's data. */
		if ((uintptr_t)p % OC_HEAP_PAGE == 0 &&
		    oc_quiet_mmap(p, whole, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
				  0) == MAP_FAILED)
			return -1;
		return oc_hooked_madvise(p, bytes, MADV_DONTNEED);
	}
	/* The block is what it was, as to huge pages and core files too. */
	oc_heap_place_forget(at, whole);
	if (at == p)
		oc_heap_promote_forget(at, whole);
	oc_heap_span_keep_all_zeros();
	/* First, for this tells what may not be thrown away, and empties what is private. */
	if (oc_hooked_madvise(p, bytes, locked ? MADV_DONTNEED_LOCKED : MADV_DONTNEED))
		return -1;
	return give_back(at, whole) ? 0 : -1;
}
