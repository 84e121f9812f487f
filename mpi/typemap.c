// SPDX-License-Identifier: BSD-3-Clause
#include "typemap.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "adapter.h"
#include "exec/pieces.h"
#include "type_sizes.h"

#define DEPTH_MAX 64				 /* of types made of types */
#define WORK_MAX  (UINT64_C(16) * OC_PIECES_MAX) /* runs looked at, most of which become one */
#define TYPE_WORK UINT64_C(128)			 /* that asking for a type counts for */

/* Bytes of a run, in the mean: docs/tuning.md. Of several blocks each peer wants one, but takes
 * the layout of all. Where so many are alike that a layout is short, copies from one to the next
 * are too. */
#define PIECE_MIN	UINT64_C(128)
#define PIECE_BLOCK_MIN UINT64_C(64)
#define ROW_RUNS	UINT64_C(8)
#define ROW_RUN_MIN	UINT64_C(4)

static int keyval;

/* MPI_Type_get_envelope_c, which no MPI before 4 has. */
static int (*envelope_c)(MPI_Datatype type, MPI_Count *integers, MPI_Count *addresses,
			 MPI_Count *large, MPI_Count *types, int *combiner);

/* What a type is made of. */
struct contents {
	int combiner;
	int integers, addresses, types;
	int *integer;
	MPI_Aint *address;
	MPI_Datatype *type;
};

/* The runs of an element, as they are found. */
struct runs {
	struct oc_run *run;
	uint32_t n, room;
	uint64_t *work; /* so far, for these and those of all types around them and within */
	int64_t extent;
};

static int flatten(MPI_Datatype type, struct runs *runs, int depth);

/* *@out = @base + @n * @step, or false. */
static bool place(int64_t base, int64_t n, int64_t step, int64_t *out)
{
	int64_t by;

	return !__builtin_mul_overflow(n, step, &by) && !__builtin_add_overflow(base, by, out);
}

