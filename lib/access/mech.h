/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MECH_H
#define OC_MECH_H

/*
 * A mechanism: one way to move bytes between this process and memory of a peer. The
 * struct is all anybody knows of it. lib/access/access.c asks those that are allowed in
 * the order of oc_mech_table, fastest first, and moves on to the next when one refuses.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <onecopy/onecopy.h>

#include "access/target.h"
#include "base/cursor.h"
#include "segment/node.h"

/* Memory of a peer as a pointer here. */
struct oc_view {
	char *at;
	size_t bytes; /* in one piece from there on */
	const struct oc_mech *mech;
	void *hold; /* the mechanism's own */
};

/* Below this a copy by system calls, page by page, loses against staging. */
#define OC_MECH_CALL_MIN ((size_t)128 << 10)

/* From here on a destination will hardly be read from a cache again. */
#define OC_MECH_STREAM_BYTES (1u << 20)

/* Memory of this rank that peers are to get at during one use. */
struct oc_want {
	const void *at;
	size_t bytes;
	uint32_t mech; /* OC_MECH_* by which every peer could */
	bool write;    /* peers write it; else they read it */
	bool staged;   /* else it is staged, or its owner pulls: by what is sooner than CMA */
	bool once;     /* worth a copy by the kernel though it may never come again */
	bool gaps;     /* pages between may be none of the program's: not to be pinned */
	bool plain;    /* no byte goes to it twice, is folded, or goes to others as well */
};

struct oc_mech {
	uint32_t bit;	   /* OC_MECH_* */
	const char *means; /* what of the system it goes by, or NULL: notes name that */
	/* Whether it reaches a peer is found out by a real copy as the node is joined
	 * (lib/node/probe.c), which sets the bit in node->peers[].gets and .puts. */
	bool tried;

	/* Optional: whether this process may try it at all. 0; -ENODEV there is nothing
	 * to try it with; else why not. Once, before any peer is tried. */
	int (*ready)(const struct oc_node *node);

	/* Why this peer's memory is not reached, in one line that a user can act on;
	 * "" if it is. Any thread. */
	void (*explain)(const struct oc_node *node, uint32_t peer, char *why, size_t size);

	/*
	 * Optional: the owner's side of slots of operations. Says whether peers had better
	 * reach this memory by it, and prepares that: OC_MECH_* bits for the target, or 0;
	 * in *@place what it holds in the table of pinned memory until
	 * oc_access_withdraw(), which is left as it is if nothing.
	 */
	uint32_t (*offer)(struct oc_node *node, const struct oc_want *want, int *place);

	/* Optional: fills in what the owner said of a target in that place. Without it an
	 * address is enough. */
	void (*find)(const struct oc_node *node, struct oc_target *target, uint32_t place);

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

	/*
	 * Optional: shows @len bytes of the target from @offset on in this process, for as
	 * long as the target is good and until .release; with OC_PUT to be written, too.
	 * It may be more, or less where the target is not in one piece. 0, or -errno:
	 * -EOPNOTSUPP when that is not for this memory. .release is optional as well.
	 */
	int (*at)(struct oc_node *node, const struct oc_target *target, enum oc_direction direction,
		  uint64_t offset, size_t len, struct oc_view *view);
	void (*release)(struct oc_view *view);

	/* Optional: as move, without a buffer here. */
	ssize_t (*between)(struct oc_node *node, const struct oc_target *dst, uint64_t dst_offset,
			   const struct oc_target *src, uint64_t src_offset, size_t len);
};

extern const struct oc_mech oc_mech_heap;
extern const struct oc_mech oc_mech_map;
extern const struct oc_mech oc_mech_kcopy;
extern const struct oc_mech oc_mech_cma;
extern const struct oc_mech oc_mech_staged;

/* In the order of preference: lib/access/mech_table.c. */
extern const struct oc_mech *const oc_mech_table[OC_MECH_COUNT];

/* Whether the mechanism @bit was tried with this peer, and works both ways. */
static inline bool oc_mech_works(const struct oc_node *node, uint32_t peer, uint32_t bit)
{
	const struct oc_node_peer *it = &node->peers[peer];

	return atomic_load_explicit(&it->gets, memory_order_relaxed) &
	       atomic_load_explicit(&it->puts, memory_order_relaxed) & bit;
}

static inline uint32_t oc_mech_index(uint32_t bit)
{
	return (uint32_t)__builtin_ctz(bit);
}

static inline bool oc_mech_allowed(const struct oc_node *node, const struct oc_mech *mech)
{
	return atomic_load_explicit(&node->mech_mask, memory_order_relaxed) & mech->bit;
}

#endif
