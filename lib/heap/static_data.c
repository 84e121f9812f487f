// SPDX-License-Identifier: BSD-3-Clause
/*
 * What is there is copied to a block of the arena, then the block's pages take the place of the old
 * ones. That is done before main(), when hardly anything is there. What has never been touched
 * stays so.
 *
 * As of the rest of the arena, a forked child gets a copy of its own: fork.c. Until then, and for
 * ever in children that the C library does not know of, there is nothing at these addresses. So the
 * pages that hold anything of the program's file stay private: among them is what it takes to call
 * functions. So does the page behind them: the linker puts first of what the file does not fill the
 * program's copies of the C library's variables (stdout, environ), and may put that on a new page.
 *
 * Go makes such children itself, and then the variables of its runtime are needed in them, which
 * lie among all others: all stay private.
 */
#include "heap/static_data.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/mem_limit.h"
#include "base/quiet.h"
#include "heap/extent.h"
#include "heap/span.h"

#define SHARED_MIN ((size_t)1 << 20) /* less holds no buffers worth it */
#define BATCH	   512
#define DUMPED	   8 /* core files have it up to this part of the memory */

/* Of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst). */
#define PRESENT (UINT64_C(3) << 62) /* or swapped out */

struct oc_heap_static oc_heap_static;

struct data {
	uintptr_t from;
	uintptr_t to;
	bool is_of_go;
};

static uintptr_t page_up(uintptr_t at)
{
	return (at + OC_HEAP_PAGE - 1) & ~(uintptr_t)(OC_HEAP_PAGE - 1);
}

/* gABI, "Note Section": names and descriptions are padded to words. */
static size_t words_of(size_t bytes)
{
	return (bytes + 3) & ~(size_t)3;
}

/* Go's linker leaves one with that name, in which the build has its number (.note.go.buildid). */
static bool has_note_of_go(const char *at, size_t bytes)
{
	while (bytes > sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
		size_t size = sizeof(*note) + words_of(note->n_namesz) + words_of(note->n_descsz);

		if (size > bytes)
			return false;
		if (note->n_namesz >= sizeof("Go") && !memcmp(note + 1, "Go", sizeof("Go")))
			return true;
		at += size;
		bytes -= size;
	}
	return false;
}

/* The largest of the program, which is the first object. */
static int find_data(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct data *data = arg;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + segment->p_vaddr;
		struct data found = {.from = page_up(at + segment->p_filesz) + OC_HEAP_PAGE,
				     .to = page_up(at + segment->p_memsz)};

		if (segment->p_type == PT_NOTE && segment->p_align <= 4)
			data->is_of_go |= has_note_of_go((const char *)at, segment->p_filesz);
		if (segment->p_type == PT_LOAD &&
		    (segment->p_flags & (PF_R | PF_W | PF_X)) == (PF_R | PF_W) &&
		    found.to > found.from && found.to - found.from > data->to - data->from) {
			data->from = found.from;
			data->to = found.to;
		}
	}
	return 1;
}

/* Where the linker has put copies of the C library's variables that a child needs before it has
 * its own: behind them. With arrays of a large alignment that is further on than the first page. */
static void leave_copies(struct data *data)
{
	static const char *const names[] = {"environ", "__environ", "_environ",
					    "stdin",   "stdout",    "stderr"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uintptr_t at = (uintptr_t)dlsym(RTLD_DEFAULT, names[i]);

		if (at >= data->from && at < data->to)
			data->from = page_up(at + sizeof(void *));
	}
}

static bool is_alone(void)
{
	struct stat tasks;

	/* A directory's own links, and one for each task. */
	return !stat("/proc/self/task", &tasks) && tasks.st_nlink == 3;
}

/* The pages that there are, to the arena. Others would be made by looking at them, and all the
 * arena's by copying them; so where it cannot be told (a program that may not be read) false. */
