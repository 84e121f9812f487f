/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_CREW_H
#define OCK_CREW_H

/*
 * The threads that work on a queue: made when a job finds all busy, up to a number.
 * If none can be made, for the limits of the module or of the process, and there is none,
 * who calls works the queue off itself.
 *
 * A thread may be its process's, and end with it (see worker.h). With the last one
 * what is queued is cancelled, for nobody knows whether anyone who shares the file is left
 * to do it.
 */

#include <linux/cpumask.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "owner.h"

/* Most threads of one crew. */
#define OCK_CREW_MAX 4

struct ock_crew;
struct ock_worker;

struct ock_crew_ops {
	/* Under the crew's lock: takes the next job off the queue; NULL: there is none. */
	void *(*take)(struct ock_crew *crew);
	/* Under the lock: whether there is one. */
	bool (*waits)(const struct ock_crew *crew);
	/* What was taken is done, or will never be. Sleep. */
	void (*run)(void *job);
	void (*cancel)(void *job);
};

/* A thread's place. */
struct ock_post {
	struct ock_crew *crew;
	struct ock_worker *worker; /* under hiring, and to be set under lock */
	bool manned;		   /* by one who lives, or is being made */
	bool idle;		   /* has nothing to do, but look at the queue perhaps */
};

struct ock_crew {
	const struct ock_crew_ops *ops;
	spinlock_t *lock; /* of the queue, and of what is here */
	const struct ock_owner *owner;
	struct mutex hiring; /* held to make threads */
	unsigned int nr_posts;
	unsigned int nr_manned;
	bool helping; /* who called works */
	struct ock_post posts[OCK_CREW_MAX];
	cpumask_var_t cpus; /* where the first may run */
	char name[TASK_COMM_LEN];
};

/* @cpus: where they run, as far as the process may; NULL: where the caller may. -ENOMEM. */
int ock_crew_init(struct ock_crew *crew, const struct ock_crew_ops *ops, spinlock_t *lock,
		  const struct ock_owner *owner, const struct cpumask *cpus, const char *name,
		  unsigned int max);

/* Waits for the jobs that threads work on. Nobody calls any more. */
void ock_crew_deinit(struct ock_crew *crew);

/* Makes a thread for what is to come, where the caller may run now; or none, if it cannot. */
void ock_crew_prepare(struct ock_crew *crew);

/* A job was queued: sees to it that it is done. May do it. */
void ock_crew_call(struct ock_crew *crew);

#endif
