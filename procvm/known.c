// SPDX-License-Identifier: BSD-3-Clause
#include "known.h"

#include <link.h>
#include <stdint.h>
#include <unistd.h>

#include "heap/arena.h"

#define OBJECTS 64

/* No other mapping is nearer below the top of the main thread's stack: Linux leaves that much
 * room for it to grow, whatever its limit (arch_pick_mmap_layout()). */
#define STACK_ROOM ((uintptr_t)96 << 20)

/* The main thread's stack ends there; set by ld.so. */
extern void *__libc_stack_end;

struct range {
	uintptr_t from;
	uintptr_t to;
};

static struct range data[OBJECTS];
static size_t objects;

/* Writable segments, without what becomes read-only once it is relocated. */
static int add_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t relro = 0;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
			relro = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr +
				info->dlpi_phdr[i].p_memsz;
	for (int i = 0; i < info->dlpi_phnum && objects < OBJECTS; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		struct range range = {.from = info->dlpi_addr + segment->p_vaddr};

		range.to = range.from + segment->p_memsz;
		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W))
			continue;
		if (relro > range.from)
			range.from = relro;
		if (range.from < range.to)
			data[objects++] = range;
	}
	return 0;
}

/* What is here before main() is never unloaded. */
__attribute__((constructor)) static void find_objects(void)
{
	dl_iterate_phdr(add_object, NULL);
}

static bool is_in(const struct range *range, uintptr_t from, size_t bytes)
{
	return from >= range->from && from <= range->to && bytes <= range->to - from;
}

static bool is_main_thread(void)
{
	static __thread signed char answer;

	if (!answer)
		answer = gettid() == getpid() ? 1 : -1;
	return answer > 0;
}

/* A coroutine's stack is elsewhere. */
static bool is_on_stack(uintptr_t from, size_t bytes)
{
	struct range used = {
		.from = (uintptr_t)__builtin_frame_address(0),
		.to = (uintptr_t)__libc_stack_end,
	};

	return used.from < used.to && used.to - used.from < STACK_ROOM &&
	       is_in(&used, from, bytes) && is_main_thread();
}

bool oc_procvm_known(const void *p, size_t bytes)
{
	uintptr_t from = (uintptr_t)p;

	if (oc_heap_contains(p, bytes) || is_on_stack(from, bytes))
		return true;
	for (size_t i = 0; i < objects; i++)
		if (is_in(&data[i], from, bytes))
			return true;
	return false;
}
