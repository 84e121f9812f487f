// SPDX-License-Identifier: BSD-3-Clause
#include "exec/group.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "heap/heap.h"
#include "segment/alive.h"

struct oc_moved oc_group_moved;

/* Groups this process has left. A member that is late in the last operation
 * may still look at this one's lines. */
static struct {
	pthread_mutex_t lock;
	struct oc_group *first;
} leaving = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void room_free(struct oc_op_room *room, uint32_t size)
{
	for (uint32_t i = 0; room->told && i < 2 * size; i++)
		free(room->told[i].layout);
	free(room->told);
	free(room->done);
	free(room->remote);
	free(room);
}

static void group_free(struct oc_group *group)
{
	oc_plan_cache_clear(&group->plans);
	oc_keep_give(&group->ring);
	free(group->node_rank);
	free(group->board);
	free(group->arena);
	free(group->over);
	while (group->rooms) {
		struct oc_op_room *room = group->rooms;

		group->rooms = room->next;
		room_free(room, group->size);
	}
	free(group);
}

void oc_group_destroy(struct oc_group *group)
{
	oc_plan_cache_clear(&group->plans);
	/* The ring may still be read by members who are behind. */
	atomic_store_explicit(&group->me->left, group->seq, memory_order_release);

	pthread_mutex_lock(&leaving.lock);
	group->next = leaving.first;
	leaving.first = group;
	pthread_mutex_unlock(&leaving.lock);
}

static bool everybody_left(const struct oc_group *group)
{
	for (uint32_t p = 0; p < group->size; p++)
		if (atomic_load_explicit(&group->board[p]->left, memory_order_acquire) < group->seq)
			return false;
	return true;
}

/* Gives back the boards nobody reads any more. */
static void reap(void)
{
	struct oc_group **at = &leaving.first;

	pthread_mutex_lock(&leaving.lock);
	while (*at) {
		struct oc_group *group = *at;

		if (everybody_left(group)) {
			*at = group->next;
			oc_board_put(group->board_index, group->seq);
			group_free(group);
		} else {
			at = &group->next;
		}
	}
	pthread_mutex_unlock(&leaving.lock);
}

void oc_group_forget(const struct oc_node *node)
{
	struct oc_group **at = &leaving.first;

	pthread_mutex_lock(&leaving.lock);
	while (*at) {
		struct oc_group *group = *at;

		if (group->node != node) {
			at = &group->next;
			continue;
		}
		*at = group->next;
		oc_board_put(group->board_index, group->seq);
		group->ring = (struct oc_keep){0};
		group_free(group);
	}
	pthread_mutex_unlock(&leaving.lock);
}

static struct oc_group *group_alloc(struct oc_node *node, uint32_t size)
{
	struct oc_group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->node = node;
	group->wait.node = node;
	group->size = size;
	group->brief.ordinary = true;
	group->eager.ordinary = true;
	group->lost = -1;
	group->node_rank = calloc(size, sizeof(*group->node_rank));
	group->board = calloc(size, sizeof(struct oc_board *));
	group->arena = calloc(size, sizeof(char *));
	group->over = calloc(size, sizeof(*group->over));
	if (group->node_rank && group->board && group->arena && group->over)
		return group;
	group_free(group);
	return NULL;
}

struct oc_group *oc_group_offer(struct oc_node *node, uint32_t size, struct oc_group_card *card)
{
	struct oc_group *group = group_alloc(node, size);

	reap();
	*card = (struct oc_group_card){.node_rank = node->rank};
	card->mech = atomic_load(&node->mech_mask);
	card->board_index = group ? oc_board_take(&card->seq) : -ENOMEM;
	for (uint32_t p = 0; p < node->nranks; p++) {
		if (p == node->rank)
			continue;
		card->mech &= atomic_load(&node->peers[p].gets) & atomic_load(&node->peers[p].puts);
		/* Without arenas there is nowhere to stage what peers cannot
		 * reach. The node reaches all of them or none. */
		if (!node->peers[p].arena_size && card->board_index >= 0) {
			oc_board_put(card->board_index, card->seq);
			card->board_index = -ENODEV;
		}
	}
	if (group && card->board_index < 0) {
		group_free(group);
		group = NULL;
	}
	return group;
}

