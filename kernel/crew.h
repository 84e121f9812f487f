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
#include <linux/wait.h>
#include <linux/workqueue.h>

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
	/* Nobody is left who knows the crew: it may be freed. Sleeps. */
	void (*free)(struct ock_crew *crew);
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
	spinlock_t *lock;	       /* of the queue, and of what is here */
	const struct ock_owner *owner; /* not after ock_crew_close() */
	struct ock_user *user;	       /* the owner's, kept by the threads */
	struct mutex hiring;	       /* held to make threads */
	unsigned int nr_posts;
	unsigned int nr_manned;
	bool helping;		/* who called works */
	bool closed;		/* nobody takes jobs any more */
	unsigned int nr_busy;	/* threads that have taken some and are not done */
	wait_queue_head_t calm; /* who closes */
	struct work_struct work;
	struct ock_post posts[OCK_CREW_MAX];
	cpumask_var_t cpus; /* where the first may run */
	char name[TASK_COMM_LEN];
};

/* @cpus: where they run, as far as the process may; NULL: where the caller may. -ENOMEM. */
int ock_crew_init(struct ock_crew *crew, const struct ock_crew_ops *ops, spinlock_t *lock,
		  const struct ock_owner *owner, const struct cpumask *cpus, const char *name,
		  unsigned int max);

/* Nobody calls any more. Waits for the jobs that threads work on; others stay in the queue. */
void ock_crew_close(struct ock_crew *crew);

/*
 * After ock_crew_close(). Threads end, and then ops->free() is called: before this returns, or
 * later where one is another process's, who may have been stopped.
 */
void ock_crew_deinit(struct ock_crew *crew);

/* Of the module. */
int ock_crews_init(void);
void ock_crews_exit(void);

/* Makes a thread for what is to come, where the caller may run now; or none, if it cannot. */
void ock_crew_prepare(struct ock_crew *crew);

/* A job was queued: sees to it that it is done. May do it. */
void ock_crew_call(struct ock_crew *crew);

#endif
