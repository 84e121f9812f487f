/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_CALC_GIVEN_H
#define OC_CALC_GIVEN_H

/* Folds by an operator that somebody else brings, as oc_calc_fold() does by its own. */

#include <stdbool.h>
#include <stddef.h>

struct oc_calc_given {
	/* inout[i] = in[i] op inout[i] for i in [0, count); @in holds what the lower ranks make.
	 * They do not overlap. 0 or -errno. */
	int (*fold)(const struct oc_calc_given *given, const void *in, void *inout, size_t count);
	size_t size; /* of an element */
};

/*
 * oc_calc_fold() in the same order and with the same rules: an element of the result is made of
 * those operands, one after the other, lowest first, and in no other way. The operator gets
 * operands where they are, and copies of its own that it may write; what it makes of them is
 * copied to the destinations when all operands of a chunk have been read. Any thread that the
 * operator allows; 16 KiB of stack. 0, -ENOMEM, or what the operator returned.
 */
int oc_calc_given_fold(const struct oc_calc_given *given, void *const *dst, size_t ndst,
		       const void *const *src, size_t nsrc, size_t count, bool stream);

#endif
