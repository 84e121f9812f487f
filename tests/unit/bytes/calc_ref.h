/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CALC_REF_H
#define CALC_REF_H

/*
 * What MPI's predefined operators mean, one element at a time: written from
 * the standard, slow on purpose, sharing no code with lib/bytes/calc_kernels.cc.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes/calc.h"

const char *ref_op_name(enum oc_calc_op op);
const char *ref_type_name(enum oc_type type);

/* Bytes of one element, and whether the standard has the pair (4.0, 6.9.2). */
size_t ref_size(enum oc_type type);
bool ref_allowed(enum oc_calc_op op, enum oc_type type);

/* *out = *a op *b, padding from @a. No alignment needed; no aliases. */
void ref_calc(enum oc_calc_op op, enum oc_type type, void *out, const void *a, const void *b);

/* Equal bytes; NaN results of arithmetic equal each other. */
bool ref_same(enum oc_calc_op op, enum oc_type type, const void *x, const void *y);

/* A random element: small values that often compare equal, extremes, zeros of
 * both signs, infinities, NaN, and noise in the padding. */
void ref_random(enum oc_type type, void *out, uint64_t *seed);

#endif
