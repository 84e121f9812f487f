/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_STEPS_H
#define OC_STEPS_H

/* The steps of an operation's plan, in any order that its edges allow. */

#include <stdint.h>

#include "exec/op.h"

/* Runs the steps that are ready, each once, and op->first comes to the first that is not done.
 * 1 when something was, 0, or -errno. *@stuck: the first that waits for a peer, if any does, or
 * the number of steps. */
int oc_steps_pass(struct oc_op *op, uint32_t *stuck);

/* Whom that step waits for. */
uint32_t oc_steps_peer(const struct oc_op *op, uint32_t stuck);

/* A turn of waiting for the event that step wants. 0 or more, or -errno. */
int oc_steps_idle(struct oc_op *op, uint32_t stuck);

/* @peer is gone, but may have done before what a step waits for. 1 when something was ready after
 * all, or -errno: -EPIPE when not. */
int oc_steps_without(struct oc_op *op, uint32_t peer);

#endif
