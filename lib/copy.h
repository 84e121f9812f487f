/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_COPY_H
#define OC_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include "calc.h"

/*
 * Copies @len bytes between memory that does not overlap. With @stream the
 * destination is written by non-temporal stores, past the caches, and fenced
 * before the return: right when it will not be read soon. Any thread.
 */
void oc_copy_bytes(void *dst, const void *src, size_t len, bool stream);

/*
 * Left fold in rank order over @nsrc operands, ((s[0] op s[1]) op s[2]) ...,
 * element by element, written to each of @ndst destinations. Works through the
 * first-level cache: every operand byte is read once, every destination byte
 * written once. A destination may be one of the sources exactly (MPI_IN_PLACE);
 * no other overlap. @count elements. @nsrc, @ndst >= 1. nsrc == 1 copies.
 */
void oc_calc_fold(enum oc_op op, enum oc_type type, void *const *dst, size_t ndst,
		  const void *const *src, size_t nsrc, size_t count, bool stream);

#endif
