// SPDX-License-Identifier: BSD-3-Clause
#include "exec/keep.h"

#include <pthread.h>
#include <stdint.h>

#include "exec/board.h"
#include "heap/heap.h"

#define READY	  4		    /* blocks kept for the next operation */
#define READY_MAX ((size_t)1 << 20) /* larger ones are the heap's */

static struct {
	pthread_mutex_t lock;
	struct oc_keep block[READY];
} ready = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* To a power of two: sizes that differ little find the same block. */
static size_t round_up(size_t bytes)
{
	size_t whole = OC_STAGE_PAGE;

	while (whole < bytes)
		whole *= 2;
	return whole;
}

/* The smallest block that is large enough, if there is one. */
static struct oc_keep take_ready(size_t bytes)
{
	struct oc_keep *best = NULL, found = {0};

	pthread_mutex_lock(&ready.lock);
	for (int i = 0; i < READY; i++)
		if (ready.block[i].bytes >= bytes && (!best || ready.block[i].bytes < best->bytes))
			best = &ready.block[i];
	if (best) {
		found = *best;
		*best = (struct oc_keep){0};
	}
	pthread_mutex_unlock(&ready.lock);
	return found;
}

void *oc_keep_take(struct oc_keep *keep, size_t bytes)
{
	if (keep->at && keep->bytes >= bytes)
		return keep->at;
	oc_keep_give(keep);
	if (bytes <= READY_MAX) {
		*keep = take_ready(bytes);
		bytes = round_up(bytes);
	}
	if (!keep->at)
		keep->at = oc_heap_memalign(OC_STAGE_PAGE, bytes);
	if (keep->at && !keep->bytes)
		keep->bytes = bytes;
	return keep->at;
}

/* @keep takes a place that is free, or that of the smallest: there is what was
 * there, to be freed. */
static void make_ready(struct oc_keep *keep)
{
	struct oc_keep *place = &ready.block[0], old;

	pthread_mutex_lock(&ready.lock);
	for (int i = 1; i < READY; i++)
		if (ready.block[i].bytes < place->bytes)
			place = &ready.block[i];
	if (place->bytes < keep->bytes) {
		old = *place;
		*place = *keep;
		*keep = old;
	}
	pthread_mutex_unlock(&ready.lock);
}

void oc_keep_put(struct oc_keep *keep)
{
	if (keep->bytes <= READY_MAX)
		make_ready(keep);
	if (keep->at)
		oc_heap_free(keep->at);
	*keep = (struct oc_keep){0};
}
