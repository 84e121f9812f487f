// SPDX-License-Identifier: BSD-3-Clause
#include "exec/board.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "segment/area.h"

#define OC_BOARD_COUNT (OC_AREA_BOARD_BYTES / sizeof(struct oc_board))

/* Which of this process's boards are taken. A process is a member of one
 * node for its groups, so one table serves. Freed boards are taken again as
 * late as possible. */
static struct {
	pthread_mutex_t lock;
	bool taken[OC_BOARD_COUNT];
	uint64_t seq[OC_BOARD_COUNT];
	unsigned int next;
} boards = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct oc_board *oc_board_at(const struct oc_node *node, uint32_t rank, uint32_t index)
{
	return (struct oc_board *)(oc_node_area(node, rank) + OC_AREA_BOARD_OFF) + index;
}

int oc_board_take(uint64_t *seq)
{
	int index = -ENOSPC;

	pthread_mutex_lock(&boards.lock);
	for (unsigned int i = 0; i < OC_BOARD_COUNT; i++) {
		unsigned int at = (boards.next + i) % OC_BOARD_COUNT;

		if (boards.taken[at])
			continue;
		boards.taken[at] = true;
		boards.next = at + 1;
		*seq = boards.seq[at];
		index = (int)at;
		break;
	}
	pthread_mutex_unlock(&boards.lock);
	return index;
}

void oc_board_put(int index, uint64_t seq)
{
	pthread_mutex_lock(&boards.lock);
	boards.taken[index] = false;
	boards.seq[index] = seq;
	pthread_mutex_unlock(&boards.lock);
}

bool oc_board_posted_beside(const struct oc_board *board, uint64_t word, uint64_t seq,
			    uint32_t event)
{
	const _Atomic uint64_t *events = &board->event[seq % OC_BOARD_LINES][event / 64];

	if (word & OC_BOARD_FAILED)
		return true;
	return word & oc_board_event_bit(OC_EVENT_READY) &&
	       atomic_load_explicit(events, memory_order_acquire) >> event % 64 & 1;
}
