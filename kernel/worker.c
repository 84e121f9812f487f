// SPDX-License-Identifier: GPL-2.0-only
/*
 * What both kinds of threads have: where a thread may run, and its first turn, in which it
 * goes there.
 */
#include "worker.h"

#include <linux/sched/signal.h>
#include <linux/slab.h>

int ock_worker_create(const struct ock_worker_config *config, struct ock_worker **result)
{
	const struct ock_worker *like = config->like;
	struct ock_worker *worker;
	int err = -ENOMEM;

	worker = kzalloc(sizeof(*worker), GFP_KERNEL_ACCOUNT);
	if (!worker)
		return -ENOMEM;
	if (!zalloc_cpumask_var(&worker->cpus, GFP_KERNEL_ACCOUNT))
		goto free;
	worker->config = *config;
	worker->config.like = NULL; /* may go before this */
	/*
	 * Which processors a cpuset has is not told to modules. But where a thread in it
	 * may run, the kernel has seen to: the caller, or one that was made before.
	 */
	if (like && READ_ONCE(like->task))
		cpumask_copy(worker->cpus, like->task->cpus_ptr);
	else if (like)
		cpumask_copy(worker->cpus, like->cpus);
	else if (config->cpus)
		cpumask_and(worker->cpus, config->cpus, current->cpus_ptr);
	err = ock_thread_start(worker);
	if (err)
		goto free_cpus;
	*result = worker;
	return 0;
free_cpus:
	free_cpumask_var(worker->cpus);
free:
	kfree(worker);
	return err;
}

bool ock_worker_ours(const struct ock_worker *worker)
{
	return !worker->process || worker->process == current->signal;
}

void ock_worker_destroy(struct ock_worker *worker)
{
	ock_thread_stop(worker);
	free_cpumask_var(worker->cpus);
	kfree(worker);
}

bool ock_worker_turn(struct ock_worker *worker)
{
	if (worker->task)
		return worker->config.work(worker->config.data);
	/* By itself: since 6.14 a kernel thread's beginning undoes what its creator said. */
	__set_current_state(TASK_RUNNING);
	if (!cpumask_empty(worker->cpus))
		set_cpus_allowed_ptr(current, worker->cpus);
	WRITE_ONCE(worker->task, current);
	return true;
}
