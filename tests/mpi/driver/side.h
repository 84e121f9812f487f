/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_SIDE_H
#define OC_TEST_SIDE_H

/* One side of a collective call: a buffer of some kind with blocks of elements
 * in some layout, guard bytes around and between them. */

#include <stdbool.h>
#include <stddef.h>

#include "element.h"
#include "memory.h"

#define SIDE_BLOCKS 32
#define SIDE_UNIT   6

enum side_layout {
	LAYOUT_PLAIN,
	LAYOUT_CONTIGUOUS,
	LAYOUT_VECTOR,
	LAYOUT_INDEXED, /* displacements out of order */
	LAYOUT_STRUCT,
	LAYOUT_RESIZED,
	LAYOUT_COUNT
};

struct side {
	const struct element *e;
	struct memory memory;
	char *at;   /* what MPI gets */
	char *copy; /* the whole memory as it was filled */
	MPI_Datatype type;
	bool derived;
	int n; /* elements of a unit of the type */
	ptrdiff_t off[SIDE_UNIT];
	ptrdiff_t extent;
	int blocks;
	long count[SIDE_BLOCKS]; /* elements */
	int units[SIDE_BLOCKS];
	int displs[SIDE_BLOCKS]; /* units */
};

int side_layout_find(const char *name); /* -1: no such */

/* Takes the blocks' counts from the struct. @scatter: blocks in random order
 * with gaps, else one after the other. The memory is filled with a pattern. */
void side_open(struct side *s, const struct element *e, enum side_layout layout,
	       enum memory_kind kind, int which, size_t align, bool scatter, uint64_t seed,
	       char *stack);
void side_close(struct side *s);

char *side_element(const struct side *s, int block, long i);

/* Remembers the memory as it is, to compare it later. */
void side_keep(struct side *s);

/* True if the whole memory is as kept. Bytes of elements no standard gives a
 * meaning to are not looked at. */
bool side_unchanged(struct side *s);

/* The same for a copy side_keep() made, at the element's place in it. */
char *side_kept(const struct side *s, int block, long i);

uint64_t side_digest(const struct side *s);

#endif
