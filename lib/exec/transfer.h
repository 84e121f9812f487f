/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TRANSFER_H
#define OC_TRANSFER_H

/* COPY steps, and the copying half of RECV: from slot to slot, wherever they are. */

#include <stdbool.h>
#include <stddef.h>

#include "bytes/store_policy.h"
#include "exec/op.h"
#include "plan/plan.h"

/* False if a run would wait for what a peer is staging. */
bool oc_transfer_is_ready(struct oc_op *op, const struct oc_step *step);

/* 0 or -errno. */
int oc_transfer_run(struct oc_op *op, const struct oc_step *step);

/* Bytes of a slot that is no memory here, or in pieces, to memory here. 0 or -errno. */
int oc_transfer_read(struct oc_op *op, void *dst, struct oc_ref src, size_t len,
		     struct oc_store_turn *stores);

/* Memory here to a receive slot that is none here, or in pieces. 0 or -errno. */
int oc_transfer_write(struct oc_op *op, struct oc_ref dst, const void *src, size_t len);

#endif
