// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread of the kernel's. It gets the process's nice value and cgroups from its creator, for
 * it would have neither; it ends when it is told to. RLIMIT_NPROC does not count it, so it is asked
 * here: who may have no thread of his own gets none of the kernel's.
 */
#include "worker.h"

#include <linux/capability.h>
#include <linux/cgroup.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "compat.h"

static int ock_kthread(void *data)
{
	struct ock_worker *worker = data;

	while (!kthread_should_stop()) {
		set_current_state(TASK_INTERRUPTIBLE);
		/* Its creator has to wake it after having said that it should stop. */
		if (kthread_should_stop())
			break;
		if (!ock_worker_turn(worker))
			schedule();
		cond_resched();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/* As fork() has it. */
static bool ock_kthread_allowed(void)
{
	return ock_nr_processes() < rlimit(RLIMIT_NPROC) ||
	       uid_eq(current_uid(), GLOBAL_ROOT_UID) || capable(CAP_SYS_RESOURCE) ||
	       capable(CAP_SYS_ADMIN);
}

int ock_thread_start(struct ock_worker *worker)
{
	struct task_struct *task;

	if (!ock_kthread_allowed())
		return -EAGAIN;
	if (cpumask_empty(worker->cpus))
		cpumask_copy(worker->cpus, current->cpus_ptr);
	task = kthread_create(ock_kthread, worker, "%s", worker->config.name);
	if (IS_ERR(task))
		return PTR_ERR(task);
	set_user_nice(task, task_nice(current));
	/* What it cannot join it runs outside of. */
	cgroup_attach_task_all(current, task);
	worker->thread = task;
	wake_up_process(task);
	return 0;
}

void ock_worker_wake(struct ock_worker *worker)
{
	wake_up_process(worker->thread);
}

void ock_thread_stop(struct ock_worker *worker)
{
	kthread_stop(worker->thread);
}
