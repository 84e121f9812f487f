/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_ACCESS_H
#define OC_ACCESS_H

/*
 * Bytes [off, off + len) of a peer's memory, for reading or writing: the one place where
 * the mechanisms are asked in turn (lib/access/mech.h), those that refuse are passed over,
 * and what was moved is counted. For regions and for slots of operations alike. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "access/mech.h"
#include "access/target.h"
#include "base/cursor.h"
#include "segment/node.h"

/*
 * Moves @len bytes, which the target has from @offset on, from or to @local, and counts
 * in @moved. Mechanisms that do not reach the target are passed over; those that should
 * and refuse are a demotion, and the next goes on where they stopped. 0 with all of it
 * moved; else -EPIPE with the owner gone, -EOPNOTSUPP when none reaches it, or why the
 * last one refused.
 */
int oc_access_move(struct oc_node *node, const struct oc_target *target,
		   enum oc_direction direction, uint64_t offset, struct oc_cursor *local,
		   size_t len, struct oc_moved *moved);

/* Shows the target from @offset on in this process, with OC_PUT to be written, too: good
 * for as long as the target is and until oc_access_release(). False when no mechanism does. */
bool oc_access_at(struct oc_node *node, const struct oc_target *target, enum oc_direction direction,
		  uint64_t offset, struct oc_view *view);
void oc_access_release(struct oc_view *view);

/* At most @len bytes from target to target by a mechanism that needs no buffer here: how
 * many; -EPIPE with an owner gone; -EOPNOTSUPP when there is none. */
ssize_t oc_access_between(struct oc_node *node, const struct oc_target *dst, uint64_t dst_offset,
			  const struct oc_target *src, uint64_t src_offset, size_t len,
			  struct oc_moved *moved);

#endif
