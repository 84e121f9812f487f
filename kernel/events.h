/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_EVENTS_H
#define OCK_EVENTS_H

/*
 * Ends of copies, to be waited for: by poll(), by read(), by an eventfd. Either
 * counted (/dev/onecopy), or kept one by one in order with the slot each is
 * about (/dev/knem). A copy that is to raise an event has it promised first, so
 * that nothing can fail when it ends.
 */

#include <linux/eventfd.h>
#include <linux/list.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

struct ock_event;

struct ock_events {
	bool counted;
	u64 room;		     /* not counted: promised and unread ones at most */
	struct eventfd_ctx *eventfd; /* counted: may be NULL */
	wait_queue_head_t *wait;     /* the file's: lives longer */
	spinlock_t lock;	     /* of what follows */
	struct list_head list;
	u64 nr;	    /* promised and unread */
	u64 unread; /* raised; read without lock to wait */
};

void ock_events_init(struct ock_events *events, wait_queue_head_t *wait, bool counted, u64 room);

/* Gives back the eventfd, too. */
void ock_events_deinit(struct ock_events *events);

/* -EBUSY no room, -ENOMEM. */
int ock_events_promise(struct ock_events *events, u32 slot, struct ock_event **event);

/* Either keeps the promise or breaks it; the event is gone. */
void ock_events_raise(struct ock_events *events, struct ock_event *event);
void ock_events_break(struct ock_events *events, struct ock_event *event);

/* What there is now. */
__poll_t ock_events_poll(const struct ock_events *events);

/* Counted: the number since the last call; else slots. See ock_async_read(). */
ssize_t ock_events_read(struct ock_events *events, char __user *to, size_t size, bool nonblock);

#endif
