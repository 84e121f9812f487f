// SPDX-License-Identifier: BSD-3-Clause
#include "box.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "abi.h"
#include "adapter.h"

/* What is chosen of one dimension: @len from @first on, as many @step further on, and so on, but
 * none from @end on. */
struct axis {
	int64_t first, len, step, end;
	int64_t stride; /* bytes from one to the next */
};

static int add_box(struct oc_runs *runs, const struct oc_runs *element, const struct axis *axis,
		   int left, int64_t at);

static int add_rows(struct oc_runs *runs, const struct oc_runs *element, const struct axis *axis,
		    int left, int64_t at, int64_t n)
{
	int64_t from;
	int err = 0;

	for (int64_t i = 0; i < n && !err; i++)
		err = oc_runs_place(at, i, axis[left - 1].stride, &from)
			      ? add_box(runs, element, axis, left - 1, from)
			      : -E2BIG;
	return err;
}

/* Dimension by dimension, from the one whose elements are farthest from each other, which is the
 * last one. */
static int add_box(struct oc_runs *runs, const struct oc_runs *element, const struct axis *axis,
		   int left, int64_t at)
{
	const struct axis *one = &axis[left - 1];
	int err = 0;

	for (int64_t i = one->first; i < one->end && !err; i += one->step) {
		int64_t n = one->end - i < one->len ? one->end - i : one->len, from;

		if (!oc_runs_place(at, i, one->stride, &from))
			err = -E2BIG;
		else if (left == 1)
			err = oc_runs_repeat(runs, element, from, n);
		else
			err = add_rows(runs, element, axis, left, from, n);
	}
	return err;
}

/* Of @n dimensions in the array's own order, of which axis[] has the one whose elements are next to
 * each other first. */
static int axis_of(int64_t n, bool c, int64_t d)
{
	return (int)(c ? n - 1 - d : d);
}

/* Axes whose strides are not yet known, for arrays of these sizes. */
static int add_axes(struct oc_runs *runs, const struct oc_runs *element, struct axis *axis, int n,
		    const int64_t *sizes, bool c)
{
	int64_t stride = element->extent, far;
	bool empty = !element->n;

	for (int k = 0; k < n; k++) {
		axis[k].stride = stride;
		if (axis[k].step <= 0 || __builtin_add_overflow(axis[k].end, axis[k].step, &far) ||
		    __builtin_mul_overflow(stride, sizes[axis_of(n, c, k)], &stride))
			return -E2BIG;
		/* Then the rows of all others have nothing. */
		empty |= axis[k].first >= axis[k].end;
	}
	return empty ? 0 : add_box(runs, element, axis, n, 0);
}

int oc_box_subarray(struct oc_runs *runs, const struct oc_runs *element, const int64_t *of)
{
	int64_t n = of[0];
	const int64_t *sizes = of + 1, *subsizes = sizes + n, *starts = subsizes + n;
	bool c = of[1 + 3 * n] == MPI_ORDER_C;
	struct axis *axis = calloc((size_t)n, sizeof(*axis));
	int err;

	if (!axis)
		return -ENOMEM;
	for (int64_t d = 0; d < n; d++)
		axis[axis_of(n, c, d)] = (struct axis){
			.first = starts[d],
			.len = subsizes[d],
			.step = subsizes[d],
			.end = starts[d] + subsizes[d],
		};
	err = add_axes(runs, element, axis, (int)n, sizes, c);
	free(axis);
	return err;
}

static bool deals_rows; /* the MPI deals out blocks of rows as the standard says */

/* Of an array of 4 by 2 whose rows are dealt out two at a time, to one, and columns to two: the
 * first one's column. Intel MPI puts the two of a turn next to each other. */
static bool ask_deals_rows(void)
{
	static const char array[8] = {0, 1, 2, 3, 4, 5, 6, 7}, column[4] = {0, 2, 4, 6};
	static const int sizes[] = {4, 2}, lens[] = {2, 1}, parts[] = {1, 2};
	static const int how[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
	MPI_Datatype type;
	char found[8];
	int at = 0;
	bool alike;

	if (pmpi()->Type_create_darray(2, 0, 2, sizes, how, lens, parts, MPI_ORDER_C, oc_abi.byte,
				       &type))
		return false;
	alike = !pmpi()->Type_commit(&type) &&
		!pmpi()->Pack(array, 1, type, found, sizeof(found), &at, oc_adapter.alone) &&
		at == sizeof(column) && !memcmp(found, column, sizeof(column));
	pmpi()->Type_free(&type);
	return alike;
}

void oc_box_setup(void)
{
	deals_rows = ask_deals_rows();
}

/* What process @at of @parts in this dimension has: of blocks of @len, dealt out in turns, its
 * own. */
static struct axis dealt(int64_t size, int64_t how, int64_t len, int64_t parts, int64_t at)
{
	struct axis axis = {.len = len, .end = size};

	if (how == MPI_DISTRIBUTE_NONE)
		axis.len = size;
	else if (len == MPI_DISTRIBUTE_DFLT_DARG)
		axis.len = how == MPI_DISTRIBUTE_BLOCK ? (size - 1) / parts + 1 : 1;
	if (__builtin_mul_overflow(at, axis.len, &axis.first) ||
	    __builtin_mul_overflow(parts, axis.len, &axis.step))
		axis.step = 0;
	return axis;
}

int oc_box_darray(struct oc_runs *runs, const struct oc_runs *element, const int64_t *of)
{
	int64_t rank = of[1], n = of[2];
	const int64_t *sizes = of + 3, *how = sizes + n, *lens = how + n, *parts = lens + n;
	bool c = of[3 + 4 * n] == MPI_ORDER_C, rows = false; /* dealt out some at a time */
	struct axis *axis = calloc((size_t)n, sizeof(*axis));
	int err;

	if (!axis)
		return -ENOMEM;
	/* Processes are in C's order, whatever the array is. */
	for (int64_t d = n - 1; d >= 0; d--) {
		int k = axis_of(n, c, d);

		axis[k] = dealt(sizes[d], how[d], lens[d], parts[d], rank % parts[d]);
		rank /= parts[d];
		rows |= k && how[d] == MPI_DISTRIBUTE_CYCLIC && axis[k].len > 1;
	}
	err = rows && !deals_rows ? -ENOTSUP : add_axes(runs, element, axis, (int)n, sizes, c);
	free(axis);
	return err;
}
