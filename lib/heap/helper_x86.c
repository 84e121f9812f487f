// SPDX-License-Identifier: BSD-3-Clause
/*
 * x86-64. The C library must not know of this thread: it would run the
 * program's handlers in it and count it among the program's own. So the thread
 * is made by a bare clone(2) (bare_clone.h), blocks all signals, calls nothing but the kernel,
 * and leaves the thread pointer, which is the main thread's, alone: no errno,
 * no thread-local variable.
 */
#include "heap/helper.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bare_clone.h"
#include "base/pages.h"
#include "base/raw_call.h"

#define DELAY_NS 1000000L	    /* most children exec or exit sooner */
#define STEP	 ((size_t)32 << 20) /* one system call's share of the work */
#define PAGE	 ((size_t)4096)
#define STACK	 16384

static char stack[STACK] __attribute__((aligned(64)));
static struct oc_heap_copy *job;

static struct {
	long pid;
	atomic_long tid; /* 0: there is none */
} helper;

static inline long call(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return ret;
}

/* A part the program has unmapped or made read-only since must not hide the
 * rest. */
static void populate(char *at, size_t bytes)
{
	if (!call(SYS_madvise, (long)at, (long)bytes, MADV_POPULATE_WRITE, 0))
		return;
	for (size_t i = 0; i < bytes; i += PAGE)
		call(SYS_madvise, (long)(at + i), PAGE, MADV_POPULATE_WRITE, 0);
}

/* As in fork.c: without us, as it does when we are stopped. */
static bool parent_went_on(void)
{
	struct pollfd turn = {.fd = job->turn};
	long parent;

	if (call(SYS_poll, (long)&turn, 1, 0, 0) != 1 || !(turn.revents & POLLERR))
		return false;
	parent = call(SYS_getppid, 0, 0, 0, 0);
	return !parent || parent == job->parent;
}

static int __attribute__((noreturn)) settle(void *arg)
{
	struct timespec delay = {.tv_nsec = DELAY_NS};

	/* Its directory, not the program's: file systems may be unmounted. */
	call(SYS_chdir, (long)"/", 0, 0, 0);
	/* Refused before Linux 5.9: then others' pipes stay open meanwhile. */
	if (job->turn)
		call(SYS_close_range, 0, job->turn - 1, 0, 0);
	call(SYS_close_range, job->turn + 1, (long)UINT32_MAX, 0, 0);
	call(SYS_nanosleep, (long)&delay, 0, 0, 0);
	for (size_t i = 0; i < job->count; i++) {
		const struct oc_heap_piece *piece = &job->pieces[i];

		for (size_t from = 0; piece->data && from < piece->bytes; from += STEP) {
			size_t left = piece->bytes - from;

			populate(piece->at + from, left < STEP ? left : STEP);
		}
	}
	/* Better no data than torn data. */
	if (parent_went_on())
		for (int i = 0; i < OC_HEAP_MAPPINGS; i++)
			call(SYS_mprotect, (long)job->mapping[i].base, (long)job->mapping[i].size,
			     PROT_NONE, 0);
	for (int i = 0; i < OC_HEAP_MAPPINGS; i++)
		call(SYS_madvise, (long)job->mapping[i].base, (long)job->mapping[i].size,
		     MADV_DOFORK, 0);
	atomic_store(&job->settled, true);
	for (;;)
		call(SYS_exit, 0, 0, 0, 0);
}

int oc_heap_helper_start(struct oc_heap_copy *copy)
{
	/* No CLONE_FILES: it gets its own descriptor table. No CLONE_FS: a process whose threads
	 * share that may not enter a mount namespace. */
	long flags = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
	uint64_t all = ~(uint64_t)0, before;
	long ret;

	job = copy;
	call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof(all));
	ret = oc_bare_clone(flags, stack + STACK, settle, NULL);
	call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof(before));
	if (ret < 0)
		return (int)ret;
	helper.pid = call(SYS_getpid, 0, 0, 0, 0);
	atomic_store(&helper.tid, ret);
	return 0;
}

void oc_heap_helper_wait(void)
{
	struct timespec pause = {.tv_nsec = 50000};
	long tid = atomic_load(&helper.tid);
	int saved = errno;

	if (!tid)
		return;
	while (!call(SYS_tgkill, helper.pid, tid, 0, 0))
		call(SYS_nanosleep, (long)&pause, 0, 0, 0);
	/* Its number goes first. What else goes under the lock of the list of tasks is gone when
	 * another has had that, as this has. */
	oc_raw_call(SYS_waitid, P_ALL, 0, 0, WEXITED | WNOHANG | WNOWAIT, 0, 0);
	atomic_store(&helper.tid, 0);
	errno = saved;
}

void oc_heap_helper_forget(void)
{
	atomic_store(&helper.tid, 0);
}
