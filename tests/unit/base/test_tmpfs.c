// SPDX-License-Identifier: BSD-3-Clause
/*
 * A file of a tmpfs of our own: as root and as nobody, and nothing of how it came
 * about is left in the process or seen by it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tmpfs.h"

#define BYTES  ((uint64_t)1 << 40)
#define NOBODY 65534
#define SKIP   77

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%d: %s (errno %d)\n", __LINE__, #cond, errno);            \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	signals++;
}

static int count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static int check(void)
{
	char link[64], name[256] = "";
	int files = count_files(), dumpable = prctl(PR_GET_DUMPABLE), fd;
	struct sigaction act = {.sa_handler = count_signal};
	struct statfs fs;
	struct stat st;
	sigset_t before = {0}, after = {0};
	char *at;

	sigaction(SIGCHLD, &act, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	fd = oc_tmpfs_file("test", "advise", BYTES);
	if (fd < 0) {
		fprintf(stderr, "no file: %s\n", strerror(-fd));
		CHECK(count_files() == files);
		return SKIP;
	}
	CHECK(count_files() == files + 1);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK(!fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_nlink);
	CHECK((uint64_t)st.st_size == BYTES && st.st_uid == geteuid() && !(st.st_mode & 077));
	CHECK(!fstatfs(fd, &fs) && fs.f_blocks == 0); /* no limit */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	CHECK(readlink(link, name, sizeof(name) - 1) > 0 && strstr(name, "test"));

	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(BYTES - 4096));
	CHECK(at != MAP_FAILED);
	at[4095] = 1;
	munmap(at, 4096);
	CHECK(!fstat(fd, &st) && st.st_blocks == 8);
	close(fd);

	CHECK(waitpid(-1, NULL, __WALL) < 0 && errno == ECHILD);
	CHECK(!signals);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	CHECK(!memcmp(&before, &after, sizeof(before)));
	CHECK(prctl(PR_GET_DUMPABLE) == dumpable);
	return 0;
}

/* Without any privilege, in a child. */
static int check_as_nobody(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (setgid(NOBODY) || setuid(NOBODY) || prctl(PR_SET_DUMPABLE, 1))
			_exit(SKIP);
		_exit(check());
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}

static void *keep_busy(void *arg)
{
	while (!__atomic_load_n((int *)arg, __ATOMIC_RELAXED))
		close(dup(0));
	return NULL;
}

int main(void)
{
	pthread_t thread;
	int end = 0, as_self, as_nobody = SKIP;

	if (!geteuid())
		as_nobody = check_as_nobody();
	as_self = check();
	if (as_self == 1 || as_nobody == 1)
		return 1;

	/* Another thread opens and closes meanwhile. */
	if (pthread_create(&thread, NULL, keep_busy, &end))
		return 1;
	for (int i = 0; i < 20; i++) {
		int fd = oc_tmpfs_file("test", "always", BYTES);

		if (fd < 0 && !as_self) {
			fprintf(stderr, "beside a thread: %s\n", strerror(-fd));
			return 1;
		}
		close(fd);
	}
	__atomic_store_n(&end, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	return as_self;
}
