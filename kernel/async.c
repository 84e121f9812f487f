// SPDX-License-Identifier: GPL-2.0-only
/*
 * A job is a copy that was submitted. It is on the queue until a thread takes
 * it, or among those flying, if its submitter has given it to a DMA channel.
 * Who takes it off the queue (thread, cancel, close) ends it, once.
 *
 * Order. Threads take jobs in the order of submission; with one thread they end
 * so too. Engines may end flying jobs in any order; they are reported in the order
 * of submission all the same, by one worker at a time (@draining), for clients
 * poll their slots as a ring.
 *
 * A job's end: first pages and regions are given back, then the word is
 * written with release order, then events are raised, and then it counts no
 * more. So whoever sees the word sees the data, and finds nothing of the copy left;
 * and who finds no job left may raise an event that comes after all others.
 *
 * Jobs hold kernel memory and pinned pages. COMPLETION words have one each; where
 * slots may be used twice there are at most @max_jobs, and who submits more waits.
 *
 * Words are written and never read here: what has to be known about a slot is in
 * @pending.
 */
#include "async.h"

#include <linux/list.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "channel.h"
#include "crew.h"
#include "dma.h"
#include "events.h"
#include "owner.h"
#include "stats.h"
#include "trace.h"
#include "words.h"

/* A slot for each is all that clients can tell apart; but slots can be many. */
#define OCK_ASYNC_JOBS 65536

struct ock_job {
	struct list_head node;
	struct ock_async *async;
	struct ock_copy copy;
	struct ock_channel *channel; /* DMA */
	struct ock_word word;
	struct ock_event *event; /* EVENT: promised */
	u32 slot;
	u32 how;
	bool started; /* taken off the queue */
	bool flown;   /* its DMA has ended, as follows */
	int err;
	u64 copied;
};

struct ock_async {
	struct ock_words words;
	bool completion; /* kind of the words */
	bool *dma;	 /* holds channels */
	struct ock_events events;

	spinlock_t lock; /* of what follows, and of jobs' flags */
	struct list_head queue;
	struct list_head flying;
	bool draining;
	u64 nr_jobs;	       /* let in and not ended; read without lock to wait */
	struct xarray pending; /* COMPLETION: the slot's job */

	u64 max_jobs;		/* STATUS */
	wait_queue_head_t room; /* who submits */
	wait_queue_head_t idle; /* close */
	bool stopping;		/* copies are broken off */
	struct ock_crew crew;	/* on the queue */
};

/* ---- jobs ---- */

static void ock_job_free(struct ock_job *job)
{
	ock_copy_deinit(&job->copy);
	if (job->event)
		ock_events_break(&job->async->events, job->event);
	kfree(job);
}

void ock_async_end(struct ock_job *job, int err, u64 copied)
{
	struct ock_async *async = job->async;

	ock_copy_deinit(&job->copy);
	spin_lock(&async->lock);
	/* The client may use the slot again once it sees the word. */
	if (async->completion)
		xa_erase(&async->pending, job->slot);
	ock_word_write(&job->word, err, copied);
	spin_unlock(&async->lock);
	if (job->event)
		ock_events_raise(&async->events, job->event);
	kfree(job);
	spin_lock(&async->lock);
	WRITE_ONCE(async->nr_jobs, async->nr_jobs - 1);
	wake_up(&async->room);
	spin_unlock(&async->lock);
}

static void ock_job_flown(void *data, int err, u64 copied)
{
	struct ock_job *job = data;
	struct ock_async *async = job->async;

	spin_lock(&async->lock);
	job->flown = true;
	job->err = err;
	job->copied = copied;
	if (async->draining)
		goto out;
	async->draining = true;
	while ((job = list_first_entry_or_null(&async->flying, struct ock_job, node))) {
		if (!job->flown)
			break;
		list_del(&job->node);
		spin_unlock(&async->lock);
		ock_async_end(job, job->err, job->copied);
		spin_lock(&async->lock);
	}
	async->draining = false;
	if (list_empty(&async->flying))
		wake_up(&async->idle);
out:
	spin_unlock(&async->lock);
}

static void ock_job_run(void *data)
{
	struct ock_job *job = data;
	u64 copied = 0;
	int err;

	err = ock_copy_resume(&job->copy);
	if (err)
		goto end;
	if (job->how & OCK_SUBMIT_DMA)
		err = ock_dma_run(job->channel, &job->copy, &copied);
	else
		err = ock_copy_run(&job->copy, &copied);
end:
	ock_async_end(job, err, copied);
}

