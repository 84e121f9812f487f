// SPDX-License-Identifier: BSD-3-Clause
#include "access/arena_map.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/pages.h"
#include "base/quiet.h"

#define PAGE 4096u

/* Room for @bytes at a huge page's boundary, as the arena has in its owner: only then
 * can the kernel map its huge pages as such. *@hole of *@room bytes is around it. */
static char *reserve(size_t bytes, char **hole, size_t *room)
{
	*room = bytes + OC_HUGE_PAGE;
	*hole = mmap(NULL, *room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (*hole == MAP_FAILED)
		return MAP_FAILED;
	return *hole + (-(uintptr_t)*hole & (OC_HUGE_PAGE - 1));
}

/* Gives back what of the hole is not [at, at + bytes). */
static void unreserve(char *hole, size_t room, char *at, size_t bytes)
{
	if (at > hole)
		munmap(hole, (size_t)(at - hole));
	if (at + bytes < hole + room)
		munmap(at + bytes, (size_t)(hole + room - (at + bytes)));
}

/* A forked child is not a rank, and a core file not the place. */
static void set_apart(char *at, size_t bytes)
{
	oc_quiet_madvise(at, bytes, MADV_DONTFORK);
	oc_quiet_madvise(at, bytes, MADV_DONTDUMP);
}

int oc_arena_map(int fd, size_t size, char **arena)
{
	size_t room;
	char *hole, *at = reserve(size, &hole, &room);
	int err;

	if (at == MAP_FAILED)
		return -errno;
	if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) ==
	    MAP_FAILED) {
		err = -errno;
		munmap(hole, room);
		return err;
	}
	unreserve(hole, room, at, size);
	set_apart(at, size);
	*arena = at;
	return 0;
}

size_t oc_arena_seed_bytes(size_t size, size_t step)
{
	return (size + step - 1) / step * PAGE;
}

int oc_arena_map_seeds(int fd, size_t size, size_t step, char **seeds)
{
	size_t bytes = oc_arena_seed_bytes(size, step);
	char *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int err;

	if (at == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i < bytes / PAGE; i++) {
		if (mmap(at + i * PAGE, PAGE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd,
			 (off_t)(i * step)) != MAP_FAILED)
			continue;
		err = -errno;
		munmap(at, bytes);
		return err;
	}
	set_apart(at, bytes);
	*seeds = at;
	return 0;
}

char *oc_arena_map_piece(char *seeds, size_t step, uint64_t off, size_t len)
{
	char *seed = seeds + off / step * PAGE;
	size_t skip = off % step, room;
	char *hole, *at = reserve(skip + len, &hole, &room);

	if (at == MAP_FAILED)
		return MAP_FAILED;
	/* What is locked would be filled at once: mlockall(2). */
	munlock(seed, PAGE);
	/* As long as it has to be, though the seed is a page: mremap(2). */
	if (oc_quiet_mremap(seed, 0, skip + len, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED) {
		munmap(hole, room);
		return MAP_FAILED;
	}
	unreserve(hole, room, at + skip, len);
	return at + skip;
}