static bool cards_agree(const struct oc_group_card *cards, uint32_t size)
{
	for (uint32_t p = 0; p < size; p++)
		if (cards[p].board_index < 0)
			return false;
	return true;
}

int oc_group_create(struct oc_group *group, const struct oc_group_card *cards, uint32_t rank)
{
	struct oc_node *node;

	if (!group)
		return -EOPNOTSUPP;
	if (!cards_agree(cards, group->size)) {
		oc_board_put(cards[rank].board_index, cards[rank].seq);
		group_free(group);
		return -EOPNOTSUPP;
	}
	node = group->node;
	group->rank = rank;
	group->board_index = cards[rank].board_index;
	group->mech = UINT32_MAX;
	for (uint32_t p = 0; p < group->size; p++) {
		uint32_t at = cards[p].node_rank;

		group->node_rank[p] = at;
		group->board[p] = oc_board_at(node, at, (uint32_t)cards[p].board_index);
		group->arena[p] = p == rank ? (char *)oc_heap_range.base : node->peers[at].arena;
		group->mech &= cards[p].mech;
		if (cards[p].seq > group->seq)
			group->seq = cards[p].seq;
	}
	/* Everybody starts from the largest number any board has seen, so
	 * words keep growing. */
	for (uint32_t p = 0; p < group->size; p++)
		group->over[p] = group->seq;
	group->me = group->board[rank];
	group->beside = (1u << OC_BOARD_LINES) - 1;
	return 0;
}

int oc_group_idle(struct oc_group *group, uint32_t peer, struct oc_board_line *line, uint64_t seen)
{
	int err = oc_wait_turn(&group->wait, group->node_rank[peer], line, seen);

	if (err < 0)
		group->lost = (int)peer;
	return err;
}

void oc_group_issue(struct oc_group *group, struct oc_issued *op)
{
	struct oc_issued **at = &group->first;

	while (*at)
		at = &(*at)->next;
	op->seq = ++group->seq;
	op->word = oc_board_word(op->seq, 0);
	op->next = NULL;
	*at = op;
}

/* Whether @peer has retired operation @seq, and what else of it can be seen. */
static bool has_retired(struct oc_group *group, uint32_t peer, uint64_t seq)
{
	uint64_t all = UINT64_MAX;

	if (!oc_group_retired(group, seq, peer))
		return false;
	/* Of each line all before the next one that uses it. */
	for (uint32_t i = 0; i < OC_BOARD_LINES; i++) {
		uint64_t last =
			atomic_load_explicit(&group->board[peer]->retired[i], memory_order_acquire);

		last += (i - last - 1) % OC_BOARD_LINES;
		all = last < all ? last : all;
	}
	if (group->over[peer] < all)
		group->over[peer] = all;
	return true;
}

bool oc_group_has_line(struct oc_group *group, const struct oc_issued *op, uint32_t *peer)
{
	uint64_t used = group->used[op->seq % OC_BOARD_LINES];

	*peer = group->rank;
	for (const struct oc_issued *other = group->first; other != op; other = other->next)
		if (other->seq % OC_BOARD_LINES == op->seq % OC_BOARD_LINES)
			return false;
	for (*peer = 0; *peer < group->size; ++*peer)
		if (*peer != group->rank && group->over[*peer] < used &&
		    !has_retired(group, *peer, used))
			return false;
	return true;
}

/* Of a line that nobody looks at. */
static __attribute__((cold, noinline)) void clear_events(struct oc_group *group, uint32_t line)
{
	for (uint32_t i = 0; i < OC_EVENT_END / 64; i++)
		atomic_store_explicit(&group->me->event[line][i], 0, memory_order_relaxed);
	group->beside &= ~(1u << line);
}

struct oc_board_line *oc_group_take_line(struct oc_group *group, const struct oc_issued *op)
{
	uint32_t at = op->seq % OC_BOARD_LINES;
	struct oc_board_line *line = &group->me->line[at];

	group->used[at] = op->seq;
	if (__builtin_expect(group->beside >> at & 1, 0))
		clear_events(group, at);
	atomic_store_explicit(&line->flags, group->first == op ? OC_BOARD_SOLE : 0,
			      memory_order_relaxed);
	return line;
}