/* ---- the queue's threads ---- */

static void *ock_async_take(struct ock_crew *crew)
{
	struct ock_async *async = container_of(crew, struct ock_async, crew);
	struct ock_job *job;

	lockdep_assert_held(&async->lock);
	job = list_first_entry_or_null(&async->queue, struct ock_job, node);
	if (job) {
		list_del(&job->node);
		job->started = true;
	}
	return job;
}

static bool ock_async_waits(const struct ock_crew *crew)
{
	return !list_empty(&container_of(crew, struct ock_async, crew)->queue);
}

static void ock_job_cancel(void *job)
{
	ock_async_end(job, -ECANCELED, 0);
}

/* Once its threads are gone. */
static void ock_async_free(struct ock_crew *crew)
{
	kfree(container_of(crew, struct ock_async, crew));
}

static const struct ock_crew_ops crew_ops = {
	.take = ock_async_take,
	.waits = ock_async_waits,
	.run = ock_job_run,
	.cancel = ock_job_cancel,
	.free = ock_async_free,
};

void ock_async_prepare(struct ock_async *async)
{
	ock_crew_prepare(&async->crew);
}

/* ---- submitting ---- */

static int ock_async_enter(struct ock_async *async, struct ock_job *job, struct list_head *list)
{
	lockdep_assert_held(&async->lock);
	if (async->nr_jobs >= async->max_jobs)
		return -EAGAIN;
	if (async->completion) {
		int err = xa_insert(&async->pending, job->slot, job, GFP_ATOMIC | __GFP_NOWARN);

		if (err)
			return err;
	}
	ock_word_reset(&job->word);
	WRITE_ONCE(async->nr_jobs, async->nr_jobs + 1);
	if (list) {
		trace_onecopy_queue(ock_end_cookie(&job->copy.source),
				    ock_end_cookie(&job->copy.destination),
				    ock_copy_bytes(&job->copy), job->slot, job->how);
		list_add_tail(&job->node, list);
	}
	return 0;
}

/* Lets the job in, onto the list if there is one, when there is room; or says why not. */
static int ock_async_admit(struct ock_async *async, struct ock_job *job, struct list_head *list)
{
	int err;

	do {
		err = wait_event_killable(async->room, READ_ONCE(async->nr_jobs) < async->max_jobs);
		if (err)
			return -EINTR;
		spin_lock(&async->lock);
		err = ock_async_enter(async, job, list);
		spin_unlock(&async->lock);
	} while (err == -EAGAIN);
	return err;
}

static int ock_job_create(struct ock_async *async, u32 slot, u32 how, struct ock_job **result)
{
	struct ock_job *job;
	int err;

	job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);
	if (!job)
		return -ENOMEM;
	job->async = async;
	job->slot = slot;
	job->how = how;
	ock_copy_init(&job->copy);
	err = ock_words_get(&async->words, slot, &job->word);
	if (err)
		goto out_free;
	if (how & OCK_SUBMIT_EVENT) {
		err = ock_events_promise(&async->events, slot, &job->event);
		if (err)
			goto out_free;
	}
	if (how & OCK_SUBMIT_DMA) {
		job->channel = ock_channels_take(async->dma);
		err = PTR_ERR_OR_ZERO(job->channel);
		if (err)
			goto out_free;
	}
	*result = job;
	return 0;

out_free:
	ock_job_free(job);
	return err;
}

int ock_async_submit(struct ock_async *async, struct ock_copy *copy, u32 slot, u32 how)
{
	bool fly = (how & OCK_SUBMIT_DMA) && !(how & OCK_SUBMIT_THREAD);
	struct ock_job *job;
	int err;

	err = ock_job_create(async, slot, how, &job);
	if (err)
		return err;
	swap(job->copy, *copy);
	job->copy.stop = &async->stopping;
	job->started = fly;
	ock_copy_pause(&job->copy, async->crew.owner);
	err = ock_async_admit(async, job, fly ? &async->flying : &async->queue);
	if (err) {
		swap(job->copy, *copy);
		ock_job_free(job);
		return err;
	}

	ock_stat_inc(OCK_STAT_ASYNC);
	if (!fly) {
		ock_crew_call(&async->crew);
		return 0;
	}
	err = ock_copy_resume(&job->copy);
	if (err) {
		ock_job_flown(job, err, 0);
		return 0;
	}
	err = ock_dma_start(job->channel, &job->copy, ock_job_flown, job);
	if (err) {
		u64 copied = 0;

		err = ock_copy_run(&job->copy, &copied);
		ock_job_flown(job, err, copied);
	}
	return 0;
}

