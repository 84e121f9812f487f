// SPDX-License-Identifier: BSD-3-Clause
#include "access/stage.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "access/safe_copy.h"
#include "base/env.h"
#include "base/futex.h"
#include "base/thread.h"
#include "segment/alive.h"

#define STACK_BYTES ((size_t)128 << 10)
#define SLEEP_NS    10000000L
#define IDLE_NS	    3600000000000L

struct oc_stage_service {
	oc_stage_lookup *lookup;
	pthread_t thread;
	_Atomic bool stop;
	_Atomic bool ended;
};

void oc_stage_publish(struct oc_stage_word *word, uint32_t value)
{
	atomic_store(&word->value, value);
	/* Either this sees the sleeper, or the sleeper sees the value. */
	if (atomic_load(&word->sleepers))
		oc_futex_wake(&word->value);
}

static void sleep_on(struct oc_stage_word *word, uint32_t seen, long ns)
{
	atomic_fetch_add(&word->sleepers, 1);
	if (atomic_load(&word->value) == seen)
		oc_futex_wait(&word->value, seen, ns);
	atomic_fetch_sub(&word->sleepers, 1);
}

void oc_stage_wait(const struct oc_node *node, struct oc_stage_word *word, uint32_t seen)
{
	/* The ranks' own threads mostly poll. Unless the service threads have
	 * CPUs besides, whoever waits here keeps one from the thread that it
	 * waits for: polling or yielding made copies several times slower. */
	uint32_t spin = node->ncpus >= 2 * node->nranks ? node->spin : 0;

	for (uint32_t turn = 0; turn < spin; turn++) {
		if (atomic_load_explicit(&word->value, memory_order_acquire) != seen)
			return;
		oc_cpu_relax();
	}
	sleep_on(word, seen, SLEEP_NS);
}

/* One request being served. */
struct serving {
	struct oc_node *node;
	struct oc_stage *stage;
	struct oc_stage_request request;
	uint32_t session;
	struct oc_cursor cursor; /* in the region */
};

/* Nobody waits for the rest. */
static bool is_cancelled(const struct serving *it)
{
	return atomic_load(&it->stage->cancelled) == it->session ||
	       atomic_load(&it->node->service->stop);
}

/*
 * Until @word, written by the requester, counts at least @want chunks. -EPIPE
 * when the requester has given up or died, or the node is being left.
 */
static int await_chunks(const struct serving *it, struct oc_stage_word *word, uint32_t want)
{
	for (;;) {
		uint32_t value = atomic_load_explicit(&word->value, memory_order_acquire);

		if (is_cancelled(it))
			return -EPIPE;
		if (value >= want)
			return 0;
		oc_stage_wait(it->node, word, value);
		if (atomic_load(&word->value) == value &&
		    !oc_node_peer_alive(it->node, it->request.rank))
			return -EPIPE;
	}
}

/* The requester learns of the last chunk by the end of the session. */
static int serve_chunk(struct serving *it, uint32_t chunk, size_t len, bool last)
{
	bool get = it->request.direction == OC_GET;
	struct oc_stage_word *theirs = get ? &it->stage->emptied : &it->stage->filled;
	struct oc_stage_word *ours = get ? &it->stage->filled : &it->stage->emptied;
	char *ring = it->stage->chunk[chunk % OC_STAGE_CHUNKS];
	uint32_t ahead = get ? OC_STAGE_CHUNKS : 0;
	int err = await_chunks(it, theirs, chunk < ahead ? 0 : chunk + 1 - ahead);

	if (!err)
		err = get ? oc_safe_copy_load(it->node, ring, &it->cursor, len)
			  : oc_safe_copy_store(it->node, &it->cursor, ring, len);
	if (!err && !last)
		oc_stage_publish(ours, chunk + 1);
	return err;
}

static int serve_all(struct serving *it)
{
	struct oc_stage_request *request = &it->request;
	uint32_t need = request->direction == OC_GET ? OC_REGION_READ : OC_REGION_WRITE;
	struct oc_target target;
	uint32_t done = 0;
	int err = it->node->service->lookup(it->node, request->cookie, need, &target);

	if (err)
		return err;
	/* The requester has looked all this up as well, but it is its word. */
	if (request->offset > target.bytes || request->bytes > target.bytes - request->offset ||
	    request->bytes > OC_STAGE_MAX || request->rank >= it->node->nranks)
		return -EINVAL;
	oc_cursor_init(&it->cursor, target.segs, target.nsegs, request->offset);
	for (uint32_t chunk = 0; done < request->bytes && !err; chunk++) {
		uint32_t len = request->bytes - done;

		len = len < OC_STAGE_CHUNK ? len : OC_STAGE_CHUNK;
		done += len;
		err = serve_chunk(it, chunk, len, done == request->bytes);
	}
	return err;
}

static void serve(struct oc_node *node, uint32_t session)
{
	struct oc_stage *stage = oc_stage_of(node, node->rank);
	struct serving it = {.node = node, .stage = stage, .session = session};
	int err;

	memcpy(&it.request, &stage->request, sizeof(it.request));
	/* First say it, then ask whether the region is still there: who
	 * destroys it does the opposite. */
	atomic_store(&stage->serving, it.request.cookie);
	err = serve_all(&it);
	atomic_store(&stage->serving, 0);
	atomic_store(&stage->status, err);
	if (err)
		oc_stage_publish(it.request.direction == OC_GET ? &stage->filled : &stage->emptied,
				 OC_STAGE_FAILED);
	oc_stage_publish(&stage->ended, session);
}

static void *run_service(void *arg)
{
	struct oc_node *node = arg;
	struct oc_stage *stage = oc_stage_of(node, node->rank);
	uint32_t seen = 0;

	while (!atomic_load(&node->service->stop)) {
		uint32_t session = atomic_load_explicit(&stage->posted.value, memory_order_acquire);

		if (session == seen) {
			oc_stage_wait(node, &stage->posted, seen);
			sleep_on(&stage->posted, seen, IDLE_NS);
			continue;
		}
		serve(node, session);
		seen = session;
	}
	atomic_store(&node->service->ended, true);
	return NULL;
}

int oc_stage_start(struct oc_node *node, oc_stage_lookup *lookup)
{
	struct oc_stage_service *service = calloc(1, sizeof(*service));
	int err;

	if (!service)
		return -ENOMEM;
	service->lookup = lookup;
	node->service = service;
	err = oc_thread_start(&service->thread, STACK_BYTES, run_service, node);
	if (err) {
		oc_note("no staging: a thread cannot be made: %s", strerror(err));
		node->service = NULL;
		free(service);
		return -err;
	}
	pthread_setname_np(service->thread, "onecopy-stage");
	atomic_store(&oc_stage_of(node, node->rank)->running, 1);
	return 0;
}

void oc_stage_stop(struct oc_node *node)
{
	struct timespec nap = {.tv_nsec = 100000};
	struct oc_stage *stage;

	if (!node->service)
		return;
	if (oc_node_mine(node)) {
		stage = oc_stage_of(node, node->rank);
		atomic_store(&stage->running, 0);
		atomic_store(&node->service->stop, true);
		/* It may be on its way into the sleep: wake it until it heard. */
		while (!atomic_load(&node->service->ended)) {
			oc_futex_wake(&stage->posted.value);
			nanosleep(&nap, NULL);
		}
		pthread_join(node->service->thread, NULL);
	}
	free(node->service);
	node->service = NULL;
}

bool oc_stage_serves(const struct oc_node *node, oc_cookie cookie)
{
	return atomic_load(&oc_stage_of(node, node->rank)->serving) == cookie;
}
