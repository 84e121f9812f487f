// SPDX-License-Identifier: BSD-3-Clause
/* fork_single NAME: what a child with much data may do at once, as it has one thread; exits 0 when
 * it holds, or 77 where nobody may do that. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "fork_blocks.h"

#define MUCH (512 * MIB)

static int in_child(bool (*call)(void), const char *block)
{
	pid_t pid = fork();

	if (pid)
		return status_of(pid);
	if (!call())
		_exit(1);
	/* It goes on for as long as it would take to copy. */
	for (int i = 0; block && i < 3; i++)
		if (!holds(block, MUCH, 1))
			_exit(2);
	/* For a filter that permits no more. */
	for (;;)
		syscall(SYS_exit_group, 0);
}

static void children_may(bool (*call)(void))
{
	char *block;

	/* There is no heap to copy yet. */
	if (in_child(call, NULL))
		exit(77);
	block = malloc(MUCH);
	CHECK(probe_holds(&arena, block));
	fill(block, MUCH, 1);
	for (int i = 0; i < 3; i++)
		CHECK(in_child(call, block) == 0);
}

static bool enter_user(void)
{
	return !unshare(CLONE_NEWUSER);
}

static bool enter_user_by_number(void)
{
	return !syscall(SYS_unshare, CLONE_NEWUSER);
}

static bool enter_mount(void)
{
	int fd = open("/proc/self/ns/mnt", O_RDONLY);

	return !setns(fd, CLONE_NEWNS);
}

/* The same without the names that are ours: no thread shares a directory. */
static bool enter_mount_raw(void)
{
	int fd = open("/proc/self/ns/mnt", O_RDONLY);
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"((long)SYS_setns), "D"((long)fd), "S"((long)CLONE_NEWNS)
			 : "rcx", "r11", "memory");
	return !ret;
}

/* Nothing but exit_group() for all threads; others end the process. */
static struct sock_filter steps[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static bool filter(void)
{
	struct sock_fprog program = {sizeof(steps) / sizeof(steps[0]), steps};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static void user(void)
{
	children_may(enter_user);
}

static void user_by_number(void)
{
	children_may(enter_user_by_number);
}

static void mount(void)
{
	children_may(enter_mount);
}

static void mount_raw(void)
{
	children_may(enter_mount_raw);
}

static void filtered(void)
{
	children_may(filter);
}

int main(int argc, char **argv)
{
	static const struct fork_case cases[] = {
		{"user", user},		{"user_by_number", user_by_number},
		{"mount", mount},	{"mount_raw", mount_raw},
		{"filtered", filtered},
	};

	return fork_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
