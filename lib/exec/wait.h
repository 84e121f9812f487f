/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_WAIT_H
#define OC_WAIT_H

/*
 * Waiting for a word in a peer's line to change, a turn at a time; and waking those who
 * do. See wait.c for how.
 */

#include "exec/board.h"

/* One waits for one thing at a time. One thread at a time. */
struct oc_wait {
	struct oc_node *node;
	void (*progress)(void); /* called while waiting; may be NULL */
	uint32_t turns;		/* since the last success: whoever has it sets this to 0 */
	uint64_t yields_since;	/* ms, when they turned into yields */
	uint64_t vain_since;	/* ns, since when yields give the core to nobody; or 0 */
};

/*
 * One turn of waiting for rank @peer of the node to change @line, which still held @seen:
 * spins, yields, calls progress or sleeps, as the number of turns says. 0, or -EPIPE: it is
 * dead, and the line's word is what it was.
 */
int oc_wait_turn(struct oc_wait *wait, uint32_t peer, struct oc_board_line *line, uint64_t seen);

/* Stores another word with release order and wakes whoever sleeps on it. */
void oc_line_publish(struct oc_board_line *line, uint64_t word);

/* Wakes sleepers after something else in the line has changed. */
void oc_line_wake(struct oc_board_line *line);

#endif
