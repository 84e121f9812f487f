// SPDX-License-Identifier: BSD-3-Clause
#include "bytes/store_policy.h"

#include "bytes/copy.h"

#define TRIES	 3   /* calls of a trial: the first finds the caches as the other kind left them */
#define GAP_SOON 32  /* calls from a change to the next trial: it may have been by chance */
#define GAP_MIN	 128 /* from one trial to the next, otherwise */
#define GAP_MAX	 1024
/* Of the time, for a change: else they would change by chance. What a table begins with
 * is right where nothing is known, so it takes more to leave it than to return. */
#define LEAVE	    0.85F
#define RETURN	    0.95F
#define NEVER	    1e30F
#define CLASS_LEAST 13 /* log2 of the bytes */

static uint32_t class_of(uint64_t bytes)
{
	uint32_t log2 = bytes ? 63 - (uint32_t)__builtin_clzll(bytes) : 0;

	if (log2 < CLASS_LEAST)
		return 0;
	return log2 - CLASS_LEAST < OC_STORE_POLICY_CLASSES ? log2 - CLASS_LEAST
							    : OC_STORE_POLICY_CLASSES - 1;
}

static void wait_for_trial(struct oc_store_policy *stores, uint16_t gap)
{
	stores->gap = stores->left = gap;
	stores->best[0] = stores->best[1] = NEVER;
}

void oc_store_policy_begin(struct oc_store_turn *turn, struct oc_store_policy_table *table,
			   uint32_t kind, uint64_t bytes)
{
	struct oc_store_policy *stores = &table->of[kind % OC_STORE_POLICY_KINDS][class_of(bytes)];

	if (!stores->gap) {
		stores->ordinary = table->ordinary;
		wait_for_trial(stores, TRIES);
	}
	*turn = (struct oc_store_turn){
		.stores = stores,
		.began_ordinary = table->ordinary,
		.past = stores->ordinary == (stores->trying > 0),
		.timed = stores->trying || stores->left <= TRIES,
	};
}

void oc_store_policy_copy(struct oc_store_turn *turn, void *dst, const void *src, size_t len)
{
	uint64_t since = oc_store_policy_clock(turn);

	oc_copy_bytes(dst, src, len, turn->past);
	oc_store_policy_add(turn, since, len);
}

/* What the trial showed: the gaps grow while nothing changes. */
static void decide(struct oc_store_policy *stores, bool began_ordinary)
{
	bool past = !stores->ordinary;
	float worth = stores->ordinary == began_ordinary ? LEAVE : RETURN;

	if (stores->best[!past] < stores->best[past] * worth) {
		stores->ordinary = past;
		wait_for_trial(stores, GAP_SOON);
	} else {
		uint16_t longer = stores->gap < GAP_MIN ? GAP_MIN : (uint16_t)(stores->gap * 4);

		wait_for_trial(stores, longer < GAP_MAX ? longer : GAP_MAX);
	}
}

void oc_store_policy_end(struct oc_store_turn *turn)
{
	struct oc_store_policy *stores = turn->stores;

	if (!stores || !turn->bytes)
		return;
	if (turn->timed) {
		float cost = (float)turn->nsec / (float)turn->bytes;

		if (cost < stores->best[turn->past])
			stores->best[turn->past] = cost;
	}
	if (stores->trying) {
		if (!--stores->trying)
			decide(stores, turn->began_ordinary);
	} else if (!--stores->left) {
		stores->trying = TRIES;
	}
}