static bool copy(const struct data *data, char *at)
{
	uintptr_t from = data->from, to = data->to;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	bool told = fd >= 0;
	uint64_t pages[BATCH];

	while (told && from < to) {
		size_t n = (to - from) / OC_HEAP_PAGE;

		n = n < BATCH ? n : BATCH;
		told = pread(fd, pages, n * sizeof(*pages),
			     (off_t)(from / OC_HEAP_PAGE * sizeof(*pages))) ==
		       (ssize_t)(n * sizeof(*pages));
		for (size_t i = 0; told && i < n; i++, from += OC_HEAP_PAGE, at += OC_HEAP_PAGE)
			if (pages[i] & PRESENT)
				memcpy(at, (const char *)from, OC_HEAP_PAGE);
	}
	if (fd >= 0)
		close(fd);
	return told;
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
	/* A core file would have every page, also those that were never touched: heap/dump.h. */
	if (bytes > oc_mem_limit() / DUMPED)
		oc_quiet_madvise((void *)data->from, bytes, MADV_DONTDUMP);
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
	leave_copies(&data);
	if (data.to < data.from || data.to - data.from < SHARED_MIN || !is_alone() ||
	    oc_heap_fd() < 0)
		return;
	if (data.is_of_go) {
		oc_note("static data is staged: it is a Go program's");
		return;
	}
	/* As far from a huge page's beginning as here, that there can be some; and not next to
	 * another block. */
	skew = OC_HEAP_EXTENT + data.from % OC_HEAP_EXTENT;
	block = oc_heap_extent_alloc(skew + (data.to - data.from) + OC_HEAP_PAGE, 1, &usable);
	if (!block)
		return;
	if (!copy(&data, block + skew)) {
		oc_note("static data is staged: /proc/self/pagemap cannot be read");
		oc_heap_extent_free(block, usable, false);
		return;
	}
	if (!show(&data, block + skew)) {
		oc_note("static data cannot be shared: it is staged");
		put_back(&data, block + skew);
		oc_heap_extent_free(block, usable, false);
		return;
	}
	/* fork.c copies what is live. */
	oc_heap_span_add(block, usable);
	oc_heap_span_keep_zeros(block);
	oc_heap_static = (struct oc_heap_static){.from = data.from,
						 .bytes = data.to - data.from,
						 .mapped = data.to - data.from,
						 .at = block + skew};
}

struct mapping {
	uintptr_t from;
	uintptr_t to;
	char access[5];
	uintptr_t off;
	ino_t inode;
};

static bool read_mapping(FILE *maps, struct mapping *one)
{
	unsigned long from, to, off, inode;

	if (fscanf(maps, "%lx-%lx %4s %lx %*x:%*x %lu%*[^\n]", &from, &to, one->access, &off,
		   &inode) != 5)
		return false;
	one->from = from;
	one->to = to;
	one->off = off;
	one->inode = (ino_t)inode;
	return true;
}

/* Whether the pages at its addresses are the arena's, all of them. */
static bool stands(FILE *maps)
{
	const struct oc_heap_arena *arena = oc_heap_arena();
	uintptr_t at = oc_heap_static.from, end = at + oc_heap_static.bytes;
	uintptr_t off = (uintptr_t)(oc_heap_static.at - arena->base);
	struct mapping one;

	while (at < end && read_mapping(maps, &one)) {
		if (one.to <= at)
			continue;
		if (one.from > at || one.inode != arena->file.ino || one.access[3] != 's' ||
		    one.off + (at - one.from) != off + (at - oc_heap_static.from))
			return false;
		at = one.to;
	}
	return at >= end;
}

void oc_heap_static_look(void)
{
	FILE *maps = oc_heap_static.bytes ? fopen("/proc/self/maps", "re") : NULL;

	if (!maps)
		return;
	if (!stands(maps)) {
		oc_note("static data is staged: the program has mapped other memory over it");
		oc_heap_static.bytes = 0;
	}
	fclose(maps);
}
