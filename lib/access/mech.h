/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MECH_H
#define OC_MECH_H

/*
 * A mechanism: one way to move bytes between this process and memory of a peer. The
 * struct is all anybody knows of it. lib/access/access.c asks those that are allowed in
 * the order of oc_mech_table, fastest first, and moves on to the next when one refuses.
 */

#include <stdint.h>
#include <sys/types.h>

#include <onecopy/onecopy.h>

#include "access/target.h"
#include "base/cursor.h"
#include "segment/node.h"

/* What it reaches can be pointers: .at is defined. */
#define OC_MECH_POINTS 0x1u
/* It copies from memory of anybody to memory of anybody: .between is defined. */
#define OC_MECH_BETWEEN 0x2u

/* From here on a destination will hardly be read from a cache again. */
#define OC_MECH_STREAM_BYTES (1u << 20)

struct oc_mech {
	const char *name; /* as in ONECOPY_MECH */
	uint32_t bit;	  /* OC_MECH_* */
	uint32_t flags;

	/* What the probe of the join found for this peer: 0, or -errno and the
	 * reason in @why. Any thread. */
	int (*probe)(const struct oc_node *node, uint32_t peer, char *why, size_t size);

	/*
	 * Moves @len bytes, which the target and @local are known to have, between
	 * @offset of the target and @local, and advances @local by what was moved.
	 * Returns that; less than @len or -errno when the mechanism cannot move the
	 * rest: -EOPNOTSUPP it does not reach this memory, -EPIPE the owner is gone
	 * (no other mechanism is asked then), else why. Any thread.
	 */
	ssize_t (*move)(struct oc_node *node, const struct oc_target *target,
			enum oc_direction direction, uint64_t offset, struct oc_cursor *local,
			size_t len);

	/* Defined if OC_MECH_POINTS: where @offset of the target lies in this
	 * process, and in *@len how far that is one piece. NULL: not reached.
	 * Good while the target is. */
	void *(*at)(struct oc_node *node, const struct oc_target *target, uint64_t offset,
		    size_t *len);

	/* Defined if OC_MECH_BETWEEN: as move, without a buffer here. */
	ssize_t (*between)(struct oc_node *node, const struct oc_target *dst, uint64_t dst_offset,
			   const struct oc_target *src, uint64_t src_offset, size_t len);
};

extern const struct oc_mech oc_mech_heap;
extern const struct oc_mech oc_mech_map;
extern const struct oc_mech oc_mech_kcopy;
extern const struct oc_mech oc_mech_cma;
extern const struct oc_mech oc_mech_staged;

/* In the order of the OC_MECH_* bits, which is that of preference. */
extern const struct oc_mech *const oc_mech_table[OC_MECH_COUNT];

static inline bool oc_mech_allowed(const struct oc_node *node, const struct oc_mech *mech)
{
	return atomic_load_explicit(&node->mech_mask, memory_order_relaxed) & mech->bit;
}

#endif
