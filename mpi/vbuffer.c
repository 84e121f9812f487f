// SPDX-License-Identifier: BSD-3-Clause
#include "vbuffer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter.h"
#include "buffer.h"
#include "heap/heap.h"
#include "heap/place.h"
#include "heap/static_data.h"
#include "type_sizes.h"

int oc_vbuffer_alloc(struct oc_vbuffer *v, size_t bytes)
{
	return !bytes || oc_scratch_alloc(&v->copy, bytes) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

char *oc_vbuffer_user(const struct oc_vbuffer *v, int i, MPI_Aint extent)
{
	return oc_layout_at(v->user, oc_counts_at(v->displs, i) * (v->types ? 1 : extent));
}

/* A block that the call names, from the first served byte on. */
struct extent {
	ptrdiff_t at;
	ptrdiff_t end;
	int block;
};

static int compare_extents(const void *a, const void *b)
{
	ptrdiff_t x = ((const struct extent *)a)->at, y = ((const struct extent *)b)->at;

	return (x > y) - (x < y);
}

/* The blocks in the order of their places, malloc'ed; how many, or -1. */
static int sort_blocks(const struct oc_vbuffer *v, struct extent **sorted)
{
	ptrdiff_t size = (ptrdiff_t)oc_type_bytes(v->type, 1);
	struct extent *to = malloc((size_t)v->n * sizeof(*to));
	int n = 0;

	if (!to)
		return -1;
	for (int i = 0; i < v->n; i++) {
		ptrdiff_t at = (char *)v->user - v->at + oc_counts_at(v->displs, i) * size,
			  count = oc_counts_at(v->counts, i);

		if (count > 0 && i != v->skip)
			to[n++] = (struct extent){at, at + count * size, i};
	}
	qsort(to, (size_t)n, sizeof(*to), compare_extents);
	*sorted = to;
	return n;
}

/*
 * Whether there can be a page in the span of the served blocks that holds nothing
 * of any block: it may be unreadable, be missing, or be one of very many. Blocks
 * left to the MPI are as readable as served ones.
 */
static bool has_hole(const struct oc_vbuffer *v, const struct extent *sorted, int n)
{
	ptrdiff_t end = 0, page = sysconf(_SC_PAGESIZE);

	for (int i = 0; i < n && end < (ptrdiff_t)v->bytes; i++) {
		if (sorted[i].at - end >= page)
			return true;
		if (sorted[i].end > end)
			end = sorted[i].end;
	}
	return false;
}

/* Moves the served blocks together, in the same order, those that overlap as they
 * do. */
static void close_gaps(struct oc_vbuffer *v, const struct extent *sorted, int n)
{
	ptrdiff_t end = 0, gaps = 0;

	for (int i = 0; i < n; i++) {
		const struct extent *it = &sorted[i];

		if (!v->len[it->block])
			continue;
		if (it->at > end)
			gaps += it->at - end;
		if (it->end > end)
			end = it->end;
		v->off[it->block] = (uint64_t)(it->at - gaps);
	}
	v->bytes = (size_t)(end - gaps);
}

bool oc_blocks_find(struct oc_counts counts, MPI_Datatype type, int n, size_t min, int skip)
{
	size_t size = oc_type_bytes(type, 1);

	for (int i = 0; i < n; i++) {
		int64_t count = oc_counts_at(counts, i);

		if (i != skip && count > 0 && (size_t)count * size >= min)
			return true;
	}
	return false;
}

size_t oc_block_bytes(int64_t count, MPI_Datatype type)
{
	return count > 0 && type && type != oc_abi.type_null ? oc_type_bytes(type, (size_t)count)
							     : 0;
}

bool oc_blocks_wrong_each(struct oc_counts counts, struct oc_counts displs,
			  const MPI_Datatype *types, int n)
{
	if (!counts.at || !displs.at || !types)
		return true;
	for (int i = 0; i < n; i++) {
		int64_t count = oc_counts_at(counts, i);

		if (count && oc_block_wrong(count, types[i]))
			return true;
	}
	return false;
}

bool oc_blocks_find_each(struct oc_counts counts, const MPI_Datatype *types, int n, size_t min,
			 int skip)
{
	for (int i = 0; i < n; i++) {
		int64_t count = oc_counts_at(counts, i);

		if (i != skip && count > 0 && oc_block_bytes(count, types[i]) >= min)
			return true;
	}
	return false;
}

MPI_Count oc_pair_rest(enum oc_pair pair, MPI_Count count, bool sends, int *failure)
{
	if (pair == OC_PAIR_TOGETHER)
		return 0;
	if ((pair == OC_PAIR_MORE) == sends)
		return count;
	if (!*failure)
		*failure = MPI_ERR_TRUNCATE;
	return pair == OC_PAIR_ABSENT ? 1 : 0;
}

void oc_vbuffer_part(struct oc_vbuffer *v, const uint8_t *pair, bool sends, int *failure)
{
	for (int i = 0; i < v->n; i++) {
		if (pair[i] == OC_PAIR_TOGETHER)
			continue;
		oc_vbuffer_set_rest(
			v, i, oc_pair_rest(pair[i], oc_counts_at(v->counts, i), sends, failure));
		if (v->len)
			v->len[i] = 0;
	}
}

bool oc_vbuffer_own(struct oc_vbuffer *v, int rank, MPI_Count count, MPI_Datatype type, bool sends,
		    uint8_t *pair)
{
	if (!oc_vbuffer_serves(v, rank))
		return false;
	if (oc_same_bytes(
		    count, type,
		    oc_type_bytes(oc_vbuffer_type(v, rank), (size_t)oc_counts_at(v->counts, rank))))
		return true;
	pair[rank] = sends ? OC_PAIR_LESS : OC_PAIR_MORE;
	if (v->len)
		v->len[rank] = 0;
	return false;
}

static int convert(struct oc_vbuffer *v, bool pack)
{
	MPI_Aint lb, extent = 0;
	int err = MPI_SUCCESS;

	if (!v->copy.at)
		return MPI_SUCCESS;
	if (!v->types)
		err = pmpi()->Type_get_extent(v->type, &lb, &extent);
	for (int i = 0; i < v->n && !err; i++)
		if (v->len[i] && v->put[i] != OC_VBUFFER_NOWHERE)
			err = oc_convert(oc_vbuffer_user(v, i, extent), v->copy.at + v->put[i],
					 (size_t)oc_counts_at(v->counts, i), oc_vbuffer_type(v, i),
					 pack);
	return err;
}

/* In memory that can have holes: the heap's pages are all there, and never copied. */
static bool is_foreign(const struct oc_vbuffer *v)
{
	return v->bytes && v->plain && !v->copy.at && !oc_heap_find(v->at, v->bytes);
}

bool oc_vbuffer_has_hole(const struct oc_vbuffer *v)
{
	struct extent *sorted;
	bool hole;
	int n;

	if (!is_foreign(v))
		return false;
	n = sort_blocks(v, &sorted);
	if (n < 0)
		return true;
	hole = has_hole(v, sorted, n);
	free(sorted);
	return hole;
}

/* Peers are given the whole span, and what they cannot reach is staged so: with
 * a hole in it, a copy of the blocks takes its place. */
static int leave_hole(struct oc_vbuffer *v)
{
	struct extent *sorted;
	int err = MPI_SUCCESS, n;

	if (!is_foreign(v))
		return MPI_SUCCESS;
	n = sort_blocks(v, &sorted);
	if (n < 0)
		return MPI_ERR_NO_MEM;
	if (has_hole(v, sorted, n)) {
		close_gaps(v, sorted, n);
		memcpy(v->put, v->off, (size_t)v->n * sizeof(*v->put));
		err = oc_vbuffer_alloc(v, v->bytes);
		v->at = v->copy.at;
	}
	free(sorted);
	return err;
}

void oc_vbuffer_place(const struct oc_vbuffer *v)
{
	for (int i = 0; i < v->n && !v->layout; i++) {
		char *at = v->len[i] ? oc_heap_find(v->at + v->off[i], v->len[i]) : NULL;

		if (at)
			oc_heap_place(at, v->len[i]);
	}
}

int oc_vbuffer_pack(struct oc_vbuffer *v)
{
	int err = leave_hole(v);

	return err ? err : convert(v, true);
}

int oc_vbuffer_unpack(struct oc_vbuffer *v)
{
	return convert(v, false);
}

void oc_vbuffer_close(struct oc_vbuffer *v)
{
	oc_scratch_free(&v->copy);
	free(v->layout);
	free(v->off);
}
