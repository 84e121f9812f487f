// SPDX-License-Identifier: BSD-3-Clause
#include "heap/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memfd.h"
#include "base/quiet.h"
#include "base/space.h"
#include "heap/huge.h"
#include "heap/mimalloc.h"
#include "heap/span.h"

#define TABLES	  512	     /* those over it are that part of it (span.c), and little more */
#define DATA_PART 16	     /* of what a program may have of private memory they are less */
#define ZERO_STEP (64 << 10) /* cleared from the first page found */
#define ARENA_MIN ((size_t)256 << 20) /* less is not worth the trouble */
#define GIB	  ((size_t)1 << 30)

static struct oc_heap_arena own = {.fd = -1};
struct oc_heap_range oc_heap_range;
bool oc_heap_is_copy;

/* With vm.overcommit_memory=2 the kernel answers an exhausted commit limit by
 * SIGBUS at the first touch of shared memory, where malloc() would have
 * returned NULL. */
static int overcommit_is_strict(void)
{
	char mode[2];

	oc_file_read_text("/proc/sys/vm/overcommit_memory", mode, sizeof(mode));
	return mode[0] == '2';
}

static size_t limit_of(int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return SIZE_MAX;
	return limit.rlim_cur;
}

/* A memory cgroup sets no bound here: it charges pages as they are touched,
 * shared or private alike, and kills either way when they are too many. */
static int arena_size(size_t *size, const char **why)
{
	size_t file = limit_of(RLIMIT_FSIZE), data = limit_of(RLIMIT_DATA);
	struct oc_space space;
	size_t want;

	oc_space_measure(&space);
	want = oc_space_arena(&space);
	if (want < ARENA_MIN) {
		*why = "address space or memory is below what an arena needs (RLIMIT_AS, ulimit "
		       "-v)";
		return -ENOMEM;
	}
	/* Shared memory is not counted there, tables over it are. */
	if (want / TABLES > data / DATA_PART)
		want = data / DATA_PART * TABLES;
	if (want < ARENA_MIN) {
		*why = "data may not grow by what an arena needs (RLIMIT_DATA, ulimit -d)";
		return -ENOMEM;
	}
	/* Beyond the limit ftruncate() would raise SIGXFSZ. */
	if (want > file)
		want = file;
	if (want < ARENA_MIN) {
		*why = "files may not grow to the size of an arena (RLIMIT_FSIZE, ulimit -f)";
		return -EFBIG;
	}
	*size = want & ~(2 * OC_MI_SEGMENT - 1);
	return 0;
}

/* Reserves more than asked and gives back what surrounds the aligned part. */
static char *reserve_aligned(size_t size, size_t align)
{
	char *raw, *base;

	raw = mmap(NULL, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		   0);
	if (raw == MAP_FAILED)
		return NULL;
	base = (char *)(((uintptr_t)raw + align - 1) & ~(align - 1));
	if (base != raw)
		munmap(raw, (size_t)(base - raw));
	munmap(base + size, (size_t)(raw + align - base));
	return base;
}

int oc_heap_arena_create(struct oc_heap_arena *arena, const char **why)
{
	size_t align, size;
	struct oc_file file;
	char *base;
	int err, fd;

	if (sysconf(_SC_PAGESIZE) != (long)OC_HEAP_PAGE) {
		*why = "pages of this machine are not of 4 KiB";
		return -ENOSYS;
	}
	if (overcommit_is_strict()) {
		*why = "strict overcommit: vm.overcommit_memory=2";
		return -ENOMEM;
	}
	err = arena_size(&size, why);
	if (err)
		return err;
	*why = "the arena's memfd can not be made";
	fd = oc_heap_thp_file(OC_HEAP_FILE, size);
	if (fd < 0)
		fd = oc_memfd_create(OC_HEAP_FILE, size);
	if (fd < 0)
		return fd == -ENOSYS || fd == -EFBIG ? fd : -ENOMEM;

	align = size >= GIB && limit_of(RLIMIT_AS) == SIZE_MAX ? GIB : OC_MI_SEGMENT;
	err = -ENOMEM;
	*why = "no address space for the arena";
	base = oc_file_identify(&file, fd) ? NULL : reserve_aligned(size, align);
	if (!base)
		goto close_fd;
	*why = "the arena can not be mapped";
	if (mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
		 0) == MAP_FAILED)
		goto unmap;
	/* fork() must not share it: fork.c. */
	if (oc_quiet_madvise(base, size, MADV_DONTFORK))
		goto unmap;
	*why = "";
	*arena = (struct oc_heap_arena){.base = base, .size = size, .fd = fd, .file = file};
	return 0;

unmap:
	munmap(base, size);
close_fd:
	close(fd);
	return err;
}

void oc_heap_arena_zero(const struct oc_heap_arena *arena, void *p, size_t bytes)
{
	off_t at = (char *)p - arena->base, end = at + (off_t)bytes;

	if (!oc_file_is(&arena->file, arena->fd)) {
		memset(p, 0, bytes);
		return;
	}
	/* The file knows which pages it has, swapped ones included. Where it has one, a
	 * step is cleared: to look for the next hole (SEEK_HOLE) may take it through all
	 * that the program has allocated. Steps end where pages do: part of one, cleared,
	 * would be data for the next step. */
	while (at < end) {
		off_t data = lseek(arena->fd, at, SEEK_DATA);
		off_t next;

		if (data >= end || (data < 0 && errno == ENXIO))
			return; /* none up to the end, or none at all any more */
		if (data > at)
			at = data;
		next = (at / ZERO_STEP + 1) * ZERO_STEP;
		if (next > end)
			next = end;
		memset(arena->base + at, 0, (size_t)(next - at));
		at = next;
	}
}

void oc_heap_arena_destroy(struct oc_heap_arena *arena)
{
	munmap(arena->base, arena->size);
	close(arena->fd);
	*arena = (struct oc_heap_arena){.fd = -1};
}

void oc_heap_arena_publish(const struct oc_heap_arena *arena)
{
	own = *arena;
	oc_space_take(own.size + own.size / TABLES);
	__atomic_store_n(&oc_heap_range.base, (uintptr_t)own.base, __ATOMIC_RELAXED);
	__atomic_store_n(&oc_heap_range.size, own.size, __ATOMIC_RELEASE);
}

const struct oc_heap_arena *oc_heap_arena(void)
{
	return &own;
}

int oc_heap_fd(void)
{
	return oc_file_is(&own.file, own.fd) ? own.fd : -1;
}

void oc_heap_become_copy(void)
{
	oc_file_close(&own.file, own.fd);
	own.fd = -1;
	/* Peers' are not inherited, nor its own where nothing in it was live. */
	oc_space_keep(oc_heap_range.size + own.size / TABLES);
	oc_heap_is_copy = true;
}
