/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_OP_H
#define OC_OP_H

/*
 * One operation as one member runs it: the plan, the buffers it is bound to, where it
 * is with them, and how it waits. What the executors share. Belongs to whoever asked for it (a
 * call, a request), and to the thread that calls on its group.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "access/window.h"
#include "bytes/calc.h"
#include "bytes/calc_given.h"
#include "bytes/layout_copy.h"
#include "bytes/store_policy.h"
#include "exec/group.h"
#include "exec/keep.h"
#include "plan/plan.h"

/* How the other end of a pair turned out to be (OC_STEP_PAIR): nothing was done but where
 * they are together. */
enum oc_pair {
	OC_PAIR_TOGETHER, /* also as long as nothing is known */
	OC_PAIR_ABSENT,	  /* knows of no such pair */
	OC_PAIR_LESS,	  /* has fewer bytes than this one */
	OC_PAIR_MORE,
};

/* The buffers and the operator one issue of a plan works on. */
struct oc_bind {
	const void *send; /* this rank's send slot, or NULL */
	size_t send_bytes;
	void *recv; /* this rank's receive slot, or NULL */
	size_t recv_bytes;
	size_t scratch_bytes; /* wanted; the executor provides it */
	/* What is counted in these bytes lies so, send and recv being where the first element
	 * begins; NULL: in one piece. To be left alone until the operation has ended. */
	const struct oc_layout *send_layout;
	const struct oc_layout *recv_layout;
	const void *scratch_init; /* copied to the scratch slot first, or NULL; a table that peers
				   * may read until they have retired the operation, at most
				   * OC_EAGER_MAX */
	uint8_t *
		pair; /* enum oc_pair, [size] of each peer, [size] of OC_STEP_OUT; NULL: no pairs */
	enum oc_calc_op op;
	enum oc_type type;
	const struct oc_calc_given *given; /* instead of these, or NULL */
	bool call;	 /* let the module copy a foreign send slot rather than stage it */
	bool recv_whole; /* every page of the receive slot's bytes will be written, none is read
			  * only */
	bool recv_hole;	 /* pages of the receive slot may be none of the program's: do not pin it */
};

/* Byte @off of the send or receive slot of who binds, in whatever pieces that is. */
static inline struct oc_place oc_bind_place(const struct oc_bind *bind, enum oc_slot slot,
					    uint64_t off)
{
	const void *base = slot == OC_SLOT_SEND ? bind->send : bind->recv;

	return (struct oc_place){.base = (char *)(uintptr_t)base,
				 .layout = slot == OC_SLOT_SEND ? bind->send_layout
								: bind->recv_layout,
				 .off = off};
}

/* Bytes staged before readers are told: they stay in a second-level cache. */
#define OC_OP_CHUNK ((size_t)64 << 10)

enum oc_op_state {
	OC_OP_ISSUED, /* has a number, and no line yet */
	OC_OP_RUNNING,
	OC_OP_QUITTING, /* failed; peers may be at its buffers */
	OC_OP_ENDED,
};

struct oc_op {
	struct oc_issued issued; /* first */
	struct oc_group *group;
	const struct oc_plan *plan;
	const struct oc_bind *bind;
	int (*turn)(struct oc_op *op); /* what else is to be done in each turn of waiting */
	struct oc_board_line *line;
	struct oc_op_room *room;
	enum oc_op_state state;
	bool busy;	   /* somebody is at it, further out on the stack */
	bool waits;	   /* its steps may wait: nothing else can be done */
	bool offered;	   /* peers have been told of its slots */
	uint32_t first;	   /* step not done */
	uint32_t looks;	   /* since the last that was done */
	uint64_t send;	   /* where in the arena the send slot is: oc_pieces_find() */
	bool foreign;	   /* it is not there, and peers may read it */
	bool parted;	   /* some pair is not together */
	int8_t all_direct; /* every receive slot is reachable; -1 not known yet */
	int send_place;	   /* of one's own slots: oc_access_offer() */
	int recv_place;
	uint32_t shown;		     /* peers' slots held: lib/exec/remote.c */
	struct oc_store_turn stores; /* to slots */
	struct oc_window_use window; /* of peers' arenas; urgent where nobody could be asked */
	struct oc_keep scratch;	     /* the plan's scratch slot */
	struct oc_keep stage;	     /* a foreign send slot, where peers can read it */
	struct oc_keep layouts[2];   /* of one's own slots, for peers: lib/exec/pieces.h */
	struct oc_keep parcel;	     /* what passes through here on its way: lib/exec/relay.c */
	int err;
};

