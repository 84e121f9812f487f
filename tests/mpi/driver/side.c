// SPDX-License-Identifier: BSD-3-Clause
#include "side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD ((size_t)64)

int side_layout_find(const char *name)
{
	static const char *const names[LAYOUT_COUNT] = {
		[LAYOUT_PLAIN] = "plain",   [LAYOUT_CONTIGUOUS] = "contiguous",
		[LAYOUT_VECTOR] = "vector", [LAYOUT_INDEXED] = "indexed",
		[LAYOUT_STRUCT] = "struct", [LAYOUT_RESIZED] = "resized",
	};

	for (int i = 0; i < LAYOUT_COUNT; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

static void set_offsets(struct side *s, int n, const int *places)
{
	s->n = n;
	for (int i = 0; i < n; i++)
		s->off[i] = places[i] * (ptrdiff_t)s->e->size;
}

static void make_type(struct side *s, enum side_layout layout)
{
	MPI_Datatype base = s->e->type, pair;
	MPI_Aint size = (MPI_Aint)s->e->size, lb;

	s->derived = layout != LAYOUT_PLAIN;
	switch (layout) {
	case LAYOUT_CONTIGUOUS:
		MPI_Type_contiguous(4, base, &s->type);
		set_offsets(s, 4, (int[]){0, 1, 2, 3});
		break;
	case LAYOUT_VECTOR:
		MPI_Type_vector(3, 2, 3, base, &s->type);
		set_offsets(s, 6, (int[]){0, 1, 3, 4, 6, 7});
		break;
	case LAYOUT_INDEXED:
		MPI_Type_indexed(3, (int[]){1, 1, 1}, (int[]){4, 0, 2}, base, &s->type);
		set_offsets(s, 3, (int[]){4, 0, 2});
		break;
	case LAYOUT_STRUCT:
		MPI_Type_create_struct(3, (int[]){2, 1, 1}, (MPI_Aint[]){3 * size, 0, 6 * size},
				       (MPI_Datatype[]){base, base, base}, &s->type);
		set_offsets(s, 4, (int[]){3, 4, 0, 6});
		break;
	case LAYOUT_RESIZED:
		MPI_Type_contiguous(2, base, &pair);
		MPI_Type_create_resized(pair, -size, 4 * size, &s->type);
		MPI_Type_free(&pair);
		set_offsets(s, 2, (int[]){0, 1});
		break;
	default:
		s->type = base;
		set_offsets(s, 1, (int[]){0});
	}
	if (s->derived)
		MPI_Type_commit(&s->type);
	MPI_Type_get_extent(s->type, &lb, &s->extent);
}

static bool divides(const struct side *s, int n)
{
	for (int b = 0; b < s->blocks; b++)
		if (s->count[b] % n)
			return false;
	return true;
}

/* In a random order with gaps, or in a row. Units needed. */
static long place_blocks(struct side *s, bool scatter, uint64_t seed)
{
	int order[SIDE_BLOCKS];
	long at = 0;

	for (int b = 0; b < s->blocks; b++) {
		int k = scatter ? (int)(element_hash(seed, 1, (uint64_t)b) % (uint64_t)(b + 1)) : b;

		order[b] = order[k];
		order[k] = b;
	}
	for (int i = 0; i < s->blocks; i++) {
		int b = order[i];

		if (scatter)
			at += (long)(element_hash(seed, 2, (uint64_t)b) % 9);
		s->units[b] = (int)(s->count[b] / s->n);
		s->displs[b] = (int)at;
		at += s->units[b];
	}
	return at;
}

void side_open(struct side *s, const struct element *e, enum side_layout layout,
	       enum memory_kind kind, int which, size_t align, bool scatter, uint64_t seed,
	       char *stack)
{
	static const int units[LAYOUT_COUNT] = {1, 4, 6, 3, 4, 2};
	size_t bytes;

	s->e = e;
	make_type(s, divides(s, units[layout]) ? layout : LAYOUT_PLAIN);
	bytes = (size_t)place_blocks(s, scatter, seed) * (size_t)s->extent;
	memory_open(&s->memory, kind, which, 2 * GUARD + align + bytes, stack);
	s->at = s->memory.base + GUARD + align;
	s->copy = malloc(s->memory.bytes);
	if (!s->copy) {
		fprintf(stderr, "no memory\n");
		MPI_Abort(MPI_COMM_WORLD, 3);
	}
	for (size_t i = 0; i < s->memory.bytes; i++)
		s->memory.base[i] = (char)(i * 7 + seed);
}

void side_close(struct side *s)
{
	memory_close(&s->memory);
	free(s->copy);
	if (s->derived)
		MPI_Type_free(&s->type);
}

char *side_element(const struct side *s, int block, long i)
{
	return s->at + (s->displs[block] + i / s->n) * s->extent + s->off[i % s->n];
}

char *side_kept(const struct side *s, int block, long i)
{
	return s->copy + (side_element(s, block, i) - s->memory.base);
}

void side_keep(struct side *s)
{
	memcpy(s->copy, s->memory.base, s->memory.bytes);
}

bool side_unchanged(struct side *s)
{
	for (int b = 0; b < s->blocks; b++)
		for (long i = 0; i < s->count[b]; i++) {
			element_clean(s->e, side_element(s, b, i));
			element_clean(s->e, side_kept(s, b, i));
		}
	for (size_t i = 0; i < s->memory.bytes; i++)
		if (s->copy[i] != s->memory.base[i]) {
			fprintf(stderr, "byte %td of %zu: %02x, expected %02x\n",
				s->memory.base + i - s->at, s->memory.bytes,
				(unsigned char)s->memory.base[i], (unsigned char)s->copy[i]);
			return false;
		}
	return true;
}

uint64_t side_digest(const struct side *s)
{
	uint64_t digest = 0;

	for (size_t i = 0; i < s->memory.bytes; i++)
		digest = element_hash(digest, (unsigned char)s->memory.base[i], i);
	return digest;
}
