/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_GROUP_H
#define OC_GROUP_H

/*
 * A group: some ranks of a node in a given order, who run operations together;
 * what a communicator is to MPI. Calls on one group come from one thread at a
 * time, in the same order on every member.
 */

#include <stdbool.h>
#include <stdint.h>

#include "bytes/layout.h"
#include "bytes/store_policy.h"
#include "access/access.h"
#include "exec/board.h"
#include "exec/keep.h"
#include "exec/wait.h"
#include "plan/cache.h"
#include "plan/plan.h"
#include "segment/node.h"

/* What the groups of this process have taken from other ranks or to them. */
extern struct oc_moved oc_group_moved;

/* A slot of a peer that is not in its arena, as seen from here. */
struct oc_remote {
	uint64_t seq; /* of the operation this is about */
	bool shown;
	struct oc_view view; /* where it is shown */
};

/* The layout of a peer's slot. */
struct oc_told {
	uint64_t seq; /* of the operation this is about */
	struct oc_layout *layout;
};

/* What an operation needs while it is under way; made once, used by one after the other. */
struct oc_op_room {
	struct oc_op_room *next;
	uint8_t *done; /* executor state, one byte a step */
	size_t done_bytes;
	struct oc_remote *remote; /* [2 * size] send and receive slots; NULL: none yet */
	struct oc_told *told;	  /* likewise: those in pieces */
};

/* One of the operations issued and not ended, as the group knows it: part of struct oc_op. */
struct oc_issued {
	uint64_t seq;
	uint64_t word; /* posted last: to read it back, where peers poll it, would be a miss */
	struct oc_issued *next; /* issued later */
};

struct oc_group {
	struct oc_node *node;
	uint32_t rank; /* in the group */
	uint32_t size;
	int board_index;
	uint32_t mech; /* OC_MECH_* by which every member reaches every other */
	uint64_t seq;  /* of the operation issued last */
	struct oc_board *me;
	uint32_t *node_rank;		     /* [size] */
	struct oc_board **board;	     /* [size] */
	char **arena;			     /* [size] base of each member's arena here, or NULL:
						lib/access/window.h */
	uint64_t *over;			     /* [size] each is known to have retired all up to this;
						one that is gone has retired all */
	uint64_t used[OC_BOARD_LINES];	     /* what each line was last written for */
	struct oc_issued *first;	     /* in the order of issue */
	bool asking;			     /* one of them waits for a peer to answer, and for
						nothing else: lib/exec/relay.h */
	uint32_t beside;		     /* a bit for each line: event[] may hold something */
	struct oc_op_room *rooms;	     /* free ones */
	struct oc_wait wait;		     /* for any member */
	int lost;			     /* the member found dead last in a wait, or -1 */
	struct oc_keep ring;		     /* OC_BOARD_LINES places for what eager plans stage */
	struct oc_store_policy_table stores; /* of the copies to slots, by enum oc_coll */
	struct oc_store_policy_table brief;  /* of those in plans that do not stream */
	struct oc_store_policy_table staging; /* of those that stage send slots */
	struct oc_store_policy_table eager;   /* and of those in eager plans */
	struct oc_plan_cache plans;
	struct oc_group *next; /* among those left whose board may still be read */
};

/* What each member contributes; exchanged by the caller (MPI_Allgather). */
struct oc_group_card {
	uint64_t seq;
	uint32_t node_rank;
	int32_t board_index; /* < 0: this member cannot take part */
	uint32_t mech;	     /* OC_MECH_* by which this one reaches every rank of the node */
};

/*
 * First half of making a group of @size members: takes a board and memory
 * and fills the card, in any case. NULL when this member cannot take part,
 * which its card then says to the others.
 */
struct oc_group *oc_group_offer(struct oc_node *node, uint32_t size, struct oc_group_card *card);

/*
 * Second half, with everybody's cards in group order. @group is what
 * oc_group_offer() returned. The result is the same on every member: 0, or
 * -EOPNOTSUPP when a card declines; @group is freed then. It belongs to the
 * caller; the node must outlive it.
 */
int oc_group_create(struct oc_group *group, const struct oc_group_card *cards, uint32_t rank);

/* Does not wait: the board is used again only when every member has left. No operation is
 * under way. */
