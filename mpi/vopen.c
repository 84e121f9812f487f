// SPDX-License-Identifier: BSD-3-Clause
/*
 * What is served of a vector of blocks, and where that is: as it lies, if that is in one piece or,
 * with types that have gaps, or several types, in pieces that are long enough; else in a copy.
 */
#include "vopen.h"

#include <stdlib.h>
#include <string.h>

#include "adapter.h"
#include "buffer.h"
#include "exec/pieces.h"
#include "typemap.h"

enum how {
	HOW_COPY,
	HOW_PLAIN, /* in one piece, for which no map is needed */
	HOW_PIECES,
};

struct block {
	struct oc_typemap *map; /* of its type, or NULL */
	enum how how;
	bool shares; /* the map is the one of the served block before */
};

static bool is_one_piece(const struct block *block, int64_t count)
{
	return block->how == HOW_PLAIN || oc_typemap_is_dense(block->map) ||
	       (count == 1 && block->map->one->nruns == 1);
}

static uint64_t pieces_of(const struct block *block, int64_t count)
{
	if (block->how == HOW_COPY || is_one_piece(block, count))
		return 1;
	return block->map->one->npieces * (uint64_t)count;
}

static struct block look_at(MPI_Datatype type, int64_t count, int blocks)
{
	struct block block = {.map = oc_typemap_get(type), .how = HOW_PIECES};

	if (!block.map)
		block.how = oc_type_contiguous(type) ? HOW_PLAIN : HOW_COPY;
	else if (!is_one_piece(&block, count) &&
		 !oc_typemap_pays(block.map, (uint64_t)count, blocks))
		block.how = HOW_COPY;
	return block;
}

bool oc_vbuffer_packs(MPI_Datatype type, int64_t count, int blocks)
{
	struct block block;

	if (oc_type_is_plain(type))
		return false;
	block = look_at(type, count, blocks);
	oc_typemap_put(block.map);
	return block.how == HOW_COPY;
}

/* Decides for each served block. How many pieces that makes. */
static uint64_t look_at_all(const struct oc_vbuffer *v, struct block *blocks)
{
	uint64_t pieces = 0;
	int last = -1;

	for (int i = 0; i < v->n; i++) {
		if (!v->len[i])
			continue;
		if (v->apart) {
			blocks[i] = (struct block){.how = HOW_COPY};
		} else if (last >= 0 && oc_vbuffer_type(v, last) == oc_vbuffer_type(v, i) &&
			   (oc_counts_at(v->counts, last) == 1) ==
				   (oc_counts_at(v->counts, i) == 1)) {
			blocks[i] = blocks[last];
			blocks[i].shares = true;
		} else {
			blocks[i] =
				look_at(oc_vbuffer_type(v, i), oc_counts_at(v->counts, i), v->n);
		}
		pieces += pieces_of(&blocks[i], oc_counts_at(v->counts, i));
		last = i;
	}
	return pieces;
}

static int64_t distance(const char *from, const char *to)
{
	return (int64_t)((uintptr_t)to - (uintptr_t)from);
}

/* The runs of a block, from where the user's buffer begins. */
static void add_block(const struct oc_vbuffer *v, int i, const struct block *block, MPI_Aint extent,
		      struct oc_layout *layout)
{
	int64_t at = distance(v->user, oc_vbuffer_user(v, i, extent));
	int64_t count = oc_counts_at(v->counts, i);

	if (block->how == HOW_PIECES && !is_one_piece(block, count)) {
		for (int64_t k = 0; k < count; k++)
			oc_layout_add_element(layout, block->map->one,
					      at + k * block->map->one->extent);
		return;
	}
	if (block->how == HOW_COPY)
		at = distance(v->user, v->copy.at + v->put[i]);
	else if (block->how == HOW_PIECES)
		at += block->map->one->piece[0].at;
	oc_layout_add_run(layout, (struct oc_run){.at = at, .len = v->len[i]});
}

/* The sequence, in @pieces or fewer. */
static int join(struct oc_vbuffer *v, const struct block *blocks, uint64_t pieces)
{
	struct oc_layout *layout = oc_layout_begin((uint32_t)pieces);
	MPI_Aint lb, extent = 0;
	int err = MPI_SUCCESS;

	if (!layout)
		return MPI_ERR_NO_MEM;
	if (!v->types)
		err = pmpi()->Type_get_extent(v->type, &lb, &extent);
	for (int i = 0; i < v->n && !err; i++)
		if (v->len[i])
			add_block(v, i, &blocks[i], extent, layout);
	v->at = v->user;
	v->layout = oc_layout_end(layout, 0, 1);
	if (!err && v->layout && v->layout->nruns == 1) {
		v->at = oc_layout_at(v->user, v->layout->piece[0].at);
		free(v->layout);
		v->layout = NULL;
	}
	return err;
}

