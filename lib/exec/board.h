/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_BOARD_H
#define OC_BOARD_H

/*
 * Boards: what one rank tells its peers about its part in the operations
 * of one group. Written by the owner alone, read by everybody, one cache line
 * an operation, so that "I have arrived" and "my buffers are here" travel in
 * one transfer.
 *
 * Operations of a group are numbered from 1. Operation s uses line s % OC_BOARD_LINES. The
 * owner writes the descriptor, then stores the word s << 16 and the bit of OC_EVENT_READY
 * with release order; each event after that is one more bit, in the word or, for those that have
 * no bit there, in event[] of the line, and then OC_BOARD_TURN in the word changes for those who
 * sleep on it. event[] is cleared before READY, if anything was posted there.
 * The numbers in words only grow, over the whole life of the board, whatever group owns
 * it, so a waiter that is late still sees its condition as reached.
 *
 * A rank need not take part in each: of an operation in which no peer waits for it, nor
 * it for any, it counts the number alone (oc_group_skip()). Whoever would wait for
 * another rank must know from the operation's own arguments that this one takes part.
 * So a rank may be any number of operations ahead, and its lines hold the last ones
 * that it took part in.
 *
 * Any number of operations may be under way, go on in any order and end in any order.
 *
 * retired[]: of the operations that use the line of that place, the owner has ended, or never
 * entered, all up to this number, and looks at nobody's lines and touches nobody's memory on
 * their account. It is stored with each operation's end, whatever that is, and for each one that
 * is skipped; so it rises although its owner may never take part again. A line, and the place of
 * the ring that goes with it, is written again when its owner and every peer have retired the
 * operation that the line was last used for: oc_group_take_line() sees to that. Who begins an
 * operation must not wait for that and do nothing else: what it waits for may wait for
 * another operation of this rank.
 *
 * Failure. A rank that gives up stores OC_BOARD_FAILED and why, and after that store it
 * touches no peer's memory. Before it returns it waits until no living peer is at
 * its own (oc_group_inside()): until each has retired the operation, has failed in it too,
 * or has not posted READY. One that posts READY later looks at this rank's word after
 * that, before it touches anything of this rank's. Both the posting of a word and
 * this look stand around full fences, hence one of the two sees the other. Nobody waits in a
 * circle, for FAILED is stored before the wait; and nobody waits for ever, for those who
 * wait for a third rank look for failures of all.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"
#include "segment/node.h"

#define OC_BOARD_LINES 8

/* The low bits of a line's word: 0 to 13 are the events from OC_EVENT_READY on. */
#define OC_BOARD_WORD_BITS   16
#define OC_BOARD_WORD_EVENTS 14u
#define OC_BOARD_TURN	     0x4000u /* changes with each event that has no bit here */
#define OC_BOARD_FAILED	     0x8000u /* and the errno: the owner gave up, who waits for it must too */
#define OC_STAGE_PAGE	     4096u

/*
 * A line's flags: OC_MECH_* bits, by which the send slot may be read and the receive slot
 * be written, and for either what place it has in its owner's table of pinned memory, if
 * one of these mechanisms wants to know (lib/access/access.h). In the arena a slot's
 * address is an offset; staged, it is in stage_page, as far as ready says; else it is the
 * owner's.
 */
#define OC_BOARD_RECV	    8 /* shifts */
#define OC_BOARD_SEND_PLACE 16
#define OC_BOARD_RECV_PLACE 24
#define OC_BOARD_PLACE_MASK 0xffu
#define OC_BOARD_MECH_MASK  0x7fu
_Static_assert(OC_MECH_COUNT < OC_BOARD_RECV, "mechanisms fit");

#define OC_BOARD_SEND_HEAP   OC_MECH_HEAP
#define OC_BOARD_SEND_STAGED OC_MECH_STAGED
#define OC_BOARD_RECV_HEAP   (OC_MECH_HEAP << OC_BOARD_RECV)
/* Peers may write the receive slot. */
#define OC_BOARD_RECV_OPEN (OC_BOARD_MECH_MASK << OC_BOARD_RECV)
/* In where a slot is: it is in pieces, and its layout is there. */
#define OC_BOARD_PIECES (UINT64_C(1) << 63)
/* The owner has retired all operations before this one. */
#define OC_BOARD_SOLE 0x80u
/* A slot that is not in the arena. */
#define OC_BOARD_SEND_AWAY (OC_BOARD_MECH_MASK & ~(OC_BOARD_SEND_HEAP | OC_BOARD_SEND_STAGED))
#define OC_BOARD_RECV_AWAY (OC_BOARD_RECV_OPEN & ~OC_BOARD_RECV_HEAP)

