// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who queues a job wakes a thread that has none. If all are busy he hires one, one at a time,
 * and where none is to be had he works the queue off, if nobody else does. A thread looks at
 * the queue before it sleeps and says under the lock that it is idle, so no job is forgotten.
 *
 * A thread that is a process's own is stopped with it, for as long as somebody likes, but not
 * within a job. So one of another process is woken only where there can be none of one's own; who
 * closes waits for those who have a job, and leaves the end of others' threads to a work
 * item, which holds the module. They count as their user's until then.
 */
#include "crew.h"

#include <linux/module.h>

#include "worker.h"

static struct workqueue_struct *workqueue;

int ock_crews_init(void)
{
	workqueue = alloc_workqueue("onecopy-crew", WQ_UNBOUND, WQ_MAX_ACTIVE);
	return workqueue ? 0 : -ENOMEM;
}

void ock_crews_exit(void)
{
	destroy_workqueue(workqueue);
}

static void ock_crew_done(struct ock_crew *crew)
{
	lockdep_assert_held(crew->lock);
	if (!--crew->nr_busy)
		wake_up(&crew->calm);
}

static bool ock_post_work(void *data)
{
	struct ock_post *post = data;
	struct ock_crew *crew = post->crew;
	void *job;

	spin_lock(crew->lock);
	job = crew->closed ? NULL : crew->ops->take(crew);
	post->idle = !job;
	if (job)
		crew->nr_busy++;
	spin_unlock(crew->lock);
	if (!job)
		return false;
	__set_current_state(TASK_RUNNING);
	crew->ops->run(job);
	spin_lock(crew->lock);
	ock_crew_done(crew);
	spin_unlock(crew->lock);
	return true;
}

/* One who has nothing to do gets to work; @ours: if nobody else can stop it. */
static bool ock_crew_rouse(struct ock_crew *crew, bool ours)
{
	lockdep_assert_held(crew->lock);
	for (unsigned int i = 0; i < crew->nr_posts; i++) {
		struct ock_post *post = &crew->posts[i];

		/* Whose creator has not put it down yet is roused after that. */
		if (!post->worker || !post->manned || !post->idle ||
		    (ours && !ock_worker_ours(post->worker)))
			continue;
		post->idle = false;
		ock_worker_wake(post->worker);
		return true;
	}
	return false;
}

static void ock_post_died(void *data)
{
	struct ock_post *post = data;
	struct ock_crew *crew = post->crew;
	void *job;

	spin_lock(crew->lock);
	post->manned = false;
	crew->nr_manned--;
	crew->nr_busy++;
	while (!crew->closed && !crew->nr_manned && !crew->helping &&
	       (job = crew->ops->take(crew))) {
		spin_unlock(crew->lock);
		crew->ops->cancel(job);
		spin_lock(crew->lock);
	}
	/* It may have been roused for what another has to do now. */
	if (!crew->closed && crew->ops->waits(crew))
		ock_crew_rouse(crew, false);
	ock_crew_done(crew);
	spin_unlock(crew->lock);
}

static void ock_post_leave(struct ock_post *post)
{
	ock_worker_destroy(post->worker);
	post->worker = NULL;
	ock_user_give(post->crew->user, OCK_THREADS);
}

/* Under hiring. */
static int ock_post_man(struct ock_post *post)
{
	struct ock_crew *crew = post->crew;
	struct ock_worker_config config = {
		.work = ock_post_work,
		.died = ock_post_died,
		.data = post,
		.name = crew->name,
		.cpus = crew->cpus,
	};
	struct ock_worker *worker;
	int err;

	/* One who died. */
	if (post->worker)
		ock_post_leave(post);
	for (unsigned int i = 0; i < crew->nr_posts; i++) {
		if (READ_ONCE(crew->posts[i].manned))
			config.like = crew->posts[i].worker;
	}
	err = ock_user_take(&crew->owner->limits, OCK_THREADS);
	if (err)
		return err;
	spin_lock(crew->lock);
	post->manned = true;
	/* It looks at the queue first. */
	post->idle = true;
	crew->nr_manned++;
	spin_unlock(crew->lock);
	err = ock_worker_create(&config, &worker);
	spin_lock(crew->lock);
	if (err) {
		post->manned = false;
		crew->nr_manned--;
	} else {
		post->worker = worker;
		/* Somebody may have queued a job meanwhile, and found nobody to rouse. */
		if (crew->ops->waits(crew))
			ock_crew_rouse(crew, true);
	}
	spin_unlock(crew->lock);
	if (err)
		ock_user_give(crew->user, OCK_THREADS);
	return err;
}

