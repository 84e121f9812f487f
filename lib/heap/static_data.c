// SPDX-License-Identifier: BSD-3-Clause
/*
 * What is there is copied to a block of the arena, then the block's pages take the place of the old
 * ones. That is done before main(), when hardly anything is there. What has never been touched
 * stays so.
 *
 * As of the rest of the arena, a forked child gets a copy of its own: fork.c. Until then, and for
 * ever in children that the C library does not know of, there is nothing at these addresses. So the
 * pages that hold anything of the program's file stay private: among them is what it takes to call
 * functions, and, at their end, the program's copies of the C library's variables (stdout,
 * environ).
 */
#include "heap/static_data.h"

#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/quiet.h"
#include "heap/extent.h"
#include "heap/span.h"

#define SHARED_MIN ((size_t)1 << 20) /* less holds no buffers worth it */
#define BATCH	   512

/* Of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst). */
#define PRESENT (UINT64_C(3) << 62) /* or swapped out */

struct oc_heap_static oc_heap_static;

struct data {
	uintptr_t from;
	uintptr_t to;
};

static uintptr_t page_up(uintptr_t at)
{
	return (at + OC_HEAP_PAGE - 1) & ~(uintptr_t)(OC_HEAP_PAGE - 1);
}

/* The largest of the program, which is the first object. */
static int find_data(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct data *data = arg;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + segment->p_vaddr;
		struct data found = {.from = page_up(at + segment->p_filesz),
				     .to = page_up(at + segment->p_memsz)};

		if (segment->p_type == PT_LOAD &&
		    (segment->p_flags & (PF_R | PF_W | PF_X)) == (PF_R | PF_W) &&
		    found.to - found.from > data->to - data->from)
			*data = found;
	}
	return 1;
}

static bool is_alone(void)
{
	struct stat tasks;

	/* A directory's own links, and one for each task. */
	return !stat("/proc/self/task", &tasks) && tasks.st_nlink == 3;
}

/* The pages that there are, to the arena. Others would be made by looking at them. */
static void copy(const struct data *data, char *at)
{
	uintptr_t from = data->from, to = data->to;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t pages[BATCH];

	while (from < to) {
		size_t n = (to - from) / OC_HEAP_PAGE;
		ssize_t got;

		n = n < BATCH ? n : BATCH;
		got = pread(fd, pages, n * sizeof(*pages),
			    (off_t)(from / OC_HEAP_PAGE * sizeof(*pages)));
		for (size_t i = 0; i < n; i++, from += OC_HEAP_PAGE, at += OC_HEAP_PAGE)
			if (got != (ssize_t)(n * sizeof(*pages)) || pages[i] & PRESENT)
				memcpy(at, (const char *)from, OC_HEAP_PAGE);
	}
	if (fd >= 0)
		close(fd);
}

/* The arena's pages in the place of the old. */
static bool show(const struct data *data, const char *at)
{
	const struct oc_heap_arena *arena = oc_heap_arena();
	size_t bytes = data->to - data->from;

	if (oc_quiet_mmap((void *)data->from, bytes, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_FIXED | MAP_NORESERVE, arena->fd,
			  at - arena->base) == MAP_FAILED)
		return false;
	return !oc_quiet_madvise((void *)data->from, bytes, MADV_DONTFORK);
}

/* Private memory again, with what was there. */
static void put_back(const struct data *data, const char *at)
{
	size_t bytes = data->to - data->from;

	if (oc_quiet_mmap((void *)data->from, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
		memcpy((void *)data->from, at, bytes);
}

void oc_heap_static_share(void)
{
	struct data data = {0};
	size_t skew, usable;
	char *block;

	dl_iterate_phdr(find_data, &data);
	if (data.to - data.from < SHARED_MIN || !is_alone() || oc_heap_fd() < 0)
		return;
	/* As far from a huge page's beginning as here, that there can be some; and not next to
	 * another block. */
	skew = OC_HEAP_EXTENT + data.from % OC_HEAP_EXTENT;
	block = oc_heap_extent_alloc(skew + (data.to - data.from) + OC_HEAP_PAGE, 1, &usable);
	if (!block)
		return;
	copy(&data, block + skew);
	if (!show(&data, block + skew)) {
		oc_note("static data cannot be shared: it is staged");
		put_back(&data, block + skew);
		oc_heap_extent_free(block, usable, false);
		return;
	}
	/* fork.c copies what is live. */
	oc_heap_span_add(block, usable);
	oc_heap_static = (struct oc_heap_static){
		.from = data.from, .bytes = data.to - data.from, .at = block + skew};
}
