/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_ARENA_MAP_H
#define OC_ARENA_MAP_H

/*
 * Mappings of a peer's arena: all of it, or pieces, which are made out of seeds, a page of
 * the arena every @step bytes that stays mapped (mremap(2) with an old size of zero): this
 * needs no descriptor. Not inherited by fork, nor in core files. Any thread.
 */

#include <stddef.h>
#include <stdint.h>

/* The whole arena @fd of @size bytes, at *@arena. 0 or -errno. */
int oc_arena_map(int fd, size_t size, char **arena);

/* Its seeds, oc_arena_seed_bytes() at *@seeds. 0 or -errno. */
int oc_arena_map_seeds(int fd, size_t size, size_t step, char **seeds);
size_t oc_arena_seed_bytes(size_t size, size_t step);

/* [off, off + len) of the arena the seeds belong to, or MAP_FAILED. The caller unmaps it. */
char *oc_arena_map_piece(char *seeds, size_t step, uint64_t off, size_t len);

#endif
