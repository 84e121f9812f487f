/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_CALC_H
#define OC_CALC_H

#include <stdbool.h>
#include <stddef.h>

#include "bytes/calc_type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Nonzero if oc_calc() takes this pair. Any values may be asked about. Any thread. */
int oc_calc_supported(enum oc_calc_op op, enum oc_type type);

/*
 * dst[i] = a[i] op b[i] for i in [0, count). @a holds the operand of the lower
 * rank. @dst may be @a or @b exactly, but no other overlap. No alignment is
 * asked. Unsupported pairs must not be passed. Any thread.
 *
 * The result never depends on alignment, count or CPU: no fused multiply-add,
 * no reassociation. MAX is a > b ? a : b, MIN a < b ? a : b, so with a NaN the
 * result is b. MAXLOC and MINLOC: of equal values the lower index. Logical
 * results are 1 or 0. Padding inside an element is a's. When both operands of a
 * floating-point SUM or PROD are NaN, which of the two payloads survives is open.
 */
void oc_calc(enum oc_calc_op op, enum oc_type type, void *dst, const void *a, const void *b,
	     size_t count);

/*
 * Left fold in rank order over @nsrc operands, ((s[0] op s[1]) op s[2]) ...,
 * element by element, written to each of @ndst destinations. Works through the
 * first-level cache: every operand byte is read once, every destination byte
 * written once. With @stream that is past the caches and fenced before the
 * return, but not in place, where the lines are in the cache already. A
 * destination may be one of the sources exactly (MPI_IN_PLACE), several may each
 * be another one; no other overlap. @count elements. @nsrc, @ndst >= 1. nsrc ==
 * 1 copies. Any thread; 8 KiB of stack.
 */
void oc_calc_fold(enum oc_calc_op op, enum oc_type type, void *const *dst, size_t ndst,
		  const void *const *src, size_t nsrc, size_t count, bool stream);

#ifdef __cplusplus
}
#endif
#endif
