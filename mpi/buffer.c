// SPDX-License-Identifier: BSD-3-Clause
#include "buffer.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "adapter.h"
#include "bytes/copy.h"
#include "contents.h"
#include "heap/heap.h"
#include "tune.h"
#include "type_sizes.h"
#include "typemap.h"

/* MPI_Pack counts in int: pack this much at a time. */
#define PACK_STEP ((size_t)1 << 20)

/*
 * A sender that packs and a receiver that does not must mean the same bytes.
 * That holds when packing concatenates, as in every homogeneous MPI known; it
 * is checked once, and without it no call is served.
 */
int oc_buffer_setup(void)
{
	static const unsigned char in[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	unsigned char out[64];
	int at = 0;

	if (pmpi()->Pack(in, 4, oc_abi.byte, out, sizeof(out), &at, oc_adapter.alone) || at != 4 ||
	    pmpi()->Pack(in + 4, 4, oc_abi.byte, out, sizeof(out), &at, oc_adapter.alone))
		return -EOPNOTSUPP;
	return at == 8 && !memcmp(in, out, 8) ? 0 : -EOPNOTSUPP;
}

bool oc_type_contiguous(MPI_Datatype type)
{
	struct oc_contents of;
	MPI_Datatype inner;
	bool dense;
	int count;

	if (oc_type_is_plain(type))
		return true;
	if (!oc_contents_envelope(type, &of))
		return false;
	/* Predefined types have gaps too: MPI_DOUBLE_INT and its like. */
	if (oc_contents_is_leaf(of.combiner))
		return oc_type_sizes_ask_dense(type);
	/* Of the derived ones a dense one may still be out of order. */
	if ((of.combiner != MPI_COMBINER_CONTIGUOUS && of.combiner != MPI_COMBINER_DUP) ||
	    of.integers > 1 || of.addresses || of.large || of.types != 1)
		return false;
	if (pmpi()->Type_get_contents(type, (int)of.integers, 0, 1, &count, NULL, &inner))
		return false;
	dense = oc_type_contiguous(inner);
	oc_contents_drop(inner);
	return dense;
}

/* The user's memory as it is. False where packing costs less, or is all that can be done. */
static bool lay_out(struct oc_buffer *buffer)
{
	struct oc_typemap *map = oc_typemap_get(buffer->type);
	bool as_it_is = false;

	if (!map)
		return false;
	if (oc_typemap_is_dense(map) || (buffer->count == 1 && map->one->nruns == 1)) {
		buffer->at = oc_layout_at(buffer->user, map->one->piece[0].at);
		as_it_is = true;
	} else if (oc_typemap_pays(map, buffer->count, 1)) {
		buffer->layout =
			buffer->count == 1 ? map->one : oc_layout_repeat(map->one, buffer->count);
		as_it_is = buffer->layout;
	}
	if (buffer->layout && buffer->layout == map->one)
		buffer->map = map;
	else
		oc_typemap_put(map);
	return as_it_is;
}

static struct oc_buffer buffer_of(void *user, size_t count, MPI_Datatype type)
{
	return (struct oc_buffer){
		.at = user,
		.bytes = oc_type_bytes(type, count),
		.user = user,
		.count = count,
		.type = type,
	};
}

/* Whether it needs no packing, and then it is opened. */
static bool open_as_is(struct oc_buffer *buffer)
{
	return !buffer->bytes || oc_type_contiguous(buffer->type) || lay_out(buffer);
}

bool oc_buffer_as_is(struct oc_buffer *buffer, void *user, size_t count, MPI_Datatype type)
{
	*buffer = buffer_of(user, count, type);
	return open_as_is(buffer);
}

static int buffer_open(struct oc_buffer *buffer, void *user, size_t count, MPI_Datatype type,
		       bool copy)
{
	*buffer = buffer_of(user, count, type);
	if (!buffer->bytes || (!copy && open_as_is(buffer)))
		return MPI_SUCCESS;
	buffer->packed = true;
	if (!oc_scratch_alloc(&buffer->copy, buffer->bytes))
		return MPI_ERR_NO_MEM;
	buffer->at = buffer->copy.at;
	return MPI_SUCCESS;
}

/* A type of @bytes plain bytes, which may be more than an int counts. */
static int plain_type(size_t bytes, MPI_Datatype *type)
{
	size_t rest = bytes % PACK_STEP;
	int counts[2] = {(int)(bytes / PACK_STEP), (int)rest}, err;
	MPI_Aint places[2] = {0, (MPI_Aint)(bytes - rest)};
	MPI_Datatype parts[2] = {oc_abi.byte, oc_abi.byte};

	err = pmpi()->Type_contiguous((int)PACK_STEP, oc_abi.byte, &parts[0]);
	if (err)
		return err;
	err = pmpi()->Type_create_struct(2, counts, places, parts, type);
	pmpi()->Type_free(&parts[0]);
	if (err)
		return err;
	err = pmpi()->Type_commit(type);
	if (err)
		pmpi()->Type_free(type);
	return err;
}

/* What MPI_Pack cannot say: as a message to this process. */
static int convert_huge(char *user, char *packed, int count, MPI_Datatype type, bool pack)
{
	static unsigned int calls;
	/* A tag for each thread that may be here. 0 is never sent, 32767 always allowed. */
	int tag = 1 + (int)(__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % 32767);
	MPI_Datatype plain;
	int err = plain_type(oc_type_bytes(type, (size_t)count), &plain);

	if (err)
		return err;
	if (pack)
		err = pmpi()->Sendrecv(user, count, type, 0, tag, packed, 1, plain, 0, tag,
				       oc_adapter.self, MPI_STATUS_IGNORE);
	else
		err = pmpi()->Sendrecv(packed, 1, plain, 0, tag, user, count, type, 0, tag,
				       oc_adapter.self, MPI_STATUS_IGNORE);
	pmpi()->Type_free(&plain);
	return err;
}

/* Elements of no more than INT_MAX bytes together. */
static int convert_some(char *user, char *packed, int count, int bytes, MPI_Datatype type,
			bool pack)
{
	int at = 0;

	return pack ? pmpi()->Pack(user, count, type, packed, bytes, &at, oc_adapter.self)
		    : pmpi()->Unpack(packed, bytes, &at, user, count, type, oc_adapter.self);
}

int oc_convert(void *user, char *packed, size_t count, MPI_Datatype type, bool pack)
{
	size_t size = oc_type_bytes(type, 1);
	size_t step = size < PACK_STEP ? PACK_STEP / size : 1;
	MPI_Aint lb, extent;
	int err;

	if (oc_type_contiguous(type)) {
		oc_copy_bytes(pack ? packed : user, pack ? user : packed, count * size,
			      oc_streams(count * size));
		return MPI_SUCCESS;
	}
	err = pmpi()->Type_get_extent(type, &lb, &extent);
	for (size_t i = 0; i < count && !err; i += step) {
		size_t n = count - i < step ? count - i : step;
		char *from = (char *)user + (ptrdiff_t)i * extent;

		/* MPICH takes no MPI_BOTTOM to unpack to. */
		if (size > INT_MAX || !from)
			err = convert_huge(from, packed + i * size, (int)n, type, pack);
		else
			err = convert_some(from, packed + i * size, (int)n, (int)(n * size), type,
					   pack);
	}
	return err;
}

int oc_buffer_send(struct oc_buffer *buffer, const void *user, size_t count, MPI_Datatype type)
{
	int err = buffer_open(buffer, (void *)(uintptr_t)user, count, type, false);

	if (!err && buffer->packed)
		err = oc_convert(buffer->user, buffer->at, count, type, true);
	return err;
}

int oc_buffer_copy(struct oc_buffer *buffer, const void *user, size_t count, MPI_Datatype type)
{
	int err = buffer_open(buffer, (void *)(uintptr_t)user, count, type, true);

	return err ? err : oc_convert(buffer->user, buffer->at, count, type, true);
}

int oc_buffer_recv(struct oc_buffer *buffer, void *user, size_t count, MPI_Datatype type)
{
	return buffer_open(buffer, user, count, type, false);
}

int oc_buffer_pack_block(struct oc_buffer *buffer, int block, size_t count)
{
	size_t before = (size_t)block * count;
	MPI_Aint lb, extent;
	int err = pmpi()->Type_get_extent(buffer->type, &lb, &extent);

	return err ? err
		   : oc_convert(oc_layout_at(buffer->user, (int64_t)before * extent),
				buffer->at + oc_type_bytes(buffer->type, before), count,
				buffer->type, true);
}

int oc_buffer_release(struct oc_buffer *buffer, bool unpack)
{
	int err = MPI_SUCCESS;

	if (buffer->map)
		oc_typemap_put(buffer->map);
	else
		free((void *)(uintptr_t)buffer->layout);
	if (!buffer->packed)
		return MPI_SUCCESS;
	if (unpack)
		err = oc_convert(buffer->user, buffer->at, buffer->count, buffer->type, false);
	oc_scratch_free(&buffer->copy);
	return err;
}
