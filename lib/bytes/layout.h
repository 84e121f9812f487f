/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_LAYOUT_H
#define OC_LAYOUT_H

/*
 * Layouts: where the bytes of memory lie that is used as one sequence but is not in one piece,
 * as MPI's derived datatypes are laid out. So many elements, each an extent from the one before,
 * all with the same runs in the same order. Runs of one length that are as far apart as each from
 * the next, as a column's of a matrix, are one entry. Of one piece of memory, without pointers, so
 * that it may be copied to where peers read it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs of @len bytes, as many as there are before the next piece starts. */
struct oc_layout_piece {
	int64_t at;	/* the first, from where its element begins */
	uint64_t start; /* bytes of the element before it */
	uint64_t len;
	int64_t stride; /* from a run to the next */
};

struct oc_layout {
	uint64_t origin; /* of who keeps it: where the first element begins */
	uint64_t bytes;	 /* of an element */
	int64_t extent;
	uint64_t count; /* elements */
	int64_t low;	/* every byte is in [low, high) from where the first element begins */
	int64_t high;
	uint32_t npieces;
	uint32_t nruns;			/* of an element; UINT32_MAX: as many or more */
	struct oc_layout_piece piece[]; /* npieces, and one whose start is bytes */
};

/* How many runs a piece has that ends before byte @end of the element. */
static inline uint64_t oc_layout_runs(const struct oc_layout_piece *piece, uint64_t end)
{
	return (end - piece->start) / piece->len;
}

/* Bytes that follow each other, from where the element begins. */
struct oc_run {
	int64_t at;
	uint64_t len;
};

/* A layout of @count elements, each of these runs in this order, for the caller to free(). Runs
 * that touch become one. NULL without memory, or if there is nothing in it. */
struct oc_layout *oc_layout_make(const struct oc_run *runs, uint32_t n, int64_t extent,
				 uint64_t count);

/* The same step by step: one with room for @npieces, to which runs, or what an element of another
 * layout has, @at so far from there, are added. What is added takes no more room than it has
 * pieces. */
struct oc_layout *oc_layout_begin(uint32_t npieces);
void oc_layout_add_run(struct oc_layout *layout, struct oc_run run);
void oc_layout_add_element(struct oc_layout *layout, const struct oc_layout *element, int64_t at);
/* NULL, and @layout is freed, if there is nothing in it. */
struct oc_layout *oc_layout_end(struct oc_layout *layout, int64_t extent, uint64_t count);

/* The same of @count elements like those of @one, of which that has one. NULL without memory, or if
 * addresses would not do for them. */
struct oc_layout *oc_layout_repeat(const struct oc_layout *one, uint64_t count);

/* Whether any number of elements is in one piece, from where the first has its first byte. */
static inline bool oc_layout_is_dense(const struct oc_layout *layout)
{
	return layout->nruns == 1 && layout->extent == (int64_t)layout->bytes;
}

/* Bytes of a layout itself, with so many pieces. */
static inline size_t oc_layout_size(uint32_t npieces)
{
	return sizeof(struct oc_layout) + ((size_t)npieces + 1) * sizeof(struct oc_layout_piece);
}

/* Where a byte so far from a base is. */
static inline char *oc_layout_at(const char *base, int64_t at)
{
	return (char *)((uintptr_t)base + (uintptr_t)at);
}

#endif
