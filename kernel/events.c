// SPDX-License-Identifier: GPL-2.0-only
/*
 * A promise is room for the event and the memory that it takes, so that an end has nothing
 * to ask for. What read() takes away and cannot hand over is put back, in its old place.
 */
#include "events.h"

#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"

struct ock_event {
	struct list_head node; /* of events->list once raised */
	u32 slot;
};

void ock_events_init(struct ock_events *events, wait_queue_head_t *wait, bool counted, u64 room)
{
	*events = (struct ock_events){.wait = wait, .counted = counted, .room = room};
	spin_lock_init(&events->lock);
	INIT_LIST_HEAD(&events->list);
}

static void ock_events_free(struct list_head *list)
{
	struct ock_event *event;

	while ((event = list_first_entry_or_null(list, struct ock_event, node))) {
		list_del(&event->node);
		kfree(event);
		cond_resched();
	}
}

void ock_events_deinit(struct ock_events *events)
{
	ock_events_free(&events->list);
	if (events->eventfd)
		eventfd_ctx_put(events->eventfd);
}

int ock_events_promise(struct ock_events *events, u32 slot, struct ock_event **result)
{
	struct ock_event *event;
	bool full;

	event = kzalloc(sizeof(*event), GFP_KERNEL_ACCOUNT);
	if (!event)
		return -ENOMEM;
	event->slot = slot;
	spin_lock(&events->lock);
	full = !events->counted && events->nr >= events->room;
	if (!full)
		events->nr++;
	spin_unlock(&events->lock);
	if (full) {
		kfree(event);
		return -EBUSY;
	}
	*result = event;
	return 0;
}

void ock_events_raise(struct ock_events *events, struct ock_event *event)
{
	spin_lock(&events->lock);
	WRITE_ONCE(events->unread, events->unread + 1);
	if (!events->counted) {
		list_add_tail(&event->node, &events->list);
		event = NULL;
	}
	spin_unlock(&events->lock);
	kfree(event);
	wake_up_interruptible(events->wait);
	if (events->eventfd)
		ock_eventfd_signal(events->eventfd);
}

void ock_events_break(struct ock_events *events, struct ock_event *event)
{
	spin_lock(&events->lock);
	events->nr--;
	spin_unlock(&events->lock);
	kfree(event);
}

__poll_t ock_events_poll(const struct ock_events *events)
{
	return READ_ONCE(events->unread) ? EPOLLIN | EPOLLRDNORM : 0;
}

static int ock_events_wait(struct ock_events *events, bool nonblock)
{
	if (READ_ONCE(events->unread))
		return 0;
	if (nonblock)
		return -EAGAIN;
	return wait_event_interruptible(*events->wait, READ_ONCE(events->unread)) ? -EINTR : 0;
}

static ssize_t ock_events_read_count(struct ock_events *events, char __user *to, size_t size,
				     bool nonblock)
{
	u64 count;
	int err;

	if (size < sizeof(count))
		return -EINVAL;
	do {
		err = ock_events_wait(events, nonblock);
		if (err)
			return err;
		spin_lock(&events->lock);
		count = events->unread;
		WRITE_ONCE(events->unread, 0);
		spin_unlock(&events->lock);
	} while (!count);
	err = copy_to_user(to, &count, sizeof(count)) ? -EFAULT : 0;
	spin_lock(&events->lock);
	if (err)
		WRITE_ONCE(events->unread, events->unread + count);
	else
		events->nr -= count;
	spin_unlock(&events->lock);
	if (!err)
		return sizeof(count);
	/* They are there again for those who did not see them. */
	wake_up_interruptible(events->wait);
	return err;
}

#define OCK_READ_SLOTS 64u

/* At most @max slots that are there. What cannot be written stays queued. */
static ssize_t ock_events_read_some(struct ock_events *events, char __user *to, size_t max)
{
	u32 slots[OCK_READ_SLOTS];
	struct ock_event *event;
	unsigned int nr = 0;
	LIST_HEAD(taken);

	spin_lock(&events->lock);
	while (nr < min_t(size_t, max, OCK_READ_SLOTS) && !list_empty(&events->list)) {
		event = list_first_entry(&events->list, struct ock_event, node);
		list_move_tail(&event->node, &taken);
		slots[nr++] = event->slot;
	}
	WRITE_ONCE(events->unread, events->unread - nr);
	spin_unlock(&events->lock);

	if (copy_to_user(to, slots, nr * sizeof(*slots))) {
		spin_lock(&events->lock);
		list_splice(&taken, &events->list);
		WRITE_ONCE(events->unread, events->unread + nr);
		spin_unlock(&events->lock);
		wake_up_interruptible(events->wait);
		return -EFAULT;
	}
	/* Only now: until then they could have come back. */
	spin_lock(&events->lock);
	events->nr -= nr;
	spin_unlock(&events->lock);
	ock_events_free(&taken);
	return nr;
}

static ssize_t ock_events_read_slots(struct ock_events *events, char __user *to, size_t size,
				     bool nonblock)
{
	size_t done = 0;
	ssize_t nr = 0;

	if (size % sizeof(u32))
		return -EINVAL;
	while (done < size) {
		nr = ock_events_wait(events, nonblock);
		if (nr)
			break;
		nr = ock_events_read_some(events, to + done, (size - done) / sizeof(u32));
		if (nr < 0)
			break;
		done += nr * sizeof(u32);
	}
	return done ?: nr;
}

ssize_t ock_events_read(struct ock_events *events, char __user *to, size_t size, bool nonblock)
{
	return events->counted ? ock_events_read_count(events, to, size, nonblock)
			       : ock_events_read_slots(events, to, size, nonblock);
}
