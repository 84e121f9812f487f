/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_FOLD_H
#define OC_FOLD_H

/* CALC steps: operands from slots to slots, wherever they are. */

#include "exec/op.h"
#include "plan/plan.h"

/* 0 or -errno. */
int oc_fold_run(struct oc_op *op, const struct oc_step *step);

#endif
