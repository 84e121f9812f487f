// SPDX-License-Identifier: BSD-3-Clause
#include "base/space.h"

#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#define CHUNK_MIN    ((size_t)2 << 20) /* a huge page */
#define CHUNK_MAX    ((size_t)1 << 30)
#define RESIDENT_MIN ((size_t)256 << 20)

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Tests link stronger functions than the weak ones: another machine, small windows. */
#define WEAK __attribute__((weak))

/* The largest power of two that is no more. */
static size_t power_below(size_t bytes)
{
	return bytes ? (size_t)1 << (8 * sizeof(long) - 1 - (size_t)__builtin_clzl(bytes)) : 0;
}

WEAK void oc_space_measure(struct oc_space *space)
{
	/* The kernel puts this at the very top of the first stack, and that below the
	 * end of what mmap() uses unless it is asked for more. */
	size_t top = getauxval(AT_RANDOM);
	struct rlimit limit;
	struct sysinfo info;

	*space = (struct oc_space){.span = 2 * power_below(top), .limit = SIZE_MAX};
	if (!sysinfo(&info))
		space->memory = (size_t)info.totalram * info.mem_unit;
	if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY)
		space->limit = limit.rlim_cur;
}

static size_t taken;

void oc_space_take(size_t bytes)
{
	__atomic_fetch_add(&taken, bytes, __ATOMIC_RELAXED);
}

void oc_space_give(size_t bytes)
{
	__atomic_fetch_sub(&taken, bytes, __ATOMIC_RELAXED);
}

size_t oc_space_taken(void)
{
	return __atomic_load_n(&taken, __ATOMIC_RELAXED);
}

void oc_space_keep(size_t bytes)
{
	if (oc_space_taken() > bytes)
		__atomic_store_n(&taken, bytes, __ATOMIC_RELAXED);
}

size_t oc_space_arena(const struct oc_space *space)
{
	return least(least(2 * space->memory, space->span / 16), space->limit / 4);
}

/*
 * In units of a chunk's share, which is a 16th of a rank's share of all windows:
 * what one rank has in use lies in few pieces, at the beginning of the two parts of
 * its arena, so that two or three windows reach it, and all ranks together have no
 * more in use than the memory. Eviction is for programs that are unlike that.
 *
 * Pages touched through windows cost 8 bytes of page table for 4 KiB, in each
 * process. Eight times a rank's share of the memory makes that a 64th of the memory
 * for all ranks together. Most programs touch as much of their peers as they have
 * buffers of their own, an eighth of it.
 */
WEAK void oc_space_windows(const struct oc_space *space, uint32_t nranks,
			   struct oc_space_windows *out)
{
	size_t total = least(least(15 * space->memory, space->span / 64 * 3), space->limit / 4);
	size_t chunk = power_below(total / 16 / nranks);
	size_t resident = 8 * (space->memory / nranks);

	chunk = chunk < CHUNK_MIN ? CHUNK_MIN : least(chunk, CHUNK_MAX);
	*out = (struct oc_space_windows){
		.total = total,
		.chunk = chunk,
		.step = power_below(least(space->span / 128, space->limit / 16)),
		.resident = resident < RESIDENT_MIN ? RESIDENT_MIN : resident,
	};
	if (out->step < chunk)
		out->step = chunk;
}