/* Whether the queue needs another thread, after all has been done with those there are. */
static bool ock_crew_lacks(struct ock_crew *crew)
{
	bool lacks = false;

	spin_lock(crew->lock);
	if (crew->ops->waits(crew) && !crew->helping && !ock_crew_rouse(crew, true)) {
		lacks = crew->nr_manned < crew->nr_posts;
		if (!lacks)
			ock_crew_rouse(crew, false);
	}
	spin_unlock(crew->lock);
	return lacks;
}

static int ock_crew_hire(struct ock_crew *crew)
{
	for (unsigned int i = 0; i < crew->nr_posts; i++) {
		if (!READ_ONCE(crew->posts[i].manned))
			return ock_post_man(&crew->posts[i]);
	}
	return 0;
}

/* No thread is to be had: another process's works, or the caller in its place. */
static void ock_crew_help(struct ock_crew *crew)
{
	void *job;

	spin_lock(crew->lock);
	if (crew->ops->waits(crew))
		ock_crew_rouse(crew, false);
	if (crew->nr_manned || crew->helping)
		goto out;
	crew->helping = true;
	while ((job = crew->ops->take(crew))) {
		spin_unlock(crew->lock);
		crew->ops->run(job);
		spin_lock(crew->lock);
	}
	crew->helping = false;
out:
	spin_unlock(crew->lock);
}

/* Something was queued. */
void ock_crew_call(struct ock_crew *crew)
{
	int err = 0;

	if (!ock_crew_lacks(crew))
		return;
	mutex_lock(&crew->hiring);
	if (ock_crew_lacks(crew))
		err = ock_crew_hire(crew);
	mutex_unlock(&crew->hiring);
	if (err)
		ock_crew_help(crew);
}

void ock_crew_prepare(struct ock_crew *crew)
{
	mutex_lock(&crew->hiring);
	ock_crew_hire(crew);
	mutex_unlock(&crew->hiring);
}

static void ock_crew_free(struct ock_crew *crew)
{
	free_cpumask_var(crew->cpus);
	crew->ops->free(crew);
}

static void ock_crew_work(struct work_struct *work)
{
	struct ock_crew *crew = container_of(work, struct ock_crew, work);

	for (unsigned int i = 0; i < crew->nr_posts; i++) {
		if (crew->posts[i].worker)
			ock_post_leave(&crew->posts[i]);
	}
	ock_crew_free(crew);
	/* ock_crews_exit() waits for this function to return. */
	module_put(THIS_MODULE);
}

int ock_crew_init(struct ock_crew *crew, const struct ock_crew_ops *ops, spinlock_t *lock,
		  const struct ock_owner *owner, const struct cpumask *cpus, const char *name,
		  unsigned int max)
{
	*crew = (struct ock_crew){
		.ops = ops,
		.lock = lock,
		.owner = owner,
		.user = owner->limits.user,
		.nr_posts = min3(max, num_online_cpus(), (unsigned int)OCK_CREW_MAX),
	};
	if (!alloc_cpumask_var(&crew->cpus, GFP_KERNEL_ACCOUNT))
		return -ENOMEM;
	cpumask_copy(crew->cpus, cpus ?: current->cpus_ptr);
	strscpy(crew->name, name, sizeof(crew->name));
	mutex_init(&crew->hiring);
	init_waitqueue_head(&crew->calm);
	INIT_WORK(&crew->work, ock_crew_work);
	for (unsigned int i = 0; i < crew->nr_posts; i++)
		crew->posts[i].crew = crew;
	return 0;
}

/* Under the lock, so that who has said so has left it. */
static bool ock_crew_calm(struct ock_crew *crew)
{
	bool calm;

	spin_lock(crew->lock);
	calm = !crew->nr_busy;
	spin_unlock(crew->lock);
	return calm;
}

void ock_crew_close(struct ock_crew *crew)
{
	spin_lock(crew->lock);
	crew->closed = true;
	spin_unlock(crew->lock);
	wait_event(crew->calm, ock_crew_calm(crew));
}

void ock_crew_deinit(struct ock_crew *crew)
{
	bool others = false;

	for (unsigned int i = 0; i < crew->nr_posts; i++) {
		struct ock_post *post = &crew->posts[i];

		if (!post->worker)
			continue;
		/* Who has died is not stopped any more. */
		if (!READ_ONCE(post->manned) || ock_worker_ours(post->worker))
			ock_post_leave(post);
		else
			others = true;
	}
	if (!others) {
		ock_crew_free(crew);
		return;
	}
	__module_get(THIS_MODULE);
	queue_work(workqueue, &crew->work);
}
