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

/* Shows @len bytes of the target from @offset on in this process, or what of them is in one
 * piece, or more; with OC_PUT to be written, too. Good for as long as the target is and until
 * oc_access_release(). False when no mechanism does. */
bool oc_access_at(struct oc_node *node, const struct oc_target *target, enum oc_direction direction,
		  uint64_t offset, size_t len, struct oc_view *view);
void oc_access_release(struct oc_view *view);

/* At most @len bytes from target to target by a mechanism that needs no buffer here: how
 * many; -EPIPE with an owner gone; -EOPNOTSUPP when there is none. */
ssize_t oc_access_between(struct oc_node *node, const struct oc_target *dst, uint64_t dst_offset,
			  const struct oc_target *src, uint64_t src_offset, size_t len,
			  struct oc_moved *moved);

/*
 * The owner's side: how peers may reach memory of this rank during one use. The bits of
 * a target's mech, which the owner tells them with the address and the place; 0: not at
 * all, let it be staged. Whatever needs no more than the address is always among them.
 * *@place is -1, or held until oc_access_withdraw().
 */
uint32_t oc_access_offer(struct oc_node *node, const struct oc_want *want, int *place);

/* What is held in a place: no peer is at it any more; a peer could not get at it, and it
 * is not to be offered so for a good while. */
void oc_access_withdraw(struct oc_node *node, int place);
void oc_access_blame(struct oc_node *node, int place);

/* The peer's side: fills in the rest of a target, offered in that place. */
void oc_access_find(const struct oc_node *node, struct oc_target *target, uint32_t place);

/* Counts what was moved by a pointer: no more than a few instructions, so threads that do
 * it at once may lose some. */
static inline void oc_access_count(struct oc_moved *moved, uint32_t mech, size_t bytes)
{
	uint32_t index = oc_mech_index(mech);
	_Atomic uint64_t *calls = &moved->calls[index], *sum = &moved->bytes[index];

	atomic_store_explicit(calls, atomic_load_explicit(calls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + bytes,
			      memory_order_relaxed);
}

#endif