void oc_group_destroy(struct oc_group *group);

/* This process leaves @node: no group of it is used any more. Peers may be behind, and at rings:
 * those stay where they are. */
void oc_group_forget(const struct oc_node *node);

/* Gives the next operation its number. It is under way until oc_group_retire(). */
void oc_group_issue(struct oc_group *group, struct oc_issued *op);

/* True if the operation's line may be written. If not, *@peer is a member that has not retired
 * what it was last used for, or oneself. */
bool oc_group_has_line(struct oc_group *group, const struct oc_issued *op, uint32_t *peer);

/* Makes the line the operation's, with no event posted. The caller fills it, then posts
 * OC_EVENT_READY; or it fails. */
struct oc_board_line *oc_group_take_line(struct oc_group *group, const struct oc_issued *op);

/* The operation is over, be it done or failed. */
void oc_group_retire(struct oc_group *group, struct oc_issued *op);

/* Memory for an operation, or NULL; and back. */
struct oc_op_room *oc_group_take_room(struct oc_group *group, size_t steps);
void oc_group_give_room(struct oc_group *group, struct oc_op_room *room);

/* Memory for the layout of a peer's slot, which is noted there, or NULL. */
struct oc_layout *oc_group_layout_room(struct oc_told *told, size_t bytes);

/* Tells the peers @event of the operation, which has a line and was not told before. */
void oc_group_post(struct oc_group *group, struct oc_issued *op, uint32_t event);

/* Gives the operation up for the reason @err, -errno. Peers that have seen READY may
 * still be at this rank's buffers. */
void oc_group_fail(struct oc_group *group, uint64_t seq, int err);

/* After that: a member that may be at this rank's buffers still, or -1. Only one that is in
 * the operation. */
int oc_group_inside(const struct oc_group *group, uint64_t seq);

/* Why some member gave up the operation, as -errno; 0: none has. */
int oc_group_failure(const struct oc_group *group, uint64_t seq);

/* Stores what of a line this rank has retired, but for operations under way. */
void oc_group_publish_retired(struct oc_group *group, uint64_t seq);

/* Takes no part in the group's next operation: no member waits for this one in it. */
static inline void oc_group_skip(struct oc_group *group)
{
	uint64_t seq = ++group->seq;

	if (group->first)
		oc_group_publish_retired(group, seq);
	else
		atomic_store_explicit(&group->me->retired[seq % OC_BOARD_LINES], seq,
				      memory_order_release);
}

/* A member whose process is gone, or -1: one that others have said is dead, before those who
 * left because of that; else the one that was waited for last, if any was. Costs system calls. */
int oc_group_dead(const struct oc_group *group);

/* The descriptor of member @peer for operation @seq. */
static inline struct oc_board_line *oc_group_line(const struct oc_group *group, uint64_t seq,
						  uint32_t peer)
{
	return &group->board[peer]->line[seq % OC_BOARD_LINES];
}

/* True if @peer has ended the operation, or left it out. */
static inline bool oc_group_retired(const struct oc_group *group, uint64_t seq, uint32_t peer)
{
	return atomic_load_explicit(&group->board[peer]->retired[seq % OC_BOARD_LINES],
				    memory_order_acquire) >= seq;
}

/* The word of @peer's line of the operation: oc_board_posted(), and oc_board_failure(). */
static inline uint64_t oc_group_word(const struct oc_group *group, uint64_t seq, uint32_t peer)
{
	return atomic_load_explicit(&oc_group_line(group, seq, peer)->word, memory_order_acquire);
}

/* Once @peer has posted an event of the operation: notes what else is known from its line. */
static inline void oc_group_met(struct oc_group *group, uint64_t seq, uint32_t peer)
{
	struct oc_board_line *line = oc_group_line(group, seq, peer);

	if (group->over[peer] < seq - 1 &&
	    atomic_load_explicit(&line->flags, memory_order_relaxed) & OC_BOARD_SOLE)
		group->over[peer] = seq - 1;
}

/* One turn of waiting for member @peer: oc_wait_turn(), after whose -EPIPE it is the one lost. */
int oc_group_idle(struct oc_group *group, uint32_t peer, struct oc_board_line *line, uint64_t seen);

#endif