int ock_async_begin(struct ock_async *async, u32 slot, u32 how, struct ock_job **result)
{
	struct ock_job *job;
	int err;

	err = ock_job_create(async, slot, how & OCK_SUBMIT_EVENT, &job);
	if (err)
		return err;
	job->started = true;
	err = ock_async_admit(async, job, NULL);
	if (err) {
		ock_job_free(job);
		return err;
	}
	*result = job;
	return 0;
}

bool ock_async_idle(struct ock_async *async)
{
	return !READ_ONCE(async->nr_jobs);
}

int ock_async_cancel(struct ock_async *async, u32 slot)
{
	struct ock_job *job;
	int err = 0;

	if (slot >= async->words.nr_slots)
		return -ERANGE;
	spin_lock(&async->lock);
	job = xa_load(&async->pending, slot);
	if (!job)
		err = -ENOENT;
	else if (job->started)
		err = -EBUSY;
	if (!err) {
		list_del(&job->node);
		job->started = true;
	}
	spin_unlock(&async->lock);
	trace_onecopy_cancel(slot, err);
	if (err)
		return err;
	ock_stat_inc(OCK_STAT_CANCELLED);
	ock_async_end(job, -ECANCELED, 0);
	return 0;
}

/* ---- waiting ---- */

__poll_t ock_async_poll(const struct ock_async *async)
{
	return ock_events_poll(&async->events);
}

ssize_t ock_async_read(struct ock_async *async, char __user *to, size_t size, bool nonblock)
{
	return ock_events_read(&async->events, to, size, nonblock);
}

int ock_async_mmap(struct ock_async *async, struct vm_area_struct *vma)
{
	return ock_words_mmap(&async->words, vma);
}

u64 ock_async_slots(const struct ock_async *async)
{
	return async->words.nr_slots;
}

/* ---- a file's ---- */

/* Under the lock, so that who has said so has left it. */
static bool ock_async_landed(struct ock_async *async)
{
	bool landed;

	spin_lock(&async->lock);
	landed = list_empty(&async->flying) && !async->draining;
	spin_unlock(&async->lock);
	return landed;
}

void ock_async_close(struct ock_async *async)
{
	struct ock_job *job;

	/* A copy may be of terabytes, and nobody will hear of its end. */
	WRITE_ONCE(async->stopping, true);
	ock_crew_close(&async->crew);
	wait_event(async->idle, ock_async_landed(async));

	while ((job = list_first_entry_or_null(&async->queue, struct ock_job, node))) {
		list_del(&job->node);
		ock_job_free(job);
	}
	ock_events_deinit(&async->events);
	ock_words_deinit(&async->words);
	xa_destroy(&async->pending);
	ock_crew_deinit(&async->crew);
}

int ock_async_create(const struct ock_async_config *config, struct ock_async **result)
{
	struct ock_async *async;
	int err;

	async = kzalloc(sizeof(*async), GFP_KERNEL_ACCOUNT);
	if (!async)
		return -ENOMEM;
	spin_lock_init(&async->lock);
	err = ock_crew_init(&async->crew, &crew_ops, &async->lock, config->owner, config->cpus,
			    config->name, config->ordered ? 1 : OCK_CREW_MAX);
	if (err) {
		kfree(async);
		return err;
	}
	async->completion = config->words == OCK_WORDS_COMPLETION;
	async->max_jobs =
		async->completion ? U64_MAX : min_t(u64, config->nr_slots, OCK_ASYNC_JOBS);
	ock_words_init(&async->words, config->words, config->nr_slots);
	ock_events_init(&async->events, config->wait, async->completion, config->nr_slots);
	xa_init(&async->pending);
	INIT_LIST_HEAD(&async->queue);
	INIT_LIST_HEAD(&async->flying);
	init_waitqueue_head(&async->room);
	init_waitqueue_head(&async->idle);
	async->events.eventfd = config->eventfd;
	async->dma = config->dma;
	*result = async;
	return 0;
}
