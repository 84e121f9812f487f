// SPDX-License-Identifier: BSD-3-Clause
#include "group.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "heap.h"
#include "wait.h"

/* Scratch larger than this is given back after use. */
#define SCRATCH_KEEP (64u << 20)

struct oc_group_stats oc_group_stats;

/* Groups this process has left. A member that is late in the last operation
 * may still look at this one's lines. */
static struct {
	pthread_mutex_t lock;
	struct oc_group *first;
} leaving = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void group_free(struct oc_group *group)
{
	for (unsigned int i = 0; i < OC_GROUP_PLANS; i++)
		oc_plan_destroy(group->plans[i]);
	if (group->scratch)
		oc_heap_free(group->scratch);
	free(group->node_rank);
	free(group->ep);
	free(group->arena);
	free(group->begun);
	free(group->done);
	free(group);
}

void oc_group_destroy(struct oc_group *group)
{
	for (unsigned int i = 0; i < OC_GROUP_PLANS; i++) {
		oc_plan_destroy(group->plans[i]);
		group->plans[i] = NULL;
	}
	if (group->scratch)
		oc_heap_free(group->scratch);
	group->scratch = NULL;
	atomic_store_explicit(&group->me->left, group->seq, memory_order_release);

	pthread_mutex_lock(&leaving.lock);
	group->next = leaving.first;
	leaving.first = group;
	pthread_mutex_unlock(&leaving.lock);
}

static bool everybody_left(const struct oc_group *group)
{
	for (uint32_t p = 0; p < group->size; p++)
		if (atomic_load_explicit(&group->ep[p]->left, memory_order_acquire) < group->seq)
			return false;
	return true;
}

/* Gives back the endpoints nobody reads any more. */
static void reap(void)
{
	struct oc_group **at = &leaving.first;

	pthread_mutex_lock(&leaving.lock);
	while (*at) {
		struct oc_group *group = *at;

		if (everybody_left(group)) {
			*at = group->next;
			oc_ep_put(group->ep_index, group->seq);
			group_free(group);
		} else {
			at = &group->next;
		}
	}
	pthread_mutex_unlock(&leaving.lock);
}

void oc_group_offer(struct oc_node *node, struct oc_group_card *card)
{
	uint64_t seq = 0;

	reap();
	*card = (struct oc_group_card){.node_rank = node->rank, .cma = 1};
	/* Without an arena there is nowhere to stage what peers cannot reach. */
	card->ep_index = node->ranks[node->rank].arena_size ? oc_ep_take(&seq) : -ENODEV;
	card->seq = seq;
	for (uint32_t p = 0; p < node->nranks; p++)
		if (p != node->rank && !node->peers[p].cma_read)
			card->cma = 0;
}

static bool cards_agree(const struct oc_group_card *cards, uint32_t size)
{
	for (uint32_t p = 0; p < size; p++)
		if (cards[p].ep_index < 0)
			return false;
	return true;
}

int oc_group_create(struct oc_node *node, const struct oc_group_card *cards, uint32_t size,
		    uint32_t rank, struct oc_group **out)
{
	struct oc_group *group = NULL;
	int err = -EOPNOTSUPP;

	if (!cards_agree(cards, size))
		goto fail;
	err = -ENOMEM;
	group = calloc(1, sizeof(*group));
	if (!group)
		goto fail;
	group->node_rank = calloc(size, sizeof(*group->node_rank));
	group->ep = calloc(size, sizeof(struct oc_ep *));
	group->arena = calloc(size, sizeof(char *));
	group->begun = calloc(size, sizeof(*group->begun));
	if (!group->node_rank || !group->ep || !group->arena || !group->begun)
		goto fail;

	group->node = node;
	group->rank = rank;
	group->size = size;
	group->ep_index = cards[rank].ep_index;
	group->cma = true;
	for (uint32_t p = 0; p < size; p++) {
		uint32_t at = cards[p].node_rank;

		group->node_rank[p] = at;
		group->ep[p] = oc_ep_at(node, at, (uint32_t)cards[p].ep_index);
		group->arena[p] = p == rank ? (char *)oc_heap_range.base : node->peers[at].arena;
		group->cma = group->cma && cards[p].cma;
		if (cards[p].seq > group->seq)
			group->seq = cards[p].seq;
	}
	/* Everybody starts from the largest number any endpoint has seen, so
	 * words keep growing. */
	for (uint32_t p = 0; p < size; p++)
		group->begun[p] = group->seq;
	group->me = group->ep[rank];
	*out = group;
	return 0;
fail:
	if (cards[rank].ep_index >= 0)
		oc_ep_put(cards[rank].ep_index, cards[rank].seq);
	if (group)
		group_free(group);
	return err;
}

/* Waits until @peer has begun operation @seq, hence is out of those before. */
static int wait_begun(struct oc_group *group, uint32_t peer, uint64_t seq)
{
	struct oc_ep_line *line = &group->ep[peer]->line[seq % OC_EP_LINES];
	uint64_t word;

	for (;;) {
		word = atomic_load_explicit(&line->word, memory_order_acquire);
		if (word >= oc_ep_word(seq, OC_STAGE_READY))
			break;
		if (oc_group_idle(group, peer, line, word) < 0)
			return -EPIPE;
	}
	group->begun[peer] = seq;
	group->idle = 0;
	return 0;
}

struct oc_ep_line *oc_group_begin(struct oc_group *group)
{
	uint64_t seq = group->seq + 1;

	for (uint32_t p = 0; p < group->size; p++)
		if (p != group->rank && group->begun[p] + OC_EP_LINES - 1 < seq &&
		    wait_begun(group, p, seq - (OC_EP_LINES - 1)) < 0)
			return NULL;
	group->seq = seq;
	return &group->me->line[seq % OC_EP_LINES];
}

void oc_group_post(struct oc_group *group, uint32_t stage)
{
	struct oc_ep_line *line = &group->me->line[group->seq % OC_EP_LINES];

	oc_line_publish(line, oc_ep_word(group->seq, stage));
}

int oc_group_wait(struct oc_group *group, uint32_t peer, uint32_t stage)
{
	struct oc_ep_line *line = oc_group_line(group, peer);

	while (!oc_group_reached(group, peer, stage)) {
		uint64_t seen = atomic_load_explicit(&line->word, memory_order_relaxed);

		if (seen < oc_ep_word(group->seq, stage) &&
		    oc_group_idle(group, peer, line, seen) < 0)
			return -EPIPE;
	}
	group->idle = 0;
	return 0;
}

void *oc_group_scratch(struct oc_group *group, size_t bytes)
{
	if (group->scratch &&
	    (group->scratch_bytes < bytes || group->scratch_bytes > SCRATCH_KEEP)) {
		oc_heap_free(group->scratch);
		group->scratch = NULL;
	}
	if (!group->scratch) {
		group->scratch = oc_heap_memalign(4096, bytes);
		group->scratch_bytes = group->scratch ? bytes : 0;
	}
	return group->scratch;
}
