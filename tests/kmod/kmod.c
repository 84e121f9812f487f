// SPDX-License-Identifier: BSD-3-Clause
#include "kmod.h"

#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static void say(const char *head, const char *fmt, va_list args)
{
	char line[1024];
	int n = snprintf(line, sizeof(line), "# %s", head);

	n += vsnprintf(line + n, sizeof(line) - n - 1, fmt, args);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	/* One write: lines of several processes do not mix. */
	if (write(STDOUT_FILENO, line, n) < 0)
		_exit(1);
}

void km_note(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say("", fmt, args);
	va_end(args);
}

void km_skip(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say("SKIP ", fmt, args);
	va_end(args);
	_exit(KM_SKIPPED);
}

void km_fail(const char *file, int line, const char *fmt, ...)
{
	char text[512], head[96];
	const char *base = strrchr(file, '/');
	va_list args;

	snprintf(head, sizeof(head), "%s:%d: ", base ? base + 1 : file, line);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	km_note("%s%s", head, text);
	_exit(1);
}

void km_eq(const char *file, int line, const char *what, long long got, long long want)
{
	if (got != want)
		km_fail(file, line, "%s is %lld (%#llx), not %lld", what, got, got, want);
}

long long km_ok(const char *file, int line, const char *what, long long got)
{
	if (got == -1)
		km_fail(file, line, "%s: %s", what, strerror(errno));
	return got;
}

void km_err(const char *file, int line, const char *what, long long got, int err)
{
	int have = errno;

	if (got != -1)
		km_fail(file, line, "%s is %lld, not an error (%s)", what, got, strerror(err));
	if (have != err)
		km_fail(file, line, "%s: %s, not %s", what, strerror(have), strerror(err));
}

uint64_t km_below(uint64_t *state, uint64_t n)
{
	return n ? random_next(state) % n : 0;
}

double km_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

void km_pause(void)
{
	const struct timespec t = {.tv_nsec = 1000000};

	nanosleep(&t, NULL);
}

bool km_slow(void)
{
	static int slow = -1;
	char cpu[4096];

	if (slow < 0)
		slow = access("/sys/kernel/debug/kmemleak", F_OK) == 0 ||
		       access("/proc/lockdep", F_OK) == 0 ||
		       (km_read_text("/proc/cpuinfo", cpu, sizeof(cpu)) && strstr(cpu, "QEMU TCG"));
	return slow;
}

void *km_kernel_address(void)
{
	unsigned long addr = 0;
	char line[256];
	FILE *f = fopen("/proc/kallsyms", "r");

	while (f && !addr && fgets(line, sizeof(line), f))
		if (strstr(line, " linux_banner"))
			addr = strtoul(line, NULL, 16);
	if (f)
		fclose(f);
	return (void *)(addr ? addr : UINTPTR_MAX - (1ul << 20));
}

bool km_uml(void)
{
	char cpu[4096];

	return km_read_text("/proc/cpuinfo", cpu, sizeof(cpu)) && strstr(cpu, "User Mode Linux");
}

unsigned long km_share(unsigned long n)
{
	const char *scale = getenv("KMOD_SCALE");

	if (scale)
		n = n * strtoul(scale, NULL, 0) / 100;
	return n ? n : 1;
}

unsigned long km_scaled(unsigned long n)
{
	return km_share(km_slow() ? n / 10 : n);
}

size_t km_page(void)
{
	return sysconf(_SC_PAGESIZE);
}

void *km_pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	KM_TRUE(p != MAP_FAILED);
	return p;
}

/* Byte i of writer seed; a page apart, two bytes are rarely the same. */
static uint8_t byte(uint64_t of, size_t i)
{
	return (uint8_t)((i * 0x9e3779b1u + of * 0x85ebca6bu) >> 13);
}

void km_fill(void *p, size_t bytes, uint64_t of)
{
	uint8_t *b = p;

	for (size_t i = 0; i < bytes; i++)
		b[i] = byte(of, i);
}

size_t km_differ(const void *p, size_t bytes, uint64_t of)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < bytes; i++)
		if (b[i] != byte(of, i))
			return i;
	return bytes;
}

static __thread sigjmp_buf touched;

static void on_fault(int sig)
{
	siglongjmp(touched, sig);
}

int km_touch(void *p, bool write)
{
	struct sigaction act = {.sa_handler = on_fault}, bus, segv;
	volatile uint8_t *b = p;
	int sig;

	sigaction(SIGBUS, &act, &bus);
	sigaction(SIGSEGV, &act, &segv);
	sig = sigsetjmp(touched, 1);
	if (!sig) {
		uint8_t was = *b;

		if (write)
			*b = was;
	}
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGSEGV, &segv, NULL);
	return sig;
}

