// SPDX-License-Identifier: BSD-3-Clause
#include "heap/changed.h"

#include <linux/mempolicy.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/pages.h"
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