static int add_run(struct runs *runs, int64_t at, uint64_t len)
{
	struct oc_run *last = runs->n ? &runs->run[runs->n - 1] : NULL;
	int64_t end;

	if (!len)
		return 0;
	if (len > INT64_MAX || !place(at, 1, (int64_t)len, &end) || ++*runs->work > WORK_MAX)
		return -E2BIG;
	if (last && last->at + (int64_t)last->len == at) {
		last->len += len;
		return 0;
	}
	if (runs->n == runs->room) {
		uint32_t room = runs->room ? 2 * runs->room : 8;
		struct oc_run *grown = realloc(runs->run, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		runs->run = grown;
		runs->room = room;
	}
	runs->run[runs->n++] = (struct oc_run){.at = at, .len = len};
	return 0;
}

/* @count elements one after the other, the first at @at. */
static int add_elements(struct runs *runs, const struct runs *element, int64_t at, int64_t count)
{
	int64_t begin, from;
	int err = 0;

	if (count < 0)
		return -EINVAL;
	if (element->n == 1 && element->extent == (int64_t)element->run[0].len) {
		if (!place(at, 1, element->run[0].at, &from) ||
		    !place(0, count, element->extent, &begin))
			return -E2BIG;
		return add_run(runs, from, (uint64_t)begin);
	}
	for (int64_t i = 0; i < count && element->n && !err; i++) {
		if (!place(at, i, element->extent, &begin))
			return -E2BIG;
		for (uint32_t k = 0; k < element->n && !err; k++)
			err = place(begin, 1, element->run[k].at, &from)
				      ? add_run(runs, from, element->run[k].len)
				      : -E2BIG;
	}
	return err;
}

/* Of blocks at places in bytes, or in elements. */
static int add_block(struct runs *runs, const struct runs *element, int64_t where, bool elements,
		     int64_t count)
{
	int64_t at;

	if (!place(0, where, elements ? element->extent : 1, &at))
		return -E2BIG;
	return add_elements(runs, element, at, count);
}

static int add_vector(struct runs *runs, const struct contents *of, const struct runs *element)
{
	bool elements = of->combiner == MPI_COMBINER_VECTOR;
	int64_t stride = elements ? of->integer[2] : of->address[0], where;
	int err = 0;

	for (int i = 0; i < of->integer[0] && !err; i++)
		err = place(0, i, stride, &where)
			      ? add_block(runs, element, where, elements, of->integer[1])
			      : -E2BIG;
	return err;
}

/* Each block with its length, or all with one. */
static int add_indexed(struct runs *runs, const struct contents *of, const struct runs *element)
{
	bool elements =
		of->combiner == MPI_COMBINER_INDEXED || of->combiner == MPI_COMBINER_INDEXED_BLOCK;
	bool alike = of->combiner == MPI_COMBINER_INDEXED_BLOCK ||
		     of->combiner == MPI_COMBINER_HINDEXED_BLOCK;
	int n = of->integer[0], err = 0;
	const int *places = of->integer + (alike ? 2 : 1 + n);

	for (int i = 0; i < n && !err; i++)
		err = add_block(runs, element, elements ? places[i] : of->address[i], elements,
				of->integer[alike ? 1 : 1 + i]);
	return err;
}

/* Dimension by dimension, from the one whose elements are farthest from each other. */
static int add_box(struct runs *runs, const struct contents *of, const struct runs *element,
		   int left, int64_t at)
{
	int n = of->integer[0], err = 0;
	const int *sizes = of->integer + 1, *subsizes = sizes + n, *starts = subsizes + n;
	bool c = of->integer[1 + 3 * n] == MPI_ORDER_C;
	int d = c ? n - left : left - 1;
	int64_t stride = element->extent, from;

	for (int k = 1; k < left; k++)
		if (__builtin_mul_overflow(stride, sizes[c ? n - k : k - 1], &stride))
			return -E2BIG;
	if (!place(at, starts[d], stride, &at))
		return -E2BIG;
	if (left == 1)
		return add_elements(runs, element, at, subsizes[d]);
	for (int i = 0; i < subsizes[d] && !err; i++)
		err = place(at, i, stride, &from) ? add_box(runs, of, element, left - 1, from)
						  : -E2BIG;
	return err;
}

static int add_all(struct runs *runs, const struct contents *of, const struct runs *element)
{
	switch (of->combiner) {
	case MPI_COMBINER_DUP:
	case MPI_COMBINER_RESIZED:
		return add_elements(runs, element, 0, 1);
	case MPI_COMBINER_CONTIGUOUS:
		return add_elements(runs, element, 0, of->integer[0]);
	case MPI_COMBINER_VECTOR:
	case MPI_COMBINER_HVECTOR:
		return add_vector(runs, of, element);
	case MPI_COMBINER_INDEXED:
	case MPI_COMBINER_HINDEXED:
	case MPI_COMBINER_INDEXED_BLOCK:
	case MPI_COMBINER_HINDEXED_BLOCK:
		return add_indexed(runs, of, element);
	case MPI_COMBINER_SUBARRAY:
		return add_box(runs, of, element, of->integer[0], 0);
	default: /* darray, and what Fortran alone has */
		return -ENOTSUP;
	}
}

static int add_struct(struct runs *runs, const struct contents *of, int depth)
{
	struct runs element = {.work = runs->work};
	int err = 0;

	for (int i = 0; i < of->types && !err; i++) {
		if (!i || of->type[i] != of->type[i - 1]) {
			element.n = 0;
			err = flatten(of->type[i], &element, depth);
		}
		if (!err)
			err = add_elements(runs, &element, of->address[i], of->integer[1 + i]);
	}
	free(element.run);
	return err;
}

bool oc_typemap_is_leaf(int combiner)
{
	return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
	       combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

void oc_typemap_drop(MPI_Datatype inner)
{
	int integers, addresses, types, combiner;

	if (!oc_typemap_envelope(inner, &integers, &addresses, &types, &combiner) ||
	    !oc_typemap_is_leaf(combiner))
		pmpi()->Type_free(&inner);
}

bool oc_typemap_is_predefined(MPI_Datatype type)
{
	int integers, addresses, types, combiner;
	MPI_Datatype inner;
	bool is;

	if (oc_type_is_plain(type))
		return true;
	if (!oc_typemap_envelope(type, &integers, &addresses, &types, &combiner))
		return false;
	if (oc_typemap_is_leaf(combiner))
		return true;
	if (combiner != MPI_COMBINER_DUP ||
	    pmpi()->Type_get_contents(type, 0, 0, 1, NULL, NULL, &inner))
		return false;
	is = oc_typemap_is_predefined(inner);
	oc_typemap_drop(inner);
	return is;
}

/* Pairs of a value and an index may have gaps, and are short. */
static int add_leaf(struct runs *runs, MPI_Datatype type)
{
	MPI_Aint lb, extent;
	MPI_Count size;

	if (pmpi()->Type_get_extent(type, &lb, &extent) || pmpi()->Type_size_x(type, &size))
		return -EINVAL;
	runs->extent = extent;
	if (size && (lb || size != extent))
		return -ENOTSUP;
	return add_run(runs, 0, (uint64_t)size);
}

static void contents_free(struct contents *of)
{
	for (int i = 0; i < of->types; i++)
		oc_typemap_drop(of->type[i]);
	free(of->integer);
	free(of->address);
	free(of->type);
}

static int contents_get(MPI_Datatype type, struct contents *of)
{
	int types = of->types;

	of->integer = calloc((size_t)of->integers + 1, sizeof(*of->integer));
	of->address = calloc((size_t)of->addresses + 1, sizeof(*of->address));
	of->type = calloc((size_t)types + 1, sizeof(MPI_Datatype));
	of->types = 0;
	if (!of->integer || !of->address || !of->type)
		return -ENOMEM;
	if (pmpi()->Type_get_contents(type, of->integers, of->addresses, types, of->integer,
				      of->address, of->type))
		return -EINVAL;
	of->types = types;
	return 0;
}

static int flatten_derived(MPI_Datatype type, struct contents *of, struct runs *runs, int depth)
{
	struct runs element = {.work = runs->work};
	MPI_Aint lb, extent;
	int err = contents_get(type, of);

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
	contents_free(of);
	return err;
}

static int flatten(MPI_Datatype type, struct runs *runs, int depth)
{
	struct contents of = {0};

	*runs->work += TYPE_WORK;
	if (depth == DEPTH_MAX || *runs->work > WORK_MAX)
		return -E2BIG;
	if (!oc_typemap_envelope(type, &of.integers, &of.addresses, &of.types, &of.combiner))
		return -ENOTSUP;
	return oc_typemap_is_leaf(of.combiner) ? add_leaf(runs, type)
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
static bool is_committed(MPI_Datatype type)
{
	char none[8];
	int at = 0;

	return !pmpi()->Pack(none, 0, type, none, sizeof(none), &at, oc_adapter.self);
}

static struct oc_layout *lay_out(MPI_Datatype type)
{
	uint64_t work = 0;
	struct runs runs = {.work = &work};
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

bool oc_typemap_envelope(MPI_Datatype type, int *integers, int *addresses, int *types,
			 int *combiner)
{
	MPI_Count wide[4];

	if (!envelope_c)
		return !pmpi()->Type_get_envelope(type, integers, addresses, types, combiner);
	/* The other would report an error of a type with large counts, perhaps a fatal one. */
	if (envelope_c(type, &wide[0], &wide[1], &wide[2], &wide[3], combiner) || wide[2])
		return false;
	*integers = (int)wide[0];
	*addresses = (int)wide[1];
	*types = (int)wide[3];
	return true;
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
	int integers, addresses, types, combiner;
	struct oc_typemap *map = attached(type);

	if (!map && oc_typemap_envelope(type, &integers, &addresses, &types, &combiner) &&
	    !oc_typemap_is_leaf(combiner) && is_committed(type)) {
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
	void *function = oc_pmpi_symbol("PMPI_Type_get_envelope_c");

	*(void **)&envelope_c = function;
	return pmpi()->Type_create_keyval(type_copied, type_deleted, &keyval, NULL) ? -EIO : 0;
}

/* Types keep what is attached to them until they end. */
void oc_typemap_teardown(void)
{
	pmpi()->Type_free_keyval(&keyval);
}
