// SPDX-License-Identifier: BSD-3-Clause
#include "arena.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define MAX_STATIC  ((size_t)768 << 20) /* costs memory only where it is used */
#define STACK_SPARE ((size_t)1 << 20)

bool memory_parse(const char *text, enum memory *memory)
{
	static const char *const names[] = {[MEMORY_HEAP] = "heap",
					    [MEMORY_STATIC] = "static",
					    [MEMORY_STACK] = "stack",
					    [MEMORY_MMAP] = "mmap"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]))
			continue;
		*memory = (enum memory)i;
		return true;
	}
	return false;
}

bool arena_stack_holds(size_t bytes)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_STACK, &limit) &&
	       (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes + STACK_SPARE);
}

static void *allocate(enum memory memory, size_t bytes)
{
	static char data[2][MAX_STATIC];
	static int taken;
	void *at;

	switch (memory) {
	case MEMORY_HEAP:
		return malloc(bytes);
	case MEMORY_STATIC:
		return bytes <= MAX_STATIC && taken < 2 ? data[taken++] : NULL;
	case MEMORY_MMAP:
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		return at == MAP_FAILED ? NULL : at;
	case MEMORY_STACK:
		break;
	}
	return NULL;
}

bool arena_init(struct arena *arena, enum memory memory, size_t bytes, void *stack)
{
	uintptr_t mask = ARENA_PAGE - 1;

	arena->memory = memory;
	arena->bytes = bytes + ARENA_PAGE;
	arena->block = memory == MEMORY_STACK ? stack : allocate(memory, arena->bytes);
	if (!arena->block)
		return false;
	arena->words = (uint32_t *)(((uintptr_t)arena->block + mask) & ~mask);
	memset(arena->words, 1, bytes);
	return true;
}

void arena_deinit(struct arena *arena)
{
	if (arena->memory == MEMORY_HEAP)
		free(arena->block);
	else if (arena->memory == MEMORY_MMAP)
		munmap(arena->block, arena->bytes);
}
