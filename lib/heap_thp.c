// SPDX-License-Identifier: BSD-3-Clause
/*
 * Private memory gets huge pages by default on most distributions, shared
 * memory (shmem_enabled) on none. Without them first touch costs 1.5 to 10
 * times, and random access 1.3 times, what it costs the same program under
 * glibc. Where shmem_enabled lets a process ask, we ask, and the kernel does it
 * at the first touch. Elsewhere MADV_COLLAPSE (Linux 6.1) makes a huge page of
 * a 2 MiB range in which one page was touched, for about the price of a
 * hundred small faults instead of 512.
 *
 * So each range is made huge when the first block reaches into it. What a
 * program never touches is the price: under 2 MiB at a block's edge, but all of
 * an array used in part. Hence nothing is done for small programs, nor for
 * blocks so large that an untouched one would show, and no more than a limit is
 * backed this way in all. After refusals, or when the kernel has to search for
 * huge pages longer than 512 faults would take, we stop for good.
 */
#include "heap_thp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define HUGE	   ((size_t)2 << 20)
#define HUGE_PAGES (HUGE / 4096)
#define WARM_UP	   ((size_t)8 << 20) /* smaller programs are left alone */
#define BLOCK_MAX  ((size_t)1 << 30) /* a tenth of a second, should nobody touch it */
#define FEW_PAGES  64		     /* a range with more is not worth collapsing */
#define SLOW_NS	   10000000	     /* 512 faults, where a hypervisor has to find each page too */
#define STRIKES	   4

static struct {
	char *base;
	size_t table_bytes;
	uint64_t *seen; /* bit a range */
	size_t budget;	/* ranges left */
	size_t warm_up; /* ranges left */
	unsigned int strikes;
	bool on;
	bool is_default;
} thp;

/* The word in brackets, as in "always [madvise] never". */
static bool setting_is(const char *path, const char *const *words)
{
	char text[128];
	char *open_at, *close_at;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return false;
	text[len] = '\0';
	open_at = strchr(text, '[');
	close_at = open_at ? strchr(open_at, ']') : NULL;
	if (!close_at)
		return false;
	*close_at = '\0';
	for (; *words; words++)
		if (!strcmp(open_at + 1, *words))
			return true;
	return false;
}

void oc_heap_thp_create(char *base, size_t size, size_t limit)
{
	static const char *const always[] = {"always", NULL};
	static const char *const never[] = {"never", NULL};
	static const char *const on_request[] = {"always", "within_size", "advise", "force", NULL};
	size_t ranges = size / HUGE;
	size_t bytes = (ranges + 63) / 64 * sizeof(*thp.seen);
	void *table;

	thp.on = false;
	thp.is_default = setting_is("/sys/kernel/mm/transparent_hugepage/enabled", always);
	if (setting_is("/sys/kernel/mm/transparent_hugepage/shmem_enabled", on_request)) {
		madvise(base, size, MADV_HUGEPAGE);
		return;
	}
	/* MADV_COLLAPSE would work against the administrator's word. */
	if (setting_is("/sys/kernel/mm/transparent_hugepage/enabled", never))
		return;
	table = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (table == MAP_FAILED)
		return;
	/* A forked child has no use for it: heap_fork.c. */
	madvise(table, bytes, MADV_DONTFORK);
	thp.base = base;
	thp.table_bytes = bytes;
	thp.seen = table;
	thp.budget = limit / HUGE;
	thp.warm_up = WARM_UP / HUGE;
	thp.strikes = 0;
	thp.on = true;
}

void oc_heap_thp_destroy(void)
{
	thp.on = false;
	if (thp.seen)
		munmap(thp.seen, thp.table_bytes);
	thp.seen = NULL;
}

static bool take(size_t *left)
{
	size_t n = __atomic_load_n(left, __ATOMIC_RELAXED);

	while (n)
		if (__atomic_compare_exchange_n(left, &n, n - 1, true, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return true;
	return false;
}

static size_t count_resident(char *range)
{
	unsigned char pages[HUGE_PAGES];
	size_t n = 0;

	if (mincore(range, HUGE, pages))
		return HUGE_PAGES;
	for (size_t i = 0; i < HUGE_PAGES; i++)
		n += pages[i] & 1;
	return n;
}

/* @mine is a byte of the new block inside the range. */
static void collapse(char *range, char *mine)
{
	uint64_t start;

	if (take(&thp.warm_up) || count_resident(range) > FEW_PAGES || !take(&thp.budget))
		return;
	start = oc_clock_ns();
	/* A range with no page at all can not be collapsed. */
	__atomic_fetch_or(mine, 0, __ATOMIC_RELAXED);
	if (!madvise(range, HUGE, MADV_COLLAPSE) && oc_clock_ns() - start < SLOW_NS)
		return;
	if (__atomic_add_fetch(&thp.strikes, 1, __ATOMIC_RELAXED) >= STRIKES)
		__atomic_store_n(&thp.on, false, __ATOMIC_RELAXED);
}

bool oc_heap_thp_is_default(void)
{
	return thp.is_default;
}

void oc_heap_thp_prepare(char *p, size_t bytes)
{
	size_t first, last;

	if (!__atomic_load_n(&thp.on, __ATOMIC_RELAXED) || !bytes || bytes > BLOCK_MAX)
		return;
	first = (size_t)(p - thp.base) / HUGE;
	last = (size_t)(p + bytes - 1 - thp.base) / HUGE;
	for (size_t i = first; i <= last; i++) {
		uint64_t bit = (uint64_t)1 << i % 64;
		char *range = thp.base + i * HUGE;

		if (__atomic_load_n(&thp.seen[i / 64], __ATOMIC_RELAXED) & bit)
			continue;
		if (__atomic_fetch_or(&thp.seen[i / 64], bit, __ATOMIC_RELAXED) & bit)
			continue;
		collapse(range, range > p ? range : p);
	}
}

void oc_heap_thp_forget(char *p, size_t bytes)
{
	if (!__atomic_load_n(&thp.on, __ATOMIC_RELAXED))
		return;
	for (size_t i = (size_t)(p - thp.base) / HUGE, n = bytes / HUGE; n; i++, n--)
		if (__atomic_fetch_and(&thp.seen[i / 64], ~((uint64_t)1 << i % 64),
				       __ATOMIC_RELAXED) >>
			    i % 64 &
		    1)
			__atomic_fetch_add(&thp.budget, 1, __ATOMIC_RELAXED);
}
