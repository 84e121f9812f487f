/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_MAKETYPE_H
#define OC_TEST_MAKETYPE_H

/* Random datatypes, made by every constructor, those with large counts among them. */

#include <mpi.h>
#include <stdint.h>

static uint64_t own_state; /* of what a rank draws for itself */

static uint64_t draw_from(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static int draw(int n)
{
	return (int)(draw_from(&own_state) % (uint64_t)n);
}

static MPI_Aint extent_of(MPI_Datatype type)
{
	MPI_Aint lb, extent;

	MPI_Type_get_extent(type, &lb, &extent);
	return extent;
}

static void shuffle(int *values, int n)
{
	for (int i = 0; i < n; i++) {
		int k = draw(i + 1);

		values[i] = values[k];
		values[k] = i;
	}
}

static MPI_Datatype make_box(MPI_Datatype base, int n)
{
	int sizes[3], subsizes[3], starts[3], dims = 1 + draw(3);
	MPI_Datatype type;

	for (int d = 0; d < dims; d++) {
		int most = n > 2 ? n / 2 : n;

		subsizes[d] = d == dims - 1 ? n : 1 + (most > 1 ? draw(2) : 0);
		n /= subsizes[d];
		sizes[d] = subsizes[d] + draw(3);
		starts[d] = draw(sizes[d] - subsizes[d] + 1);
	}
	MPI_Type_create_subarray(dims, sizes, subsizes, starts,
				 draw(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, base, &type);
	return type;
}

/* How one of @parts processes, not the last one perhaps, gets @n elements of a dimension. */
static void deal(int n, int *size, int *how, int *len, int *parts, int *at)
{
	int rounds = 1;

	*how = MPI_DISTRIBUTE_NONE;
	*len = MPI_DISTRIBUTE_DFLT_DARG;
	*size = n;
	*parts = 1;
	*at = 0;
	if (!draw(3))
		return;
	*how = draw(2) ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
	*parts = 1 + draw(3);
	*at = draw(*parts);
	if (*how == MPI_DISTRIBUTE_CYCLIC)
		while (n > 1 && draw(3)) {
			n /= 2;
			rounds *= 2;
		}
	/* All blocks there may be, or of the last turn only those up to this one's. */
	*size = n * *parts * (rounds - 1) + n * (draw(2) ? *parts : *at + 1);
	/* What is not said is 1, or as many as all others. */
	if (*how == MPI_DISTRIBUTE_CYCLIC ? n > 1 : draw(2) || *size < n * *parts)
		*len = n;
}

static MPI_Datatype make_dealt(MPI_Datatype base, int n)
{
	int size[2], how[2], len[2], parts[2], at[2], dims = 1 + draw(2), first = 1 << draw(3);
	MPI_Datatype type;

	first = dims == 1 || first > n ? n : first;
	for (int d = 0; d < dims; d++)
		deal(d ? n / first : first, &size[d], &how[d], &len[d], &parts[d], &at[d]);
	MPI_Type_create_darray(dims == 1 ? parts[0] : parts[0] * parts[1],
			       dims == 1 ? at[0] : at[0] * parts[1] + at[1], dims, size, how, len,
			       parts, draw(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, base, &type);
	return type;
}

#if MPI_VERSION >= 4
/* By constructors of which MPI_Type_get_envelope does not know. */
static MPI_Datatype make_large(MPI_Datatype base, int n, int most, int inner)
{
	MPI_Count lens[8], places[8], far[8], extent = extent_of(base), subsize = n, lb;
	MPI_Count sizes = n + draw(3), start = draw((int)sizes - n + 1);
	MPI_Datatype type, types[8];
	int dealt = MPI_DISTRIBUTE_BLOCK, all = MPI_DISTRIBUTE_DFLT_DARG, order[8], one = 1;

	shuffle(order, n);
	for (int i = 0; i < n; i++) {
		lens[i] = 1;
		places[i] = 2 * order[i] - 3;
		far[i] = places[i] * extent;
		types[i] = base;
	}
	switch (draw(10)) {
	case 0:
		MPI_Type_contiguous_c(n, base, &type);
		return type;
	case 1:
		MPI_Type_vector_c(most, inner, inner + draw(3), base, &type);
		return type;
	case 2:
		MPI_Type_create_hvector_c(most, inner, -(inner * extent + 4 * draw(9)), base,
					  &type);
		return type;
	case 3:
		MPI_Type_indexed_c(n, lens, places, base, &type);
		return type;
	case 4:
		MPI_Type_create_hindexed_c(n, lens, far, base, &type);
		return type;
	case 5:
		MPI_Type_create_indexed_block_c(n, 1, places, base, &type);
		return type;
	case 6:
		MPI_Type_create_hindexed_block_c(n, 1, far, base, &type);
		return type;
	case 7:
		MPI_Type_create_struct_c(n, lens, far, types, &type);
		return type;
	case 8:
		if (draw(2))
			MPI_Type_create_subarray_c(1, &sizes, &subsize, &start, MPI_ORDER_C, base,
						   &type);
		else
			MPI_Type_create_darray_c(1, 0, 1, &subsize, &dealt, &all, &one,
						 MPI_ORDER_FORTRAN, base, &type);
		return type;
	default:
		MPI_Type_contiguous(n, base, &types[0]);
		MPI_Type_get_extent_c(types[0], &lb, &extent);
		MPI_Type_create_resized_c(types[0], lb - 4 * draw(9), extent + 4 * draw(99), &type);
		MPI_Type_free(&types[0]);
		return type;
	}
}
#endif

/* @n elements of @base, in some order, which may be none of memory's. */
static MPI_Datatype make_derived(MPI_Datatype base, int n)
{
	int lens[8], places[8], most = n, inner = 1;
	MPI_Aint extent = extent_of(base), far[8], lb;
	MPI_Datatype type, types[8];

	shuffle(places, n);
	for (int i = 0; i < n; i++) {
		lens[i] = 1;
		places[i] = 2 * places[i] - 3;
		far[i] = places[i] * extent + 4 * draw(2) * (extent >= 4);
		types[i] = base;
	}
	while (most > 1 && draw(2)) {
		most /= 2;
		inner *= 2;
	}
#if MPI_VERSION >= 4
	if (!draw(3))
		return make_large(base, n, most, inner);
#endif
	switch (draw(12)) {
	case 0:
		MPI_Type_contiguous(n, base, &type);
		return type;
	case 1:
		MPI_Type_vector(most, inner, inner + draw(3), base, &type);
		return type;
	case 2:
		MPI_Type_create_hvector(most, inner, -(inner * extent + 4 * draw(9)), base, &type);
		return type;
	case 3:
		MPI_Type_indexed(n, lens, places, base, &type);
		return type;
	case 4:
		MPI_Type_create_hindexed(n, lens, far, base, &type);
		return type;
	case 5:
		MPI_Type_create_indexed_block(n, 1, places, base, &type);
		return type;
	case 6:
		MPI_Type_create_hindexed_block(n, 1, far, base, &type);
		return type;
	case 7:
		MPI_Type_create_struct(n, lens, far, types, &type);
		return type;
	case 8:
		return make_box(base, n);
	case 9:
		return make_dealt(base, n);
	case 10:
		MPI_Type_contiguous(n, base, &types[0]);
		MPI_Type_get_extent(types[0], &lb, &extent);
		MPI_Type_create_resized(types[0], lb - 4 * draw(9), extent + 4 * draw(99), &type);
		break;
	default:
		MPI_Type_contiguous(n, base, &types[0]);
		MPI_Type_dup(types[0], &type);
	}
	MPI_Type_free(&types[0]);
	return type;
}

/* Elements that lie between each other: columns of a matrix of @width. */
static MPI_Datatype make_column(MPI_Datatype base, int rows, int width)
{
	MPI_Datatype column, type;

	MPI_Type_vector(rows, 1, width, base, &column);
	MPI_Type_create_resized(column, 0, extent_of(base), &type);
	MPI_Type_free(&column);
	return type;
}

/* A type of 2^*log words, of which there are to be 2^words in each of @blocks. */
static MPI_Datatype make_type(int words, int blocks, int *log)
{
	int most = draw(words + 1), at = draw(most + 1), more;
	MPI_Datatype type, next;

	MPI_Type_contiguous(1 << at, MPI_INT, &type);
	while (at < most && draw(4)) {
		more = draw(most - at < 3 ? most - at + 1 : 4);
		next = make_derived(type, 1 << more);
		MPI_Type_free(&type);
		type = next;
		at += more;
	}
	if (at < words && !draw(4)) {
		more = 1 + draw(words - at < 5 ? words - at : 5);
		next = make_column(type, 1 << more, blocks * ((1 << (words - at - more)) + 2));
		MPI_Type_free(&type);
		type = next;
		at += more;
	}
	MPI_Type_commit(&type);
	*log = at;
	return type;
}

#endif
