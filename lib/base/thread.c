// SPDX-License-Identifier: BSD-3-Clause
#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <unistd.h>

/* What a program or library says that each thread has of its own. */
static int add_local_data(struct dl_phdr_info *info, size_t size, void *sum)
{
	for (size_t i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			*(size_t *)sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
	return 0;
}

int oc_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *arg)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	pthread_attr_t attr;
	sigset_t all, old;
	int err;

	if (stack < (size_t)PTHREAD_STACK_MIN)
		stack = (size_t)PTHREAD_STACK_MIN;
	dl_iterate_phdr(add_local_data, &stack);
	err = pthread_attr_init(&attr);
	if (err)
		return err;
	pthread_attr_setstacksize(&attr, (stack + page - 1) & ~(page - 1));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, &attr, run, arg);
	/* More than was found: a stack as the program's threads have. */
	if (err == EINVAL)
		err = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return err;
}
