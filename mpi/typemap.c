// SPDX-License-Identifier: BSD-3-Clause
#include "typemap.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "adapter.h"
#include "box.h"
#include "contents.h"
#include "exec/pieces.h"
#include "runs.h"
#include "type_sizes.h"

#define NUMBER_MAX 32		 /* bytes: MPI_COMPLEX32 */
#define DEPTH_MAX  64		 /* of types made of types */
#define TYPE_WORK  UINT64_C(128) /* that asking for a type counts for */

/* Bytes of a run, in the mean: docs/tuning.md. Of several blocks each peer wants one, but takes
 * the layout of all. Where so many are alike that a layout is short, copies from one to the next
 * are too. */
#define PIECE_MIN	UINT64_C(128)
#define PIECE_BLOCK_MIN UINT64_C(64)
#define ROW_RUNS	UINT64_C(8)
#define ROW_RUN_MIN	UINT64_C(4)

static int keyval;

static int flatten(MPI_Datatype type, struct oc_runs *runs, int depth);

/* Of blocks at places in bytes, or in elements. */
static int add_block(struct oc_runs *runs, const struct oc_runs *element, int64_t where,
		     bool elements, int64_t count)
{
	int64_t at;

	if (!oc_runs_place(0, where, elements ? element->extent : 1, &at))
		return -E2BIG;
	return oc_runs_repeat(runs, element, at, count);
}

static int add_vector(struct oc_runs *runs, const struct oc_contents *of,
		      const struct oc_runs *element)
{
	bool elements = of->combiner == MPI_COMBINER_VECTOR;
	int64_t stride = elements ? of->integer[2] : of->address[0], where;
	int err = 0;

	if (!element->n || !of->integer[1])
		return 0;
	for (int64_t i = 0; i < of->integer[0] && !err; i++)
		err = oc_runs_place(0, i, stride, &where)
			      ? add_block(runs, element, where, elements, of->integer[1])
			      : -E2BIG;
	return err;
}

/* Each block with its length, or all with one. */
static int add_indexed(struct oc_runs *runs, const struct oc_contents *of,
		       const struct oc_runs *element)
{
	bool elements =
		of->combiner == MPI_COMBINER_INDEXED || of->combiner == MPI_COMBINER_INDEXED_BLOCK;
	bool alike = of->combiner == MPI_COMBINER_INDEXED_BLOCK ||
		     of->combiner == MPI_COMBINER_HINDEXED_BLOCK;
	int64_t n = of->integer[0];
	const int64_t *places = of->integer + (alike ? 2 : 1 + n);
	int err = 0;

	for (int64_t i = 0; i < n && !err; i++)
		err = add_block(runs, element, elements ? places[i] : of->address[i], elements,
				of->integer[alike ? 1 : 1 + i]);
	return err;
}

static int add_all(struct oc_runs *runs, const struct oc_contents *of,
		   const struct oc_runs *element)
{
	switch (of->combiner) {
	case MPI_COMBINER_DUP:
	case MPI_COMBINER_RESIZED:
		return oc_runs_repeat(runs, element, 0, 1);
	case MPI_COMBINER_CONTIGUOUS:
		return oc_runs_repeat(runs, element, 0, of->integer[0]);
	case MPI_COMBINER_VECTOR:
	case MPI_COMBINER_HVECTOR:
		return add_vector(runs, of, element);
	case MPI_COMBINER_INDEXED:
	case MPI_COMBINER_HINDEXED:
	case MPI_COMBINER_INDEXED_BLOCK:
	case MPI_COMBINER_HINDEXED_BLOCK:
		return add_indexed(runs, of, element);
	case MPI_COMBINER_SUBARRAY:
		return oc_box_subarray(runs, element, of->integer);
	case MPI_COMBINER_DARRAY:
		return oc_box_darray(runs, element, of->integer);
	default: /* what Fortran alone has */
		return -ENOTSUP;
	}
}

