/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_TRIAL_H
#define OC_TEST_TRIAL_H

/*
 * One collective on the simulated node of machine.h: the buffers of all ranks,
 * and what the receive slots are to hold afterwards, worked out by loops that
 * say what the collective means.
 */

#include "coll.h"
#include "machine.h"

#define RANKS MACHINE_RANKS

struct trial {
	enum oc_coll coll;
	uint32_t size;
	uint32_t root;
	uint32_t split; /* ranks of the first of two groups; 0: there is one */
	uint32_t granule;
	uint64_t bytes;
	bool stream;
	bool eager;
	bool in_place[RANKS];
	uint64_t len[RANKS][RANKS];	/* v: [from][to]; others use a row or a column */
	uint64_t off_out[RANKS][RANKS]; /* [me][to] in the send slot */
	uint64_t off_in[RANKS][RANKS];	/* [me][from] in the receive slot */
	uint8_t *memory[RANKS][MACHINE_SLOTS];
	uint8_t *expect[RANKS];
	uint64_t seed;
	struct machine machine;
};

/* All randomness of a trial comes from here. */
extern uint64_t trial_seed;
uint32_t trial_dice(uint32_t sides);

/* Says what was tried, then why it failed, and exits. */
void trial_die(const struct trial *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));

/* Gives every rank its slots and its expectations. The caller has set all up
 * to and including in_place. */
void trial_setup(struct trial *t);

/* Where there are two groups: whether @rank and @me are in different ones. */
bool trial_is_there(const struct trial *t, uint32_t me, uint32_t rank);

/* What rank @me receives from each rank in an alltoallv. */
void trial_incoming(const struct trial *t, uint32_t me, uint64_t *len);

/* Frees the slots and the plans. */
void trial_free(struct trial *t);

#endif
