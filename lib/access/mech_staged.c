// SPDX-License-Identifier: BSD-3-Clause
/*
 * Two copies through the owner's staging channel. Needs nothing but the control
 * segment, so it reaches all memory whose owner serves, and it never faults: both ends let the
 * kernel copy (lib/access/safe_copy.c).
 */
#include "access/mech.h"
#include "segment/alive.h"

#include <errno.h>

#include "access/safe_copy.h"
#include "access/stage.h"

/* One request from its other side. */
struct asking {
	const struct oc_node *node;
	struct oc_stage *stage;
	uint32_t owner;
	uint32_t session;
};

static int take_lock(const struct asking *it)
{
	uint32_t mine = it->node->rank + 1;

	for (;;) {
		uint32_t holder = 0;

		if (atomic_compare_exchange_strong(&it->stage->lock.value, &holder, mine))
			return 0;
		oc_stage_wait(it->node, &it->stage->lock, holder);
		if (atomic_load(&it->stage->lock.value) != holder)
			continue;
		if (!oc_node_peer_alive(it->node, it->owner))
			return -EPIPE;
		if (holder > it->node->nranks || oc_node_peer_alive(it->node, holder - 1))
			continue;
		/* It died with the lock. */
		if (atomic_compare_exchange_strong(&it->stage->lock.value, &holder, mine))
			return 0;
	}
}

/* Until the session before has ended, of which nobody waits for the rest. */
static int await_quiet(const struct asking *it)
{
	struct oc_stage *stage = it->stage;
	uint32_t newest = atomic_load(&stage->posted.value);

	for (;;) {
		uint32_t ended = atomic_load_explicit(&stage->ended.value, memory_order_acquire);

		if (ended == newest)
			return 0;
		atomic_store(&stage->cancelled, newest);
		oc_stage_wait(it->node, &stage->ended, ended);
		if (atomic_load(&stage->ended.value) == ended &&
		    !oc_node_peer_alive(it->node, it->owner))
			return -EPIPE;
	}
}

static void post(struct asking *it, const struct oc_stage_request *request)
{
	struct oc_stage *stage = it->stage;

	it->session = atomic_load(&stage->posted.value) + 1;
	atomic_store_explicit(&stage->filled.value, 0, memory_order_relaxed);
	atomic_store_explicit(&stage->emptied.value, 0, memory_order_relaxed);
	stage->request = *request;
	oc_stage_publish(&stage->posted, it->session);
}

/* Until the service's word counts at least @want chunks. */
static int await_count(const struct asking *it, struct oc_stage_word *word, uint32_t want)
{
	for (;;) {
		uint32_t value = atomic_load_explicit(&word->value, memory_order_acquire);

		if (value == OC_STAGE_FAILED)
			return atomic_load(&it->stage->status);
		if (value >= want)
			return 0;
		oc_stage_wait(it->node, word, value);
		if (atomic_load(&word->value) == value && !oc_node_peer_alive(it->node, it->owner))
			return -EPIPE;
	}
}

/* Until the service has ended the session: how it went. */
static int await_end(const struct asking *it)
{
	struct oc_stage_word *ended = &it->stage->ended;

	for (;;) {
		uint32_t value = atomic_load_explicit(&ended->value, memory_order_acquire);

		if (value == it->session)
			return atomic_load(&it->stage->status);
		oc_stage_wait(it->node, ended, value);
		if (atomic_load(&ended->value) == value && !oc_node_peer_alive(it->node, it->owner))
			return -EPIPE;
	}
}

static int fetch_chunk(const struct asking *it, struct oc_cursor *local, uint32_t chunk, size_t len,
		       bool last)
{
	char *ring = it->stage->chunk[chunk % OC_STAGE_CHUNKS];
	int err = last ? await_end(it) : await_count(it, &it->stage->filled, chunk + 1);

	if (!err)
		err = oc_safe_copy_store(it->node, local, ring, len);
	if (!err && !last)
		oc_stage_publish(&it->stage->emptied, chunk + 1);
	return err;
}

static int send_chunk(const struct asking *it, struct oc_cursor *local, uint32_t chunk, size_t len,
		      bool last)
{
	char *ring = it->stage->chunk[chunk % OC_STAGE_CHUNKS];
	int err = 0;

	if (chunk >= OC_STAGE_CHUNKS)
		err = await_count(it, &it->stage->emptied, chunk + 1 - OC_STAGE_CHUNKS);
	if (!err)
		err = oc_safe_copy_load(it->node, ring, local, len);
	if (!err)
		oc_stage_publish(&it->stage->filled, chunk + 1);
	return !err && last ? await_end(it) : err;
}

static int pump(const struct asking *it, const struct oc_stage_request *request,
		struct oc_cursor *local)
{
	bool get = request->direction == OC_GET;
	uint32_t done = 0;
	int err = 0;

	for (uint32_t chunk = 0; done < request->bytes && !err; chunk++) {
		uint32_t len = request->bytes - done;

		len = len < OC_STAGE_CHUNK ? len : OC_STAGE_CHUNK;
		done += len;
		err = get ? fetch_chunk(it, local, chunk, len, done == request->bytes)
			  : send_chunk(it, local, chunk, len, done == request->bytes);
	}
	return err;
}

static int ask(struct asking *it, const struct oc_stage_request *request, struct oc_cursor *local)
{
	struct oc_cursor start = *local;
	int err = take_lock(it);

	if (err)
		return err;
	err = await_quiet(it);
	if (!err) {
		post(it, request);
		err = pump(it, request, local);
	}
	if (err) {
		/* Do not let the service wait for us. */
		atomic_store(&it->stage->cancelled, atomic_load(&it->stage->posted.value));
		*local = start;
	}
	oc_stage_publish(&it->stage->lock, 0);
	return err;
}

static ssize_t staged_move(struct oc_node *node, const struct oc_target *target,
			   enum oc_direction direction, uint64_t offset, struct oc_cursor *local,
			   size_t len)
{
	struct asking it = {
		.node = node, .stage = oc_stage_of(node, target->owner), .owner = target->owner};
	size_t done = 0;

	if (!target->cookie)
		return -EOPNOTSUPP;
	if (!atomic_load(&it.stage->running))
		return oc_node_peer_alive(node, target->owner) ? -EOPNOTSUPP : -EPIPE;
	while (done < len) {
		struct oc_stage_request request = {.cookie = target->cookie,
						   .offset = offset + done,
						   .rank = node->rank,
						   .direction = direction};
		int err;

		request.bytes = len - done < OC_STAGE_MAX ? (uint32_t)(len - done) : OC_STAGE_MAX;
		err = ask(&it, &request, local);
		if (err)
			return err == -EPIPE || !done ? err : (ssize_t)done;
		done += request.bytes;
	}
	return (ssize_t)done;
}

/* The join itself has shown that the control segment is shared. */
static void staged_explain(const struct oc_node *node, uint32_t peer, char *why, size_t size)
{
	why[0] = '\0';
}

const struct oc_mech oc_mech_staged = {
	.bit = OC_MECH_STAGED,
	.explain = staged_explain,
	.move = staged_move,
};
