/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MECH_KCOPY_H
#define OC_MECH_KCOPY_H

/* Reaching peers through the kernel module: what map and kcopy share. */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "access/kdev.h"
#include "access/mech.h"
#include "access/target.h"
#include "base/cursor.h"
#include "segment/node.h"

/* oc_mech.ready(), and oc_mech.explain() of the mechanism @bit. */
int oc_kcopy_ready(const struct oc_node *node);
void oc_kcopy_explain(const struct oc_node *node, uint32_t peer, uint32_t bit, char *why,
		      size_t size);

/* oc_mech.offer() of both, and oc_mech.find(). */
uint32_t oc_kcopy_offer(struct oc_node *node, const struct oc_want *want, int *place);
void oc_kcopy_find(const struct oc_node *node, struct oc_target *target, uint32_t place);

/* Whether the module reaches this memory by the mechanism @bit. */
bool oc_kcopy_reaches(const struct oc_node *node, const struct oc_target *target, uint32_t bit);

/*
 * What an error of the module means to a peer. Stale: memory of the owner that
 * is not there any more. Gone, while the caller keeps the owner from destroying it: the
 * owner is.
 */
static inline ssize_t oc_kcopy_error(ssize_t err)
{
	return err == -ESTALE ? -EFAULT : err == -ENOENT ? -EPIPE : err;
}

/* oc_kdev_copy() with the errors of oc_mech.move(). */
ssize_t oc_kcopy_move(enum oc_direction direction, const struct oc_target *target, uint64_t offset,
		      struct oc_cursor *local, size_t len);

#endif