pid_t km_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	KM_TRUE(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

void km_join(pid_t pid)
{
	int status;

	KM_EQ(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		km_fail(__FILE__, __LINE__, "child killed by %s", strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status))
		_exit(WEXITSTATUS(status));
}

void km_kill(pid_t pid)
{
	int status;

	KM_EQ(kill(pid, SIGKILL), 0);
	KM_EQ(waitpid(pid, &status, 0), pid);
	KM_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

pid_t km_kill_in(void (*loop)(void *arg, int ready), void *arg, int pauses)
{
	char byte = 0;
	int way[2];
	pid_t pid;

	KM_OK(pipe(way));
	pid = km_fork();
	if (pid == 0) {
		loop(arg, way[1]);
		_exit(0);
	}
	KM_OK(close(way[1]));
	if (read(way[0], &byte, 1) == 1) {
		for (int i = 0; i < pauses; i++)
			km_pause();
		km_kill(pid);
	} else {
		km_join(pid); /* says why */
	}
	KM_OK(close(way[0]));
	return pid;
}

void km_drop(uid_t uid)
{
	if (geteuid())
		km_skip("needs root to become another user");
	KM_EQ(setgroups(0, NULL), 0);
	KM_EQ(setresgid(uid, uid, uid), 0);
	KM_EQ(setresuid(uid, uid, uid), 0);
}

bool km_read_text(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t n = 0;

	if (fd < 0)
		return false;
	while (have < size - 1 && (n = read(fd, buf + have, size - 1 - have)) > 0)
		have += n;
	close(fd);
	buf[have] = 0;
	return n >= 0;
}

int km_threads(const char *name, pid_t *thread)
{
	int found = 0;
	glob_t all;

	KM_EQ(glob("/proc/[0-9]*/task/[0-9]*/comm", 0, NULL, &all), 0);
	for (size_t i = 0; i < all.gl_pathc; i++) {
		char comm[64];

		if (!km_read_text(all.gl_pathv[i], comm, sizeof(comm)) ||
		    strncmp(comm, name, strlen(name)))
			continue;
		found++;
		if (thread)
			*thread = atoi(strstr(all.gl_pathv[i], "/task/") + 6);
	}
	globfree(&all);
	return found;
}

void km_expect_threads(const char *name, int count)
{
	for (int ms = 0; ms < 10000 && km_threads(name, NULL) != count; ms++)
		km_pause();
	KM_EQ(km_threads(name, NULL), count);
}

void km_parameter(const char *name, const char *value, char was[32])
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/onecopy/parameters/%s", name);
	if ((was && !km_read_text(path, was, 32)) || !km_write_text(path, value))
		km_skip("module parameters are not to be set");
}

int km_open_unlimited(int (*open)(void))
{
	static const char much[] = "1099511627776";
	char all[32], user[32];
	int fd;

	km_parameter("max_pages", much, all);
	km_parameter("max_user_pages", much, user);
	fd = open();
	km_parameter("max_pages", all, NULL);
	km_parameter("max_user_pages", user, NULL);
	return fd;
}

long long km_read_number(const char *path)
{
	char text[64];

	return km_read_text(path, text, sizeof(text)) ? strtoll(text, NULL, 0) : -1;
}

bool km_write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text);
}

char km_state(pid_t pid)
{
	char path[64], text[512] = "", *after;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	KM_TRUE(km_read_text(path, text, sizeof(text)));
	after = strrchr(text, ')');
	return after ? after[2] : '?';
}

bool km_becomes(pid_t pid, char state)
{
	double until = km_now() + (km_slow() ? 60 : 10);

	while (km_state(pid) != state) {
		if (km_now() >= until)
			return false;
		km_pause();
	}
	return true;
}

#define CGROUPS "/tmp/cgroups"

void km_enter_cgroup(const char *controllers, const char *name, const char *value)
{
	char path[100], text[32];

	mkdir(CGROUPS, 0700);
	if (mount("cgroup2", CGROUPS, "cgroup2", 0, NULL) && errno != EBUSY)
		km_skip("no cgroups here: %s", strerror(errno));
	mkdir(KM_CGROUP, 0700);
	if (!km_write_text(CGROUPS "/cgroup.subtree_control", controllers))
		km_skip("no controller %s here", controllers);
	snprintf(path, sizeof(path), KM_CGROUP "/%s", name);
	KM_TRUE(km_write_text(path, value));
	snprintf(text, sizeof(text), "%d", getpid());
	KM_TRUE(km_write_text(KM_CGROUP "/cgroup.procs", text));
}

void km_leave_cgroup(void)
{
	char text[32];

	snprintf(text, sizeof(text), "%d", getpid());
	KM_TRUE(km_write_text(CGROUPS "/cgroup.procs", text));
	while (rmdir(KM_CGROUP) && errno == EBUSY)
		km_pause();
	KM_OK(umount2(CGROUPS, MNT_DETACH));
}
