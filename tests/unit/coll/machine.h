/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_MACHINE_H
#define OC_TEST_MACHINE_H

/*
 * A node made of arrays: runs the plans of all ranks in one thread, in an order
 * drawn at random from those the edges and events allow, copies cut in pieces
 * so that others come in between. What an executor must never be made to do by
 * a plan ends the run with a line that says why:
 *
 *   - a slot touched before its owner is READY, or after its plan has ended;
 *   - a receive slot touched by a peer that cannot reach it;
 *   - a condition looked at before the rank it is about is READY;
 *   - bytes outside a slot, a write to a send slot, a fold that cuts an element;
 *   - a circle of waits;
 *   - a receive slot not as expected at the moment its owner's plan ends.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/plan.h"

#define MACHINE_RANKS 9
#define MACHINE_SLOTS 3

enum machine_send {
	MACHINE_LIVE,	/* peers read the slot itself once its owner is READY */
	MACHINE_STAGED, /* they read a copy, made by the STAGE step */
	MACHINE_EAGER,	/* the same, before READY, and after the owner has left */
};

struct machine_rank {
	struct oc_plan *plan;
	uint8_t *slot[MACHINE_SLOTS]; /* send and receive may be one buffer: in place */
	size_t bytes[MACHINE_SLOTS];
	const uint8_t *expect; /* the receive slot afterwards, or NULL */
	enum machine_send send;
	bool reachable; /* peers may touch the receive slot */

	/* the machine's own */
	uint8_t *copy;			    /* of the send slot, NULL until staged */
	uint32_t delay;			    /* turns until the rank enters the call */
	uint64_t events[OC_EVENT_END / 64]; /* posted; none: not entered */
	bool ended;
	uint8_t *state; /* a step: 0, 1 done, 2 posted */
	uint64_t *pos;	/* a step: bytes moved */
};

struct machine {
	uint32_t size;
	uint32_t granule; /* bytes of an element of a fold */
	uint64_t random;
	struct machine_rank rank[MACHINE_RANKS];
	char why[160];
};

/* What a fold does to each byte. Neither associative nor commutative: only the
 * left fold in rank order gives the expected result. */
static inline uint8_t machine_fold(uint8_t a, uint8_t b)
{
	return (uint8_t)(a * 31u + b + 1u);
}

/* True if every plan ran to its end; else why[] says what happened. Overwrites
 * the slots of ranks that have ended. */
bool machine_run(struct machine *machine);

#endif
