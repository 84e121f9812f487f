// SPDX-License-Identifier: BSD-3-Clause
#include "adapter.h"

#include <stdlib.h>

#include "heap.h"

/* Places the served blocks one after the other in a copy of their own. */
static int place_packed(struct oc_vbuffer *v)
{
	v->bytes = 0;
	for (int i = 0; i < v->n; i++) {
		v->off[i] = v->bytes;
		v->bytes += v->len[i];
	}
	if (!v->bytes)
		return MPI_SUCCESS;
	v->packed = true;
	v->at = oc_heap_alloc(v->bytes);
	v->heap = v->at != NULL;
	if (!v->at)
		v->at = malloc(v->bytes);
	return v->at ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* The served blocks stay where they are: [at, at + bytes) spans them. */
static void place_in_user(struct oc_vbuffer *v, MPI_Aint extent)
{
	ptrdiff_t low = 0, high = 0;
	bool any = false;

	for (int i = 0; i < v->n; i++) {
		ptrdiff_t at = (ptrdiff_t)v->displs[i] * extent;

		if (!v->len[i])
			continue;
		if (!any || at < low)
			low = at;
		if (!any || at + (ptrdiff_t)v->len[i] > high)
			high = at + (ptrdiff_t)v->len[i];
		any = true;
	}
	v->at = (char *)v->user + low;
	v->bytes = (size_t)(high - low);
	for (int i = 0; i < v->n; i++)
		v->off[i] = v->len[i] ? (uint64_t)((ptrdiff_t)v->displs[i] * extent - low) : 0;
}

bool oc_blocks_any(const int *counts, MPI_Datatype type, int n, size_t min, int skip)
{
	size_t size = oc_type_bytes(type, 1);

	for (int i = 0; i < n; i++)
		if (i != skip && counts[i] > 0 && (size_t)counts[i] * size >= min)
			return true;
	return false;
}

int oc_vbuffer_open(struct oc_vbuffer *v, const void *user, const int *counts, const int *displs,
		    MPI_Datatype type, int n, size_t min, int skip)
{
	size_t size = oc_type_bytes(type, 1);
	MPI_Aint lb, extent;

	*v = (struct oc_vbuffer){.n = n,
				 .user = (void *)(uintptr_t)user,
				 .counts = counts,
				 .displs = displs,
				 .type = type};
	v->len = calloc((size_t)n, sizeof(*v->len));
	v->off = calloc((size_t)n, sizeof(*v->off));
	v->rest = calloc((size_t)n, sizeof(*v->rest));
	if (!v->len || !v->off || !v->rest)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < n; i++) {
		size_t bytes = counts[i] > 0 ? (size_t)counts[i] * size : 0;

		if (i != skip && bytes >= min)
			v->len[i] = bytes;
		v->rest[i] = v->len[i] ? 0 : counts[i];
	}
	if (!oc_type_contiguous(type))
		return place_packed(v);
	if (pmpi()->Type_get_extent(type, &lb, &extent))
		return MPI_ERR_TYPE;
	place_in_user(v, extent);
	return MPI_SUCCESS;
}

static int convert(struct oc_vbuffer *v, bool pack, MPI_Comm comm)
{
	MPI_Aint lb, extent;
	int err = MPI_SUCCESS;

	if (!v->packed)
		return MPI_SUCCESS;
	err = pmpi()->Type_get_extent(v->type, &lb, &extent);
	for (int i = 0; i < v->n && !err; i++)
		if (v->len[i])
			err = oc_convert((char *)v->user + (ptrdiff_t)v->displs[i] * extent,
					 v->at + v->off[i], (size_t)v->counts[i], v->type, pack,
					 comm);
	return err;
}

int oc_vbuffer_pack(struct oc_vbuffer *v, MPI_Comm comm)
{
	return convert(v, true, comm);
}

int oc_vbuffer_unpack(struct oc_vbuffer *v, MPI_Comm comm)
{
	return convert(v, false, comm);
}

void oc_vbuffer_close(struct oc_vbuffer *v)
{
	if (v->packed && v->heap)
		oc_heap_free(v->at);
	else if (v->packed)
		free(v->at);
	free(v->len);
	free(v->off);
	free(v->rest);
}
