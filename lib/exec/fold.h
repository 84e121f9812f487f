/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_FOLD_H
#define OC_FOLD_H

/* CALC steps: operands from slots to slots, wherever they are. */

#include <stdint.h>

#include "exec/op.h"
#include "plan/plan.h"

/* A peer for what it is staging a run would wait, or this rank. */
uint32_t oc_fold_awaited(const struct oc_op *op, const struct oc_step *step);

/* 0 or -errno. */
int oc_fold_run(struct oc_op *op, const struct oc_step *step);

#endif