/* The served blocks one after the other. */
static int place(struct oc_vbuffer *v)
{
	struct block blocks[OC_MAX_RANKS];
	uint64_t pieces = look_at_all(v, blocks);
	bool many = pieces > OC_PIECES_MAX, joins = false;
	size_t copied = 0;
	int err;

	v->bytes = 0;
	for (int i = 0; i < v->n; i++) {
		v->off[i] = v->bytes;
		v->bytes += v->len[i];
		if (!v->len[i])
			continue;
		if (many && blocks[i].how == HOW_PIECES)
			blocks[i].how = HOW_COPY;
		if (blocks[i].how == HOW_COPY) {
			v->put[i] = copied;
			copied += v->len[i];
		}
		joins = joins || blocks[i].how != HOW_COPY;
	}
	err = oc_vbuffer_alloc(v, copied);
	v->at = v->copy.at;
	if (!err && joins)
		err = join(v, blocks, many ? (uint64_t)v->n : pieces);
	for (int i = 0; i < v->n; i++)
		if (v->len[i] && !blocks[i].shares)
			oc_typemap_put(blocks[i].map);
	return err;
}

/* The served blocks stay where they are: [at, at + bytes) spans them. */
static void place_in_user(struct oc_vbuffer *v, MPI_Aint extent)
{
	ptrdiff_t low = 0, high = 0;
	bool any = false;

	for (int i = 0; i < v->n; i++) {
		ptrdiff_t at = oc_counts_at(v->displs, i) * extent;

		if (!v->len[i])
			continue;
		if (!any || at < low)
			low = at;
		if (!any || at + (ptrdiff_t)v->len[i] > high)
			high = at + (ptrdiff_t)v->len[i];
		any = true;
	}
	v->plain = true;
	v->at = (char *)v->user + low;
	v->bytes = (size_t)(high - low);
	for (int i = 0; i < v->n; i++)
		v->off[i] = v->len[i] ? (uint64_t)(oc_counts_at(v->displs, i) * extent - low) : 0;
}

/* @size: of an element, where all blocks have one type. */
static size_t block_bytes(const struct oc_vbuffer *v, int i, size_t size)
{
	int64_t count = oc_counts_at(v->counts, i);

	if (v->types)
		return oc_block_bytes(count, v->types[i]);
	return count > 0 ? (size_t)count * size : 0;
}

/* What is served, and what is the MPI's. */
static int begin(struct oc_vbuffer *v, const struct oc_vector *vector, size_t min)
{
	size_t size = vector->types ? 0 : oc_type_bytes(vector->type, 1);
	int n = vector->n;

	memset(v, 0, offsetof(struct oc_vbuffer, rest));
	v->n = n;
	v->skip = vector->skip;
	v->user = (void *)(uintptr_t)vector->user;
	v->counts = vector->counts;
	v->displs = vector->displs;
	v->type = vector->type;
	v->types = vector->types;
	for (int i = 0; i < n; i++)
		oc_vbuffer_set_rest(v, i,
				    i != v->skip && block_bytes(v, i, size) >= min
					    ? 0
					    : oc_counts_at(v->counts, i));
	v->off = calloc(4 * (size_t)n, sizeof(*v->off));
	if (!v->off)
		return MPI_ERR_NO_MEM;
	v->len = v->off + n;
	v->put = v->len + 2 * (size_t)n;
	for (int i = 0; i < n; i++) {
		v->put[i] = OC_VBUFFER_NOWHERE;
		if (oc_vbuffer_serves(v, i))
			v->len[i] = block_bytes(v, i, size);
	}
	return MPI_SUCCESS;
}

int oc_vbuffer_open(struct oc_vbuffer *v, const struct oc_vector *vector, size_t min)
{
	int err = begin(v, vector, min);
	MPI_Aint lb, extent;

	if (err)
		return err;
	if (v->types || vector->close || !oc_type_contiguous(v->type))
		return place(v);
	if (pmpi()->Type_get_extent(v->type, &lb, &extent))
		return MPI_ERR_TYPE;
	place_in_user(v, extent);
	return MPI_SUCCESS;
}

int oc_vbuffer_open_apart(struct oc_vbuffer *v, const struct oc_vector *vector, size_t min)
{
	int err = begin(v, vector, min);

	v->apart = true;
	return err ? err : place(v);
}
