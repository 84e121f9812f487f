/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PAIR_H
#define OC_PAIR_H

/*
 * Pairs of a v-collective (OC_STEP_PAIR), of whose length only their two ends know. In a wrong
 * program these differ, and one may even take no part in the operation, which it has
 * left out then (oc_group_skip()).
 */

#include <stdbool.h>
#include <stdint.h>

#include "exec/op.h"

/* A word of a peer's table. 0 or -errno. */
int oc_pair_look_up(struct oc_op *op, struct oc_ref ref, uint64_t *word);

/* Whether a WAIT for a pair is over; then bind->pair says how its other end is, or op->err
 * that the peer has failed. */
bool oc_pair_met(struct oc_op *op, const struct oc_step *step);

/* Whether a step is about a pair that is not together. This rank's own posts are for all. */
bool oc_pair_is_parted(struct oc_op *op, const struct oc_step *step);

#endif
