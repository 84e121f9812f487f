/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_RUN_H
#define OC_RUN_H

/*
 * One operation as one member runs it: the plan, the buffers it is bound to,
 * and how the slots of all members are reached. What the executors share.
 * Belongs to the calling thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec.h"
#include "group.h"
#include "plan.h"
#include "stores.h"

/* Bytes staged before readers are told: they stay in a second-level cache. */
#define OC_STAGE_CHUNK ((size_t)64 << 10)

struct oc_run {
	struct oc_group *group;
	const struct oc_plan *plan;
	const struct oc_bind *bind;
	struct oc_ep_line *line;
	bool foreign;	   /* the send slot is not in the heap, and peers may read it */
	int8_t all_direct; /* every receive slot is reachable; -1 not known yet */
	int send_place;	   /* of one's own slots in the table of lib/kreg.h, or -1 */
	int recv_place;
	uint32_t mapped;	      /* peers' slots held: lib/reach.c */
	struct oc_stores_turn stores; /* to slots */
	int err;
};

/* Provides the scratch slot. 0 or -ENOMEM. */
int oc_run_bind(struct oc_run *run);

/* Says in this rank's line where its slots are and posts READY; an eager plan's
 * send slot is staged first. 0 or -ENOMEM. */
int oc_run_offer(struct oc_run *run);

/* Copies the send slot into the staging area, telling readers as it goes. 0 or
 * -ENOMEM. */
int oc_run_stage(struct oc_run *run);

/* A peer that gave up will post no stage any more. */
bool oc_run_gave_up(struct oc_run *run, struct oc_ep_line *line);

/* A turn of waiting for a change of @peer's line, which held @seen; serves those
 * who wait for this rank. 0, -EPIPE, or what staging failed with. */
int oc_run_idle(struct oc_run *run, uint32_t peer, struct oc_ep_line *line, uint64_t seen);

/* [off, off + len) of @peer's send slot, if it is memory here now; NULL when it
 * is not staged so far, or is to be read by oc_run_read(). */
const char *oc_run_send_at(struct oc_run *run, uint32_t peer, uint64_t off, size_t len);

/* The same, but waits for what is being staged: NULL only when it is to be read. */
int oc_run_await_send(struct oc_run *run, uint32_t peer, uint64_t off, size_t len, const char **at);

/* Reads [off, off + len) of @peer's send slot, wherever it is, to @dst. */
int oc_run_read(struct oc_run *run, void *dst, uint32_t peer, uint64_t off, size_t len,
		struct oc_stores_turn *stores);

/* A slot that is memory here: one's own, or a peer's receive or scratch. NULL for
 * a receive slot in a kernel region that cannot be mapped: see lib/reach.h. */
char *oc_run_slot(struct oc_run *run, struct oc_ref ref);

/* Counts bytes moved by plain loads and stores, from or to mapped slots or the heap. */
static inline void oc_run_count(bool mapped, size_t len)
{
	*(mapped ? &oc_group_stats.map_calls : &oc_group_stats.heap_calls) += 1;
	*(mapped ? &oc_group_stats.map_bytes : &oc_group_stats.heap_bytes) += len;
}

static inline uint32_t oc_line_flags(struct oc_ep_line *line)
{
	return atomic_load_explicit(&line->flags, memory_order_acquire);
}

#endif
