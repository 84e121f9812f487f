/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_STAGE_H
#define OC_STAGE_H

/*
 * The staging channel of a rank, in its area: a ring of chunks that one side
 * fills and the other empties, both at once. On the owner's side a service
 * thread does the copying, on the other the thread that calls oc_get() or
 * oc_put(). One request, a session, at a time; requesters queue at the lock.
 *
 * Nothing of one session is written during another, whenever a requester fails
 * or dies and however slow the service is:
 *
 *   - The service writes to the channel only from when it finds a session posted
 *     until it stores the same number in `ended`, which it does once, whether it
 *     came to the end, failed or found the session cancelled.
 *   - A requester writes to the channel only while it holds the lock; the lock is
 *     taken from nobody but the dead.
 *   - Who has the lock posts the next session only when the last one posted has
 *     ended. So at that moment neither side is in a session, and all they wrote
 *     is visible: the service's by `ended`, the requester's by the lock.
 *
 * A requester that fails cancels its session and leaves without waiting for the
 * end; if it dies, the next one cancels for it. Where nobody failed, the session
 * had ended before the lock was free: the end is what the requester waits for.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <onecopy/onecopy.h>

#include "access/target.h"
#include "segment/area.h"
#include "segment/node.h"

#define OC_STAGE_CHUNK	(64u << 10) /* all of them stay in a second-level cache */
#define OC_STAGE_CHUNKS 8
#define OC_STAGE_MAX	(128 * OC_STAGE_CHUNK) /* of one request: then it is the next one's turn */
#define OC_STAGE_FAILED UINT32_MAX	       /* a count: status says why */

/* A futex and whether to bother with waking. */
struct oc_stage_word {
	_Alignas(OC_CACHELINE) _Atomic uint32_t value;
	_Atomic uint32_t sleepers;
};

struct oc_stage_request {
	uint64_t cookie;
	uint64_t offset;
	uint32_t bytes;
	uint32_t rank; /* who asks */
	uint32_t direction;
};

struct oc_stage {
	struct oc_stage_word lock;    /* 0, or the holder's rank + 1 */
	struct oc_stage_word posted;  /* the newest session */
	struct oc_stage_word filled;  /* chunks, by who fills */
	struct oc_stage_word emptied; /* chunks, by who empties */
	struct oc_stage_word ended;   /* the last session the service is done with */
	_Alignas(OC_CACHELINE) struct oc_stage_request request;
	_Atomic uint32_t cancelled; /* a session nobody waits for */
	_Atomic uint32_t running;   /* there is a service thread */
	_Atomic int32_t status;	    /* how the session went: 0 or -errno */
	_Atomic uint64_t serving;   /* cookie whose memory the service may touch */
	_Alignas(4096) char chunk[OC_STAGE_CHUNKS][OC_STAGE_CHUNK];
};
_Static_assert(sizeof(struct oc_stage) <= OC_AREA_STAGE_BYTES, "fits its part of the area");

static inline struct oc_stage *oc_stage_of(const struct oc_node *node, uint32_t rank)
{
	return (struct oc_stage *)(oc_node_area(node, rank) + OC_AREA_STAGE_OFF);
}

/* Stores with release order and wakes who sleeps on it. */
void oc_stage_publish(struct oc_stage_word *word, uint32_t value);

/* Returns once the word is not @seen, or after some milliseconds: then it is
 * time to ask whether the other side still lives. */
void oc_stage_wait(const struct oc_node *node, struct oc_stage_word *word, uint32_t seen);

/* The memory of this rank that a request names, for the service to copy. 0 or -errno. */
typedef int oc_stage_lookup(struct oc_node *node, oc_cookie cookie, uint32_t need,
			    struct oc_target *target);

/* Starts this rank's service thread. 0 or -errno: then nobody can stage. */
int oc_stage_start(struct oc_node *node, oc_stage_lookup *lookup);
void oc_stage_stop(struct oc_node *node);

/* May this rank's service be copying on @cookie right now? */
bool oc_stage_serves(const struct oc_node *node, oc_cookie cookie);

#endif
