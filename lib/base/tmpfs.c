// SPDX-License-Identifier: BSD-3-Clause
/*
 * Whoever makes a user namespace may mount a tmpfs in it. A child does that, and
 * opens a file: the table of descriptors being shared, the file is there for the
 * parent too. Then the child is gone, and with it both namespaces and the mount;
 * the file lives on. The parent's credentials, mounts and dumpability stay as they
 * were, for nothing was done to the parent.
 *
 * The child runs in the parent's memory (page tables may be large) on a stack of
 * its own while the calling thread waits, as the child of vfork does. So:
 * - it makes system calls and nothing else, for locks may be held by other threads.
 *   What it does to errno is mended.
 * - Signals are blocked first: the program's handlers must not run in it.
 * - It sends no signal as it ends, and wait() is blind to it unless told __WCLONE:
 *   the program does not learn of it.
 * - A seccomp filter that kills might dump a core, for which kernels before 5.16
 *   end all processes that share the memory. Where there is a filter, and it would
 *   refuse us in all likelihood, nothing is tried.
 * - Ubuntu's AppArmor lets namespaces be made but nothing mounted, and writes a line
 *   to the log about each who tries. So do not.
 * - Nobody else may take it for a process: bare_clone.h.
 * - Valgrind ends a program that makes such a child.
 */
#include "base/tmpfs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bare_clone.h"
#include "base/file.h"

/* <linux/mount.h>, which C libraries do not get along with. */
#define CLOEXEC	      1u /* FSOPEN_CLOEXEC, FSMOUNT_CLOEXEC */
#define CONFIG_STRING 1u
#define CONFIG_CREATE 6u
#define STACK_BYTES   ((size_t)64 << 10)
#define FILTERED      2 /* prctl(PR_GET_SECCOMP): SECCOMP_MODE_FILTER */
#define APPARMOR_KNOB "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

struct request {
	const char *name;
	const char *huge;
	char uid_map[32];
	char gid_map[32];
	int fd;
	int err;
};

static int put(const char *path, const char *text)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
	size_t len = 0;
	long written;

	if (fd < 0)
		return -errno;
	while (text[len])
		len++;
	written = syscall(SYS_write, fd, text, len);
	syscall(SYS_close, fd);
	return written == (long)len ? 0 : -EPERM;
}

/* A descriptor of the new file system's root, or -errno. */
static int mount_tmpfs(const char *huge)
{
	int fs = (int)syscall(SYS_fsopen, "tmpfs", CLOEXEC), at;

	if (fs < 0)
		return -errno;
	/* No blocks is no limit: a memfd has none either. */
	if (syscall(SYS_fsconfig, fs, CONFIG_STRING, "huge", huge, 0) ||
	    syscall(SYS_fsconfig, fs, CONFIG_STRING, "size", "0", 0) ||
	    syscall(SYS_fsconfig, fs, CONFIG_CREATE, NULL, NULL, 0))
		at = -errno;
	else
		at = (int)syscall(SYS_fsmount, fs, CLOEXEC, 0);
	if (at == -1)
		at = -errno;
	syscall(SYS_close, fs);
	return at;
}

static int make_file(struct request *request)
{
	int err, at;

	/* A user without a number in the namespace could not own a file. */
	err = put("/proc/self/setgroups", "deny");
	if (!err)
		err = put("/proc/self/uid_map", request->uid_map);
	if (!err)
		err = put("/proc/self/gid_map", request->gid_map);
	if (err)
		return err;
	at = mount_tmpfs(request->huge);
	if (at < 0)
		return at;
	/* Not O_TMPFILE: /proc/self/maps is to show a name. */
	request->fd = (int)syscall(SYS_openat, at, request->name,
				   O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (request->fd < 0)
		err = -errno;
	else
		syscall(SYS_unlinkat, at, request->name, 0);
	syscall(SYS_close, at);
	return err;
}

static int child(void *arg)
{
	struct request *request = arg;

	request->err = make_file(request);
	syscall(SYS_exit_group, 0);
	return 0;
}

static int run_child(struct request *request)
{
	const long flags = CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_NEWUSER | CLONE_NEWNS;
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	sigset_t all, mask;
	long pid;

	if (stack == MAP_FAILED)
		return -ENOMEM;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	pid = oc_bare_clone(flags, stack + STACK_BYTES, child, request);
	while (pid > 0 && syscall(SYS_wait4, pid, NULL, __WCLONE, NULL) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	munmap(stack, STACK_BYTES);
	return pid < 0 ? (int)pid : request->err;
}

static bool is_set(const char *path)
{
	char text[2];

	return oc_file_read_text(path, text, sizeof(text)) > 0 && text[0] != '0';
}

static bool is_hopeless(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return prctl(PR_GET_SECCOMP) == FILTERED || (geteuid() && is_set(APPARMOR_KNOB)) ||
	       (preload && strstr(preload, "vgpreload_"));
}

int oc_tmpfs_file(const char *name, const char *huge, uint64_t bytes)
{
	/* The child may be killed at any moment. */
	struct request request = {.name = name, .huge = huge, .fd = -1, .err = -ECHILD};
	int err;

	if (is_hopeless())
		return -EPERM;
	snprintf(request.uid_map, sizeof(request.uid_map), "%u %u 1", geteuid(), geteuid());
	snprintf(request.gid_map, sizeof(request.gid_map), "%u %u 1", getegid(), getegid());
	err = run_child(&request);
	request.fd = oc_file_above(request.fd);
	if (!err && request.fd < 0)
		err = -errno;
	if (!err && ftruncate(request.fd, (off_t)bytes))
		err = -errno;
	if (err && request.fd >= 0)
		close(request.fd);
	return err ? err : request.fd;
}
