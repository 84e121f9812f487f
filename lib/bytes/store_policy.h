/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_STORE_POLICY_H
#define OC_STORE_POLICY_H

/*
 * Which stores long copies use: ordinary ones, or such as go past the caches.
 * The latter move less where a destination comes from memory anyway, and are two
 * to three times as slow where it would have been in a cache. Which of the two it
 * is depends on the program, so it is learned from its calls: now and then a few
 * take the other kind of stores, and the faster one stays; when they are near each
 * other, the kind it began with. Nobody else need know.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/* Bytes of a buffer from which there is something to learn: of less, a trial is mostly noise. */
#define OC_STORE_POLICY_FROM ((uint64_t)16 << 10)

/* What has been learned about one kind of operation; all zeros: nothing. One
 * thread at a time. */
struct oc_store_policy {
	float best[2];	/* ns a byte, of the calls measured last: ordinary, past the caches */
	uint16_t left;	/* calls until the other kind is tried, */
	uint16_t gap;	/* out of these */
	uint8_t trying; /* calls of the trial left; 0: none goes on */
	bool ordinary;	/* the kind in use */
};

#define OC_STORE_POLICY_KINDS	16
#define OC_STORE_POLICY_CLASSES 16

/* By what is done, and by size. All begin with stores past the caches, or with
 * ordinary ones. */
struct oc_store_policy_table {
	struct oc_store_policy of[OC_STORE_POLICY_KINDS][OC_STORE_POLICY_CLASSES];
	bool ordinary;
};

/* One operation. All zeros: ordinary stores, nothing is learned. */
struct oc_store_turn {
	struct oc_store_policy *stores;
	bool began_ordinary; /* as its table says */
	bool past;	     /* the stores to use go past the caches */
	bool timed;
	uint64_t nsec;
	uint64_t bytes;
};

/* Begins an operation of some kind (modulo OC_STORE_POLICY_KINDS) that moves @bytes. The
 * table must outlive it. */
void oc_store_policy_begin(struct oc_store_turn *turn, struct oc_store_policy_table *table,
			   uint32_t kind, uint64_t bytes);

/* A copy as of oc_copy_bytes(), by the operation's stores. */
void oc_store_policy_copy(struct oc_store_turn *turn, void *dst, const void *src, size_t len);

/* Around what copies otherwise: what the first returns goes to the second, with the
 * bytes stored. */
static inline uint64_t oc_store_policy_clock(const struct oc_store_turn *turn)
{
	return turn->timed ? oc_clock_ns() : 0;
}

static inline void oc_store_policy_add(struct oc_store_turn *turn, uint64_t since, uint64_t bytes)
{
	turn->nsec += oc_store_policy_clock(turn) - since;
	turn->bytes += bytes;
}

/* Ends it. One that has stored nothing teaches nothing. */
void oc_store_policy_end(struct oc_store_turn *turn);

#endif