/* The descriptor of member @peer. */
static inline struct oc_board_line *oc_op_line(const struct oc_op *op, uint32_t peer)
{
	return oc_group_line(op->group, op->issued.seq, peer);
}

/* Why the owner of a line gave up, and posts no event any more, as -errno; 0: it has not. */
int oc_op_failure(struct oc_op *op, struct oc_board_line *line);

/* The same of all members, once in a while: for those who wait for a third one. */
int oc_op_look_around(struct oc_op *op, uint32_t turn);

/* A turn of waiting for a change of @peer's line, which held @seen; serves those
 * who wait for this rank, and goes on with what else is under way. 0, -EPIPE with the peer gone,
 * what staging failed with, or why a member gave up: not this peer perhaps, but one that waits for
 * this rank to leave. */
int oc_op_idle(struct oc_op *op, uint32_t peer, struct oc_board_line *line, uint64_t seen);

/* The same, for a change of anything but the word in @peer's line of this operation. */
int oc_op_idle_beside(struct oc_op *op, uint32_t peer);

/* [off, off + len) of a member's arena. NULL if that cannot be mapped. */
static inline char *oc_op_arena(const struct oc_op *op, uint32_t member, uint64_t off, size_t len)
{
	const struct oc_group *group = op->group;

	if (__builtin_expect(group->arena[member] != NULL, 1))
		return group->arena[member] + off;
	return oc_window_at(&op->window, group->node, group->node_rank[member], off, len);
}

/* Where in a member's arena its slot begins: a send slot that is there, or staged
 * there, a receive slot that is there, or a scratch slot. */
uint64_t oc_op_arena_offset(struct oc_op *op, uint32_t member, enum oc_slot slot);

static inline uint32_t oc_line_flags(struct oc_board_line *line)
{
	return atomic_load_explicit(&line->flags, memory_order_acquire);
}

/* Where arrays of an operation's room have a send or receive slot of member @peer. */
static inline uint32_t oc_op_slot_index(const struct oc_op *op, uint32_t peer, enum oc_slot slot)
{
	return slot == OC_SLOT_RECV ? op->group->size + peer : peer;
}

/* What is noted of a slot of member @peer; only once anything has been. */
static inline struct oc_remote *oc_op_remote(const struct oc_op *op, uint32_t peer,
					     enum oc_slot slot)
{
	return &op->room->remote[oc_op_slot_index(op, peer, slot)];
}

/*
 * Counts bytes that plain loads and stores took from a slot of @peer or to it. Each byte that goes
 * from one rank to another is counted once, by who takes it there: what is staged is not when it is
 * put aside, but when it is read. Scratch slots are put aside as well.
 */
static inline void oc_op_count(struct oc_op *op, enum oc_slot slot, uint32_t peer, size_t len)
{
	struct oc_group *group = op->group;
	uint32_t flags, mech = OC_MECH_HEAP;

	if (peer == group->rank)
		return;
	flags = oc_line_flags(oc_op_line(op, peer));
	if (slot == OC_SLOT_SCRATCH || (slot == OC_SLOT_SEND && flags & OC_BOARD_SEND_STAGED))
		mech = OC_MECH_STAGED;
	else if (flags & (slot == OC_SLOT_SEND ? OC_BOARD_SEND_AWAY : OC_BOARD_RECV_AWAY))
		mech = oc_op_remote(op, peer, slot)->view.mech->bit;
	oc_access_count(&oc_group_moved, mech, len);
}

#endif
