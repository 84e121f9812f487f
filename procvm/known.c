// SPDX-License-Identifier: BSD-3-Clause
#include "known.h"

#include <link.h>
#include <stdint.h>

#include "heap/arena.h"

#define OBJECTS 64

/* Linux leaves the main thread's stack 128 MiB to grow before the next mapping that it places
 * itself, whatever the limit (mmap_base() of arch/x86/mm/mmap.c and others). */
#define STACK_ROOM ((uintptr_t)96 << 20)

/* The main thread's stack ends there; set by ld.so. */
extern void *__libc_stack_end;

struct range {
	uintptr_t from;
	uintptr_t to;
};

static struct range data[OBJECTS];
static size_t objects, of_program; /* the first are the program's */
static unsigned long long unloaded;

static int note_unloaded(struct dl_phdr_info *info, size_t size, void *count)
{
	*(unsigned long long *)count = info->dlpi_subs;
	return 1;
}

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
	if (!of_program)
		of_program = objects;
	return 0;
}

__attribute__((constructor)) static void find_objects(void)
{
	dl_iterate_phdr(note_unloaded, &unloaded);
	dl_iterate_phdr(add_object, NULL);
}

/* A library of those that were here may be gone, and its place taken. */
static bool has_unloaded(void)
{
	unsigned long long now = 0;

	dl_iterate_phdr(note_unloaded, &now);
	return now != unloaded;
}

static bool is_in(const struct range *range, uintptr_t from, size_t bytes)
{
	return from >= range->from && from <= range->to && bytes <= range->to - from;
}

/* Whoever is on the main thread's stack: those of other threads and coroutines are elsewhere. */
static bool is_on_stack(uintptr_t from, size_t bytes)
{
	struct range used = {
		.from = (uintptr_t)__builtin_frame_address(0),
		.to = (uintptr_t)__libc_stack_end,
	};

	return used.from < used.to && used.to - used.from < STACK_ROOM && is_in(&used, from, bytes);
}

bool oc_procvm_known(const void *p, size_t bytes)
{
	uintptr_t from = (uintptr_t)p;

	if (oc_heap_contains(p, bytes) || is_on_stack(from, bytes))
		return true;
	for (size_t i = 0; i < objects; i++)
		if (is_in(&data[i], from, bytes))
			return i < of_program || !has_unloaded();
	return false;
}
