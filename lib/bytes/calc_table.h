/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_CALC_TABLE_H
#define OC_CALC_TABLE_H

#include <stddef.h>

#include "bytes/calc_type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* dst[i] = a[i] op b[i]; what oc_calc() promises (calc.h). */
typedef void oc_calc_fn(void *dst, const void *a, const void *b, size_t count);

/*
 * A left fold of @nsrc operands, @lines whole lines of OC_STREAM_LINE bytes
 * from byte @off of each, written past the caches from there to each of @ndst
 * destinations. Destinations plus @off on a line boundary, operands anywhere, no
 * overlap. Not fenced.
 */
typedef void oc_calc_stream_fn(void *const *dst, size_t ndst, const void *const *src, size_t nsrc,
			       size_t off, size_t lines);

/* Kernels of one instruction set; NULL where there is none. Every pair that
 * MPI allows has a calc kernel; stream ones are for whole-vector arithmetic. */
struct oc_calc_table {
	oc_calc_fn *calc[OC_OP_COUNT][OC_TYPE_COUNT];
	oc_calc_stream_fn *stream[OC_OP_COUNT][OC_TYPE_COUNT];
};

/* All from calc_kernels.cc, compiled once for each. */
extern const struct oc_calc_table oc_calc_baseline;
extern const struct oc_calc_table oc_calc_avx2;	  /* x86-64 only */
extern const struct oc_calc_table oc_calc_avx512; /* x86-64 only */

#ifdef __cplusplus
}
#endif
#endif