void oc_group_publish_retired(struct oc_group *group, uint64_t seq)
{
	/* The last that was issued of this line. */
	uint64_t last = group->seq - (group->seq - seq) % OC_BOARD_LINES;

	for (const struct oc_issued *op = group->first; op; op = op->next)
		if (op->seq % OC_BOARD_LINES == seq % OC_BOARD_LINES && op->seq <= last)
			last = op->seq < OC_BOARD_LINES ? 0 : op->seq - OC_BOARD_LINES;
	atomic_store_explicit(&group->me->retired[seq % OC_BOARD_LINES], last,
			      memory_order_release);
}

void oc_group_retire(struct oc_group *group, struct oc_issued *op)
{
	struct oc_issued **at = &group->first;

	while (*at != op)
		at = &(*at)->next;
	*at = op->next;
	oc_group_publish_retired(group, op->seq);
}

struct oc_op_room *oc_group_take_room(struct oc_group *group, size_t steps)
{
	struct oc_op_room *room = group->rooms;

	if (room)
		group->rooms = room->next;
	else
		room = calloc(1, sizeof(*room));
	if (room && room->done_bytes < steps) {
		uint8_t *done = realloc(room->done, steps);

		if (!done) {
			oc_group_give_room(group, room);
			return NULL;
		}
		room->done = done;
		room->done_bytes = steps;
	}
	return room;
}

void oc_group_give_room(struct oc_group *group, struct oc_op_room *room)
{
	room->next = group->rooms;
	group->rooms = room;
}

struct oc_layout *oc_group_layout_room(struct oc_told *told, size_t bytes)
{
	struct oc_layout *layout = realloc(told->layout, bytes);

	if (layout)
		told->layout = layout;
	return layout;
}

static __attribute__((cold, noinline)) void post_beside(struct oc_group *group,
							struct oc_issued *op, uint32_t event)
{
	uint32_t line = op->seq % OC_BOARD_LINES;
	_Atomic uint64_t *events = &group->me->event[line][event / 64];

	group->beside |= 1u << line;
	atomic_store_explicit(events,
			      atomic_load_explicit(events, memory_order_relaxed) |
				      UINT64_C(1) << event % 64,
			      memory_order_release);
	op->word ^= OC_BOARD_TURN;
}

void oc_group_post(struct oc_group *group, struct oc_issued *op, uint32_t event)
{
	if (__builtin_expect(event - OC_EVENT_READY < OC_BOARD_WORD_EVENTS, 1))
		op->word |= oc_board_event_bit(event);
	else
		post_beside(group, op, event);
	oc_line_publish(&group->me->line[op->seq % OC_BOARD_LINES], op->word);
}

void oc_group_fail(struct oc_group *group, uint64_t seq, int err)
{
	oc_line_publish(&group->me->line[seq % OC_BOARD_LINES],
			oc_board_word(seq, OC_BOARD_FAILED | (uint32_t)-err));
}

int oc_group_inside(const struct oc_group *group, uint64_t seq)
{
	for (uint32_t p = 0; p < group->size; p++) {
		uint64_t word = oc_group_word(group, seq, p);

		if (p != group->rank && word > oc_board_word(seq, 0) &&
		    word < oc_board_word(seq, OC_BOARD_FAILED) && group->over[p] < seq &&
		    !oc_group_retired(group, seq, p))
			return (int)p;
	}
	return -1;
}

int oc_group_failure(const struct oc_group *group, uint64_t seq)
{
	int err = 0;

	for (uint32_t p = 0; p < group->size && !err; p++)
		err = oc_board_failure(oc_group_word(group, seq, p), seq);
	return err;
}

int oc_group_dead(const struct oc_group *group)
{
	int dead = group->lost;

	for (uint32_t p = 0; p < group->size; p++) {
		if (oc_node_peer_alive(group->node, group->node_rank[p]))
			continue;
		if (oc_node_mourned(group->node, group->node_rank[p]))
			return (int)p;
		if (dead < 0)
			dead = (int)p;
	}
	return dead;
}