static int add_struct(struct oc_runs *runs, const struct oc_contents *of, int depth)
{
	struct oc_runs element = {.work = runs->work};
	int err = 0;

	for (int64_t i = 0; i < of->types && !err; i++) {
		if (!i || of->type[i] != of->type[i - 1]) {
			element.n = 0;
			err = flatten(of->type[i], &element, depth);
		}
		if (!err)
			err = oc_runs_repeat(runs, &element, of->address[i], of->integer[1 + i]);
	}
	free(element.run);
	return err;
}

bool oc_typemap_is_predefined(MPI_Datatype type)
{
	struct oc_contents of;
	MPI_Datatype inner;
	bool is;

	if (oc_type_is_plain(type))
		return true;
	if (!oc_contents_envelope(type, &of))
		return false;
	if (oc_contents_is_leaf(of.combiner))
		return true;
	if (of.combiner != MPI_COMBINER_DUP ||
	    pmpi()->Type_get_contents(type, 0, 0, 1, NULL, NULL, &inner))
		return false;
	is = oc_typemap_is_predefined(inner);
	oc_contents_drop(inner);
	return is;
}

/* One of them that has all the bytes, for then the others have none. */
static bool find_whole(const struct oc_contents *of, uint64_t size, MPI_Datatype *inner)
{
	for (int64_t i = 0; i < of->types; i++)
		if (oc_type_sizes_ask(of->type[i]) == size) {
			*inner = of->type[i];
			return true;
		}
	return false;
}

static bool is_number(MPI_Datatype type, uint64_t size, int depth)
{
	struct oc_contents of;
	MPI_Datatype inner;
	bool is;

	if (depth == DEPTH_MAX || !oc_contents_envelope(type, &of))
		return false;
	if (oc_contents_is_leaf(of.combiner))
		return oc_abi_operand(oc_abi_type(type)) != OC_OPERAND_PAIR;
	is = !oc_contents_get(type, &of) && find_whole(&of, size, &inner) &&
	     is_number(inner, size, depth + 1);
	oc_contents_free(&of);
	return is;
}

bool oc_typemap_is_number(MPI_Datatype type, uint64_t size)
{
	return size <= NUMBER_MAX && is_number(type, size, 0);
}

/* Pairs of a value and an index may have gaps, and are short. */
static int add_leaf(struct oc_runs *runs, MPI_Datatype type)
{
	MPI_Aint lb, extent;
	MPI_Count size;

	if (pmpi()->Type_get_extent(type, &lb, &extent) || pmpi()->Type_size_x(type, &size))
		return -EINVAL;
	runs->extent = extent;
	if (size && (lb || size != extent))
		return -ENOTSUP;
	return oc_runs_add(runs, 0, (uint64_t)size);
}

static int flatten_derived(MPI_Datatype type, struct oc_contents *of, struct oc_runs *runs,
			   int depth)
{
	struct oc_runs element = {.work = runs->work};
	MPI_Aint lb, extent;
	int err = oc_contents_get(type, of);

	if (!err && pmpi()->Type_get_extent(type, &lb, &extent))
		err = -EINVAL;
	if (err)
		goto out;
	runs->extent = extent;
	if (of->combiner == MPI_COMBINER_STRUCT) {
		err = add_struct(runs, of, depth);
	} else if (of->types == 1) {
		err = flatten(of->type[0], &element, depth);
		if (!err)
			err = add_all(runs, of, &element);
		free(element.run);
	} else {
		err = -ENOTSUP;
	}
out:
	oc_contents_free(of);
	return err;
}

static int flatten(MPI_Datatype type, struct oc_runs *runs, int depth)
{
	struct oc_contents of;

	*runs->work += TYPE_WORK;
	if (depth == DEPTH_MAX || *runs->work > OC_RUNS_WORK_MAX)
		return -E2BIG;
	if (!oc_contents_envelope(type, &of))
		return -ENOTSUP;
	return oc_contents_is_leaf(of.combiner) ? add_leaf(runs, type)
						: flatten_derived(type, &of, runs, depth + 1);
}

/* What the MPI says of a type that is none of its constructors: if that differs, we do not
 * understand it. */
