/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_ASYNC_H
#define OCK_ASYNC_H

/*
 * Copies that run later, for both devices: a file's words in shared memory
 * that say what became of each, its queue, the threads and DMA channels that
 * work on it, and the ways to wait.
 */

#include <linux/cpumask.h>
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/mm_types.h>
#include <linux/poll.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "copy.h"
#include "owner.h"
#include "words.h"

struct ock_async;

struct ock_async_config {
	enum ock_words_kind words;
	u64 nr_slots;
	bool ordered;		     /* complete in the order of submission: one thread */
	const struct cpumask *cpus;  /* where threads run; NULL: where the caller may */
	struct eventfd_ctx *eventfd; /* NULL: none; taken over by success */
	const char *name;	     /* of threads */
	/* The file's, and as long. */
	const struct ock_owner *owner;
	wait_queue_head_t *wait; /* woken by events */
	bool *dma;		 /* holds channels */
};

/* How one copy is to run. */
#define OCK_SUBMIT_THREAD 0x1u /* a thread copies */
#define OCK_SUBMIT_DMA	  0x2u /* a DMA channel copies; -ENODEV if there is none */
#define OCK_SUBMIT_EVENT  0x4u /* queue an event (read(), poll(), eventfd) when done */

/* Zeroed words, no threads yet. -ENOMEM. */
int ock_async_create(const struct ock_async_config *config, struct ock_async **async);

/* Makes a thread for what is to come, where the caller may run now; or none, if none is to be had.
 * Not under locks that mmap() takes. */
void ock_async_prepare(struct ock_async *async);

/*
 * At release() of the file, after its ock_regions_close(): nobody submits any more. The copy that a
 * thread makes is broken off, engines are waited for, what is queued is dropped with no word
 * written. Words stay while mapped (VMAs hold the file, so none is left).
 */
void ock_async_close(struct ock_async *async);

/*
 * The words, from the VMA's start on; -EINVAL longer than they are (rounded to
 * pages) or not shared.
 */
int ock_async_mmap(struct ock_async *async, struct vm_area_struct *vma);

/*
 * Queues. Success takes over all that *copy holds and leaves it initialised;
 * it has no LOCAL end. While it is queued regions of other files are not kept: if
 * they are gone when its turn comes, its outcome is -ENOENT or -ESTALE. The slot's word is PENDING
 * before this returns. DMA without THREAD is started by the caller, and waited for by nobody.
 * STATUS: waits while there are as many copies under way as slots. If no thread is to be had, for
 * the limits of the module or the process, the copy is made before this returns.
 *
 * -ERANGE no such slot, -EBUSY the slot is pending (COMPLETION words only) or no room for
 * another event, -ENODEV, -EINTR killed, -ENOMEM.
 */
int ock_async_submit(struct ock_async *async, struct ock_copy *copy, u32 slot, u32 how);

/*
 * For a copy that the caller makes itself: makes sure that its end can be told,
 * by ock_async_end() alone. @how: OCK_SUBMIT_EVENT or 0. Errors as above.
 */
struct ock_job;
int ock_async_begin(struct ock_async *async, u32 slot, u32 how, struct ock_job **job);
void ock_async_end(struct ock_job *job, int err, u64 copied);

u64 ock_async_slots(const struct ock_async *async);

/* Nothing that was submitted has yet to end. */
bool ock_async_idle(struct ock_async *async);

/* As ONECOPY_IOC_CANCEL: 0, -ERANGE, -ENOENT, -EBUSY. */
int ock_async_cancel(struct ock_async *async, u32 slot);

/* What there is now. */
__poll_t ock_async_poll(const struct ock_async *async);

/*
 * read() of /dev/onecopy: see ONECOPY_IOC_ASYNC_SETUP. read() of /dev/knem gives slots in
 * the order of their events and, unless @nonblock, waits until @size is filled: bytes,
 * -EAGAIN, -EINTR, -EFAULT, -EINVAL.
 */
ssize_t ock_async_read(struct ock_async *async, char __user *to, size_t size, bool nonblock);

#endif
