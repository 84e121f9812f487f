/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_RUNS_H
#define OC_MPI_RUNS_H

/*
 * The runs of an element of a datatype, in the order of the type map, as they are found. Functions
 * return 0, -E2BIG, -ENOMEM or -EINVAL.
 */

#include <stdbool.h>
#include <stdint.h>

#include "bytes/layout.h"
#include "exec/pieces.h"

#define OC_RUNS_WORK_MAX (UINT64_C(16) * OC_PIECES_MAX) /* runs looked at, most become one */

struct oc_runs {
	struct oc_run *run; /* whoever began with none frees them */
	uint32_t n, room;
	uint64_t *work; /* so far, for these and those of all types around them and within */
	int64_t extent;
};

/* *@out = @base + @n * @step, or false. */
static inline bool oc_runs_place(int64_t base, int64_t n, int64_t step, int64_t *out)
{
	int64_t by;

	return !__builtin_mul_overflow(n, step, &by) && !__builtin_add_overflow(base, by, out);
}

/* A run that goes on where the last one ends is one with it. */
int oc_runs_add(struct oc_runs *runs, int64_t at, uint64_t len);

/* @count elements one after the other, the first at @at. */
int oc_runs_repeat(struct oc_runs *runs, const struct oc_runs *element, int64_t at, int64_t count);

#endif
