// SPDX-License-Identifier: BSD-3-Clause
#include "exec/ep.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "segment/area.h"

#define OC_EP_COUNT (OC_AREA_EP_BYTES / sizeof(struct oc_ep))

/* Which of this process's endpoints are taken. A process is a member of one
 * node for its groups, so one table serves. Freed endpoints are taken again as
 * late as possible. */
static struct {
	pthread_mutex_t lock;
	bool taken[OC_EP_COUNT];
	uint64_t seq[OC_EP_COUNT];
	unsigned int next;
} eps = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct oc_ep *oc_ep_at(const struct oc_node *node, uint32_t rank, uint32_t index)
{
	return (struct oc_ep *)(oc_node_area(node, rank) + OC_AREA_EP_OFF) + index;
}

int oc_ep_take(uint64_t *seq)
{
	int index = -ENOSPC;

	pthread_mutex_lock(&eps.lock);
	for (unsigned int i = 0; i < OC_EP_COUNT; i++) {
		unsigned int at = (eps.next + i) % OC_EP_COUNT;

		if (eps.taken[at])
			continue;
		eps.taken[at] = true;
		eps.next = at + 1;
		*seq = eps.seq[at];
		index = (int)at;
		break;
	}
	pthread_mutex_unlock(&eps.lock);
	return index;
}

void oc_ep_put(int index, uint64_t seq)
{
	pthread_mutex_lock(&eps.lock);
	eps.taken[index] = false;
	eps.seq[index] = seq;
	pthread_mutex_unlock(&eps.lock);
}
