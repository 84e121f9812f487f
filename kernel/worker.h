/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_WORKER_H
#define OCK_WORKER_H

/*
 * Threads that copy for a process.
 *
 * Where the kernel gives modules such (Linux 6.10 and later, with VHOST_TASK) they are
 * threads of the process that asked: in its cgroups and cpuset, counted by RLIMIT_NPROC
 * and pids.max, seen in /proc/PID/task, and gone with it (worker_task.c). Elsewhere they are
 * the kernel's, where the process may run, with its nice value, and in those of its
 * cgroups that the kernel lets modules put them in; who has reached RLIMIT_NPROC gets none,
 * but pids.max stops none (worker_kthread.c).
 */

#include <linux/cpumask.h>
#include <linux/sched.h>
#include <linux/types.h>

struct ock_worker;

struct ock_worker_config {
	/*
	 * In the thread, over and over: does a piece of work, or false: there is none, sleep
	 * until woken. Comes in TASK_INTERRUPTIBLE, so that no wake is missed, and leaves
	 * that before it sleeps itself.
	 */
	bool (*work)(void *data);
	/* The process ends: no more work. In the thread; may sleep. */
	void (*died)(void *data);
	void *data;
	const char *name;
	const struct cpumask *cpus;    /* as far as the process may run there; NULL: anywhere */
	const struct ock_worker *like; /* where that one may run, instead; NULL: none */
};

struct ock_worker {
	struct ock_worker_config config;
	cpumask_var_t cpus;	  /* where to go at first; empty: stays */
	struct task_struct *task; /* once it runs */
	const void *process;	  /* whose it is, to be compared; NULL: the kernel's */
	void *thread;		  /* of the kind there is */
};

/* For the current process. -ENOMEM, -EAGAIN and what else the kernel says. */
int ock_worker_create(const struct ock_worker_config *config, struct ock_worker **worker);

/*
 * It is the current process's, or the kernel's: nobody else can stop it (SIGSTOP, a freezer), and
 * hold up who waits for it.
 */
bool ock_worker_ours(const struct ock_worker *worker);

/* Any context. */
void ock_worker_wake(struct ock_worker *worker);

/* Waits until it has left @work, or @died, for good. */
void ock_worker_destroy(struct ock_worker *worker);

/* The thread's turn, as @work. */
bool ock_worker_turn(struct ock_worker *worker);

/* What kind of thread there is; sets and uses @thread, and sets @process. */
int ock_thread_start(struct ock_worker *worker);
void ock_thread_stop(struct ock_worker *worker);

#endif
