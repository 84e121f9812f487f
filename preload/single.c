// SPDX-License-Identifier: BSD-3-Clause
/*
 * Calls that the kernel refuses to a process of several threads, or that mean all of them. A child
 * of fork has one that it does not know of until it has its copy of the heap (lib/heap/helper.h):
 * so it waits for that. procvm/number_x86.c does it for those who make these calls by their number.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/raw_call.h"
#include "heap/helper.h"

#define EXPORT __attribute__((visibility("default")))

static int raw_unshare(int flags)
{
	return (int)oc_raw_call(SYS_unshare, flags, 0, 0, 0, 0, 0);
}

static int raw_setns(int fd, int kind)
{
	return (int)oc_raw_call(SYS_setns, fd, kind, 0, 0, 0, 0);
}

static int raw_prctl(int option, ...)
{
	unsigned long arg[4];
	va_list args;

	va_start(args, option);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(args, unsigned long);
	va_end(args);
	return (int)oc_raw_call(SYS_prctl, option, (long)arg[0], (long)arg[1], (long)arg[2],
				(long)arg[3], 0);
}

/* Who would have been called without us, once that is known. */
static struct {
	int (*unshare)(int flags);
	int (*setns)(int fd, int kind);
	int (*prctl)(int option, ...);
} next = {raw_unshare, raw_setns, raw_prctl};

static void find(void *pointer, const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (found)
		memcpy(pointer, &found, sizeof(found));
}

/* Early, as dlsym() is nothing for children of fork. */
static __attribute__((constructor)) void resolve(void)
{
	find(&next.unshare, "unshare");
	find(&next.setns, "setns");
	find(&next.prctl, "prctl");
}

EXPORT int unshare(int flags)
{
	oc_heap_helper_wait();
	return next.unshare(flags);
}

EXPORT int setns(int fd, int kind)
{
	oc_heap_helper_wait();
	return next.setns(fd, kind);
}

/* As the C library's, which takes as many arguments of any call. */
EXPORT int prctl(int option, ...)
{
	unsigned long arg[4];
	va_list args;

	va_start(args, option);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(args, unsigned long);
	va_end(args);
	/* Of one thread, but what waits makes system calls, too. */
	if (option == PR_SET_SECCOMP)
		oc_heap_helper_wait();
	return next.prctl(option, arg[0], arg[1], arg[2], arg[3]);
}
