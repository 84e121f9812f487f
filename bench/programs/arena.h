/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_ARENA_H
#define BENCH_ARENA_H

/* Large buffers in the kinds of memory that programs have. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARENA_PAGE 4096

enum memory { MEMORY_HEAP, MEMORY_STATIC, MEMORY_STACK, MEMORY_MMAP };

struct arena {
	enum memory memory;
	void *block;
	size_t bytes; /* of it */
	uint32_t *words;
};

/* heap, static, stack, mmap. */
bool memory_parse(const char *text, enum memory *memory);

/* Whether the stack may grow by as much. */
bool arena_stack_holds(size_t bytes);

/*
 * @bytes that begin at a page, touched. On the stack they are the caller's: @stack
 * has room for them and a page. False when there is no such memory. At most two
 * in static data.
 */
bool arena_init(struct arena *arena, enum memory memory, size_t bytes, void *stack);
void arena_deinit(struct arena *arena);

#endif
