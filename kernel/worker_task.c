// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread of the process's own, by vhost_task, which inherits what a thread does. A signal that
 * ends the process ends it: ock_task_died().
 */
#include "worker.h"

#include <linux/err.h>
#include <linux/sched/vhost_task.h>

static bool ock_task_work(void *data)
{
	return ock_worker_turn(data);
}

static void ock_task_died(void *data)
{
	struct ock_worker *worker = data;

	worker->config.died(worker->config.data);
}

int ock_thread_start(struct ock_worker *worker)
{
	struct vhost_task *task;

	task = vhost_task_create(ock_task_work, ock_task_died, worker, worker->config.name);
	/* NULL before 6.14. */
	if (IS_ERR_OR_NULL(task))
		return task ? PTR_ERR(task) : -EAGAIN;
	worker->thread = task;
	/* Kept by the thread, as long as that is. */
	worker->process = current->signal;
	vhost_task_start(task);
	return 0;
}

void ock_worker_wake(struct ock_worker *worker)
{
	vhost_task_wake(worker->thread);
}

void ock_thread_stop(struct ock_worker *worker)
{
	vhost_task_stop(worker->thread);
}
