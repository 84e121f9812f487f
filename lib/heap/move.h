/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_MOVE_H
#define OC_HEAP_MOVE_H

#include <stdbool.h>
#include <stddef.h>

struct oc_heap_arena;

/*
 * Moves an extent of @bytes from @from to a larger one at @to, a piece at a time whose
 * pages go back to the system: both together take little more memory than one. Pages
 * of a file cannot move within it, or none would be copied. What was never touched
 * stays so. True if all pages of @from were given back.
 */
bool oc_heap_move(const struct oc_heap_arena *arena, char *to, char *from, size_t bytes);

#endif
