// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who queues a job wakes a thread that has none. If all are busy he hires one, one at a time,
 * and where none is to be had he works the queue off, if nobody else does. A thread looks at
 * the queue before it sleeps and says under the lock that it is idle, so no job is forgotten.
 */
#include "crew.h"

#include "worker.h"

static bool ock_post_work(void *data)
{
	struct ock_post *post = data;
	void *job;

	spin_lock(post->crew->lock);
	job = post->crew->ops->take(post->crew);
	post->idle = !job;
	spin_unlock(post->crew->lock);
	if (!job)
		return false;
	__set_current_state(TASK_RUNNING);
	post->crew->ops->run(job);
	return true;
}

/* One who has nothing to do gets to work. */
static bool ock_crew_rouse(struct ock_crew *crew)
{
	lockdep_assert_held(crew->lock);
	for (unsigned int i = 0; i < crew->nr_posts; i++) {
		struct ock_post *post = &crew->posts[i];

		/* Whose creator has not put it down yet is roused after that. */
		if (!post->worker || !post->manned || !post->idle)
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
	while (!crew->nr_manned && !crew->helping && (job = crew->ops->take(crew))) {
		spin_unlock(crew->lock);
		crew->ops->cancel(job);
		spin_lock(crew->lock);
	}
	/* It may have been roused for what another has to do now. */
	if (crew->ops->waits(crew))
		ock_crew_rouse(crew);
	spin_unlock(crew->lock);
}

static void ock_post_leave(struct ock_post *post)
{
	ock_worker_destroy(post->worker);
	post->worker = NULL;
	ock_user_give(post->crew->owner->limits.user, OCK_THREADS);
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
			ock_crew_rouse(crew);
	}
	spin_unlock(crew->lock);
	if (err)
		ock_user_give(crew->owner->limits.user, OCK_THREADS);
	return err;
}

/* Whether the queue needs another thread, after all has been done with those there are. */
static bool ock_crew_lacks(struct ock_crew *crew)
{
	bool lacks;

	spin_lock(crew->lock);
	lacks = crew->ops->waits(crew) && !crew->helping && !ock_crew_rouse(crew) &&
		crew->nr_manned < crew->nr_posts;
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

/* Does what is queued in the place of a thread, if there is none. */
static void ock_crew_help(struct ock_crew *crew)
{
	void *job;

	spin_lock(crew->lock);
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

int ock_crew_init(struct ock_crew *crew, const struct ock_crew_ops *ops, spinlock_t *lock,
		  const struct ock_owner *owner, const struct cpumask *cpus, const char *name,
		  unsigned int max)
{
	*crew = (struct ock_crew){
		.ops = ops,
		.lock = lock,
		.owner = owner,
		.nr_posts = min3(max, num_online_cpus(), (unsigned int)OCK_CREW_MAX),
	};
	if (!alloc_cpumask_var(&crew->cpus, GFP_KERNEL_ACCOUNT))
		return -ENOMEM;
	cpumask_copy(crew->cpus, cpus ?: current->cpus_ptr);
	strscpy(crew->name, name, sizeof(crew->name));
	mutex_init(&crew->hiring);
	for (unsigned int i = 0; i < crew->nr_posts; i++)
		crew->posts[i].crew = crew;
	return 0;
}

void ock_crew_deinit(struct ock_crew *crew)
{
	for (unsigned int i = 0; i < crew->nr_posts; i++) {
		if (crew->posts[i].worker)
			ock_post_leave(&crew->posts[i]);
	}
	free_cpumask_var(crew->cpus);
}