/* Stage your send slot, please; and, above it, one more than the rank in the
 * group whose parcel is to be served. */
#define OC_BOARD_ASK_STAGE  1u
#define OC_BOARD_ASK_PARCEL 1 /* shift */

struct oc_board_line {
	_Alignas(OC_CACHELINE) _Atomic uint64_t word;
	_Atomic uint32_t sleepers; /* set by waiters about to sleep on word */
	_Atomic uint32_t flags;	   /* see above; staging may change the send slot's later */
	uint64_t send;		   /* where it is: arena offset or address */
	uint64_t recv;
	uint64_t scratch;	/* arena offset, or 0 */
	uint64_t bytes;		/* of the call, as the owner sees it */
	_Atomic uint64_t ready; /* bytes of send that may be read so far */
	_Atomic uint32_t asked; /* by peers who cannot get at a slot: OC_BOARD_ASK_* */
	uint32_t stage_page;	/* where it is staged: arena offset in OC_STAGE_PAGE */
};
_Static_assert(sizeof(struct oc_board_line) == OC_CACHELINE, "one line an operation");

/* What is asked of one peer at a time: lib/exec/relay.h. */
struct oc_board_parcel {
	uint64_t off;  /* in the peer's slot */
	uint32_t slot; /* or, of OC_SLOT_COUNT and a slot, the layout of that */
	uint32_t len;
	uint32_t page; /* of the owner's arena, where the bytes are or go */
	bool put;
};

struct oc_board {
	struct oc_board_line line[OC_BOARD_LINES];
	_Alignas(OC_CACHELINE) _Atomic uint64_t retired[OC_BOARD_LINES]; /* see above */
	/* The events of each line that have no bit in its word, by number. */
	_Alignas(OC_CACHELINE) _Atomic uint64_t event[OC_BOARD_LINES][OC_EVENT_END / 64];
	/* Highest operation number of groups the owner has left for good. */
	_Alignas(OC_CACHELINE) _Atomic uint64_t left;
	struct oc_board_parcel parcel;
};

/* Takes one of this rank's boards: its index, or -ENOSPC. @seq: the last
 * operation number it was used with. Any thread. */
int oc_board_take(uint64_t *seq);
void oc_board_put(int index, uint64_t seq);
struct oc_board *oc_board_at(const struct oc_node *node, uint32_t rank, uint32_t index);

static inline uint64_t oc_board_word(uint64_t seq, uint32_t bits)
{
	return seq << OC_BOARD_WORD_BITS | bits;
}

static inline uint32_t oc_board_event_bit(uint32_t event)
{
	return 1u << (event - OC_EVENT_READY);
}

/* Why the owner of a line that holds @word gave up operation @seq, as -errno; 0: it
 * has not. */
static inline int oc_board_failure(uint64_t word, uint64_t seq)
{
	uint64_t err = word - oc_board_word(seq, OC_BOARD_FAILED);

	return err < OC_BOARD_FAILED ? -(int)err : 0;
}

/* oc_board_posted() of an event that has no bit in the word, which is of operation @seq. */
bool oc_board_posted_beside(const struct oc_board *board, uint64_t word, uint64_t seq,
			    uint32_t event);

/* True if the owner of @board, who has @word in the line of operation @seq, has posted @event of
 * it, or has failed in it, or is at a later one. Acquires what was done before the event, as the
 * load of @word must. */
static inline bool oc_board_posted(const struct oc_board *board, uint64_t word, uint64_t seq,
				   uint32_t event)
{
	int64_t ahead = (int64_t)(word - oc_board_word(seq, 0));

	if ((uint64_t)ahead >> OC_BOARD_WORD_BITS)
		return ahead > 0;
	if (__builtin_expect(event - OC_EVENT_READY < OC_BOARD_WORD_EVENTS, 1))
		return word & (oc_board_event_bit(event) | OC_BOARD_FAILED);
	return oc_board_posted_beside(board, word, seq, event);
}

#endif