static bool agrees(const struct oc_layout *one, MPI_Datatype type)
{
	MPI_Aint lb, extent;
	MPI_Count size;

	return !pmpi()->Type_size_x(type, &size) && (uint64_t)size == one->bytes &&
	       !pmpi()->Type_get_true_extent(type, &lb, &extent) && lb == one->low &&
	       extent == one->high - one->low;
}

/* An error of the program that packing would find. */
bool oc_typemap_is_committed(MPI_Datatype type)
{
	char none[8];
	int at = 0;

	return !pmpi()->Pack(none, 0, type, none, sizeof(none), &at, oc_adapter.self);
}

static struct oc_layout *lay_out(MPI_Datatype type)
{
	uint64_t work = 0;
	struct oc_runs runs = {.work = &work};
	struct oc_layout *one = NULL;

	if (!flatten(type, &runs, 0) && runs.n)
		one = oc_layout_make(runs.run, runs.n, runs.extent, 1);
	free(runs.run);
	if (one && (one->npieces > OC_PIECES_MAX || !agrees(one, type))) {
		free(one);
		one = NULL;
	}
	return one;
}

static struct oc_typemap *attached(MPI_Datatype type)
{
	struct oc_typemap *map = NULL;
	int found;

	if (pmpi()->Type_get_attr(type, keyval, &map, &found) || !found)
		return NULL;
	__atomic_add_fetch(&map->users, 1, __ATOMIC_RELAXED);
	return map;
}

/* Never in the place of another, which a thread may just have found. */
static struct oc_typemap *attach(MPI_Datatype type, struct oc_typemap *map)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct oc_typemap *other;

	pthread_mutex_lock(&lock);
	other = attached(type);
	if (!other) {
		map->users++;
		if (pmpi()->Type_set_attr(type, keyval, map))
			map->users--;
	}
	pthread_mutex_unlock(&lock);
	if (!other)
		return map;
	oc_typemap_put(map);
	return other;
}

struct oc_typemap *oc_typemap_get(MPI_Datatype type)
{
	struct oc_typemap *map = attached(type);
	struct oc_contents of;

	if (!map && oc_contents_envelope(type, &of) && !oc_contents_is_leaf(of.combiner) &&
	    oc_typemap_is_committed(type)) {
		map = calloc(1, sizeof(*map));
		if (!map)
			return NULL;
		map->users = 1;
		map->one = lay_out(type);
		map = attach(type, map);
	}
	if (!map || map->one)
		return map;
	oc_typemap_put(map);
	return NULL;
}

void oc_typemap_put(struct oc_typemap *map)
{
	if (!map || __atomic_sub_fetch(&map->users, 1, __ATOMIC_ACQ_REL))
		return;
	free(map->one);
	free(map);
}

bool oc_typemap_pays(const struct oc_typemap *map, uint64_t count, int blocks)
{
	const struct oc_layout *one = map->one;
	uint64_t runs = count * one->nruns, pieces = one->nruns == 1 ? 1 : count * one->npieces;
	uint64_t least = PIECE_BLOCK_MIN * (uint64_t)blocks;

	if (runs >= ROW_RUNS * pieces)
		least = ROW_RUN_MIN;
	else if (least < PIECE_MIN)
		least = PIECE_MIN;
	return one->bytes >= least * one->nruns;
}

static int type_copied(MPI_Datatype type, int key, void *extra, void *in, void *out, int *flag)
{
	*flag = 0;
	return MPI_SUCCESS;
}

static int type_deleted(MPI_Datatype type, int key, void *value, void *extra)
{
	oc_typemap_put(value);
	return MPI_SUCCESS;
}

int oc_typemap_setup(void)
{
	oc_contents_setup();
	oc_box_setup();
	return pmpi()->Type_create_keyval(type_copied, type_deleted, &keyval, NULL) ? -EIO : 0;
}

/* Types keep what is attached to them until they end. */
void oc_typemap_teardown(void)
{
	pmpi()->Type_free_keyval(&keyval);
}
