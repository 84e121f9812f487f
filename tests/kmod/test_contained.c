// SPDX-License-Identifier: BSD-3-Clause
/*
 * Threads that copy stay within what their process may use: its processors, its cgroups, the
 * number of its threads. Where the kernel lets modules have threads of a process they are that;
 * what rests on it is skipped elsewhere.
 */
#include "dev.h"
#include "knem.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define BYTES 4096

struct file {
	int fd;
	volatile struct onecopy_completion *word;
	uint64_t region;
	uint8_t *p;
};

static struct file open_file(void)
{
	struct file f = {.fd = dv_open(), .p = km_pages(BYTES)};

	f.word = dv_async(f.fd, 64, -1);
	f.region = dv_create(f.fd, f.p, BYTES, DV_RO | ONECOPY_REGION_ANY_USER);
	km_fill(f.p, BYTES, 1);
	return f;
}

/* A later copy; whether it had been made when the call returned. */
static bool copy(struct file *f)
{
	uint8_t *q = km_pages(BYTES);
	bool made;

	KM_OK(dv_read_async(f->fd, f->region, 0, q, BYTES, 0, 0));
	made = f->word[0].state == ONECOPY_STATE_DONE;
	KM_EQ(dv_wait(f->word), 0);
	KM_EQ(km_differ(q, BYTES, 1), BYTES);
	KM_OK(munmap(q, BYTES));
	return made;
}

/* The module's thread of this case, and whose it is. */
static pid_t worker(bool *own)
{
	char path[64];
	pid_t thread;

	KM_TRUE(km_threads("onecopy", &thread) > 0);
	snprintf(path, sizeof(path), "/proc/self/task/%d", thread);
	*own = access(path, F_OK) == 0;
	return thread;
}

static void close_file(struct file *f)
{
	KM_OK(munmap((void *)f->word, 64 * sizeof(*f->word)));
	KM_OK(close(f->fd));
}

/* Whether modules have threads of processes in this kernel. */
static bool has_own(void)
{
	struct file f = open_file();
	bool own;

	worker(&own);
	close_file(&f);
	km_expect_threads("onecopy", 0);
	return own;
}

static void need_own(void)
{
	if (!has_own())
		km_skip("modules have no threads of processes in this kernel");
}

/* One at first, more when all are busy, none after the end. */
static void on_demand(void)
{
	struct file f = open_file();

	km_expect_threads("onecopy", 1);
	for (int i = 0; i < 50; i++)
		copy(&f);
	KM_TRUE(km_threads("onecopy", NULL) <= 4);
	close_file(&f);
	km_expect_threads("onecopy", 0);
}

static cpu_set_t only(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	return cpus;
}

/* A thread goes where it is to run in its first turn. */
static void expect_on(pid_t thread, int cpu)
{
	double until = km_now() + (km_slow() ? 60 : 10);
	const cpu_set_t one = only(cpu);
	cpu_set_t cpus;

	do {
		KM_OK(sched_getaffinity(thread, sizeof(cpus), &cpus));
	} while (!CPU_EQUAL(&cpus, &one) && km_now() < until);
	KM_TRUE(CPU_EQUAL(&cpus, &one));
}

/* Threads are where ASYNC_SETUP was called, wherever the caller goes after it. */
static void placed(void)
{
	const cpu_set_t zero = only(0), one = only(1);
	uint8_t mask = 1, local;
	volatile knem_status_t *slot;
	struct file f;
	pid_t thread;
	bool own;
	int fd;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		km_skip("needs two processors");
	KM_OK(sched_setaffinity(0, sizeof(one), &one));
	f = open_file();
	KM_OK(sched_setaffinity(0, sizeof(zero), &zero));
	copy(&f);
	expect_on(worker(&own), 1);

	/* What BIND_OFFLOAD says goes no further than the process may. */
	KM_OK(sched_setaffinity(0, sizeof(one), &one));
	fd = kn_open();
	KM_OK(ioctl(fd, KNEM_CMD_BIND_OFFLOAD,
		    &(struct knem_cmd_bind_offload){KNEM_BIND_FLAG_CUSTOM, 1, (uintptr_t)&mask}));
	slot = kn_array(fd, 4096);
	KM_OK(kn_inline_async(fd, kn_create(fd, &mask, 1, PROT_READ, 0), 0, &local, 1, false,
			      KNEM_FLAG_MEMCPYTHREAD, 0));
	KM_EQ(kn_wait(slot), KNEM_STATUS_SUCCESS);
	KM_EQ(km_threads("knem-ctx-", &thread), 1);
	expect_on(thread, 1);
}

/* Beyond RLIMIT_NPROC there is no thread, and copies are made all the same; below it there is. */
static void processes(void)
{
	struct rlimit limit = {1, 2};
	struct file f;
	int fd;

	fd = dv_open();
	KM_OK(setrlimit(RLIMIT_NPROC, &limit));
	km_drop(KM_OTHER_USER);
	f = (struct file){.fd = fd, .p = km_pages(BYTES)};
	km_fill(f.p, BYTES, 1);
	f.word = dv_async(f.fd, 64, -1);
	km_expect_threads("onecopy", 0);
	f.region = dv_create(f.fd, f.p, BYTES, DV_RO | ONECOPY_REGION_ANY_USER);
	for (int i = 0; i < 20; i++)
		KM_TRUE(copy(&f));
	km_expect_threads("onecopy", 0);
	limit.rlim_cur = limit.rlim_max;
	KM_OK(setrlimit(RLIMIT_NPROC, &limit));
	copy(&f);
	km_expect_threads("onecopy", 1);
}

/* They count as its processes do. Threads of the kernel's no number stops. */
static void pids(void)
{
	const bool own = has_own();
	struct file f;

	km_enter_cgroup("+pids", "pids.max", "1");
	f = open_file();
	if (own) {
		km_expect_threads("onecopy", 0);
		KM_TRUE(copy(&f));
		KM_TRUE(km_write_text(KM_CGROUP "/pids.max", "2"));
	}
	copy(&f);
	km_expect_threads("onecopy", 1);
	KM_EQ(km_read_number(KM_CGROUP "/pids.current"), 2);
	close_file(&f);
	km_leave_cgroup();
}

/* And are in its cgroup, on its processors. */
static void cpuset(void)
{
	char path[64], text[256];
	struct file f;
	pid_t thread;
	bool own;

	km_enter_cgroup("+cpuset", "cpuset.cpus", "1");
	f = open_file();
	copy(&f);
	thread = worker(&own);
	expect_on(thread, 1);
	snprintf(path, sizeof(path), "/proc/%d/cgroup", thread);
	KM_TRUE(km_read_text(path, text, sizeof(text)));
	km_note("in cgroup %s", text);
	if (own) {
		KM_TRUE(strstr(text, "/one") != NULL);
		/* What the administrator says later goes for them too. */
		KM_TRUE(km_write_text(KM_CGROUP "/cpuset.cpus", "0"));
		expect_on(thread, 0);
	}
	close_file(&f);
	km_leave_cgroup();
}

/* A process whose thread it was ends; who shares the file goes on. */
static void outlived(void)
{
	int ready[2], done[2];
	pid_t pid;
	char byte;

	KM_OK(pipe(ready));
	KM_OK(pipe(done));
	pid = km_fork();
	if (pid == 0) {
		struct file f = open_file();
		pid_t heir;

		copy(&f);
		heir = fork();
		KM_TRUE(heir >= 0);
		if (heir == 0) {
			for (int i = 0; i < 20; i++)
				copy(&f);
			KM_EQ(write(ready[1], "", 1), 1);
			KM_EQ(read(done[0], &byte, 1), 1);
			for (int i = 0; i < 20; i++)
				copy(&f);
			KM_EQ(write(ready[1], "", 1), 1);
			_exit(0);
		}
		for (;;)
			pause();
	}
	KM_EQ(read(ready[0], &byte, 1), 1);
	km_kill(pid);
	KM_EQ(write(done[1], "", 1), 1);
	KM_OK(close(ready[1]));
	KM_EQ(read(ready[0], &byte, 1), 1);
}

#define SLOTS 4096

/*
 * Threads that are all stopped with their processes make no room in their queue: who waits for some
 * keeps nobody's region meanwhile, also where the copy will be made in the call.
 */
static void no_room(void)
{
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int owner, fd, peer;
	knem_cookie_t own, region;
	volatile knem_status_t *slot;
	uint64_t pinned;
	pid_t stopped[4], waits; /* as many threads as there can be */

	need_own();
	owner = kn_open();
	region = kn_create(owner, p, BYTES, PROT_READ, 0);
	fd = kn_open();
	slot = kn_array(fd, SLOTS);
	own = kn_create(fd, q, BYTES, PROT_READ | PROT_WRITE, 0);
	for (int i = 0; i < 4; i++) {
		stopped[i] = km_fork();
		if (stopped[i] == 0) {
			KM_EQ(kn_copy(fd, own, 0, own, 0, KNEM_FLAG_MEMCPYTHREAD, 0),
			      KNEM_STATUS_PENDING);
			for (;;)
				pause();
		}
		KM_EQ(kn_wait(slot), KNEM_STATUS_SUCCESS);
		*slot = KNEM_STATUS_PENDING;
	}
	for (int i = 0; i < 4; i++) {
		KM_OK(kill(stopped[i], SIGSTOP));
		KM_TRUE(km_becomes(stopped[i], 'T'));
	}
	for (int i = 0; i < SLOTS; i++)
		KM_EQ(kn_copy(fd, own, 0, own, 0, KNEM_FLAG_MEMCPYTHREAD, 1), KNEM_STATUS_PENDING);
	waits = km_fork();
	if (waits == 0) {
		/* Reported in a slot, and made in the call. */
		kn_copy(fd, region, 0, own, 0, KNEM_FLAG_ASYNCDMACOMPLETE, 2);
		km_fail(__FILE__, __LINE__, "there was room");
	}
	KM_TRUE(km_becomes(waits, 'D'));
	peer = dv_open();
	pinned = dv_info(peer).pinned_bytes;
	KM_OK(kn_destroy(owner, region));
	KM_EQ(pinned - dv_info(peer).pinned_bytes, BYTES);
	km_kill(waits);
	for (int i = 0; i < 4; i++)
		km_kill(stopped[i]);
}

/* A thread that is stopped with its process is no help to another, who gets one of his own. */
static void copied_while_stopped(void)
{
	pid_t pid, heir;

	need_own();
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		km_skip("there is one thread at most where there is one processor");
	pid = km_fork();
	if (pid == 0) {
		struct file f = open_file();

		copy(&f);
		heir = km_fork();
		if (heir == 0) {
			KM_TRUE(km_becomes(getppid(), 'T'));
			copy(&f);
			KM_OK(kill(getppid(), SIGCONT));
			_exit(0);
		}
		raise(SIGSTOP);
		km_join(heir);
		_exit(0);
	}
	km_join(pid);
}

/* Who closes a file last does not wait for another's process, which may never go on. */
static void closed_while_stopped(void)
{
	int ready[2];
	pid_t pid, heir;
	char byte;

	need_own();
	KM_OK(pipe(ready));
	pid = km_fork();
	if (pid == 0) {
		struct file f = open_file();
		struct file g = open_file();

		copy(&f);
		copy(&g);
		heir = fork();
		KM_TRUE(heir >= 0);
		if (heir == 0) {
			KM_TRUE(km_becomes(getppid(), 'T'));
			KM_OK(munmap((void *)f.word, 64 * sizeof(*f.word)));
			/* By close(), and by the end. */
			KM_OK(close(f.fd));
			KM_EQ(write(ready[1], "", 1), 1);
			_exit(0);
		}
		KM_OK(munmap((void *)f.word, 64 * sizeof(*f.word)));
		KM_OK(munmap((void *)g.word, 64 * sizeof(*g.word)));
		KM_OK(close(f.fd));
		KM_OK(close(g.fd));
		KM_OK(close(ready[1]));
		raise(SIGSTOP);
		KM_EQ(waitpid(heir, NULL, 0), heir);
		_exit(0);
	}
	KM_OK(close(ready[1]));
	KM_EQ(read(ready[0], &byte, 1), 1);
	/* The heir has ended. */
	KM_EQ(read(ready[0], &byte, 1), 0);
	KM_TRUE(km_threads("onecopy", NULL) >= 2);
	KM_OK(kill(pid, SIGCONT));
	km_join(pid);
	km_expect_threads("onecopy", 0);
}

/* Killed at any moment, with copies queued. */
static void killed_while_copying(void)
{
	for (int i = 0; i < 20; i++) {
		int way[2];
		pid_t pid;
		char byte;

		KM_OK(pipe(way));
		pid = km_fork();
		if (pid == 0) {
			struct file f = open_file();
			uint8_t *q = km_pages(BYTES);

			for (int n = 0, made = 0;; n++) {
				made += !dv_read_async(f.fd, f.region, 0, q, BYTES, n % 64, 0);
				if (made > 10 * i)
					KM_TRUE(write(way[1], "", 1) == 1);
			}
		}
		KM_OK(close(way[1]));
		KM_EQ(read(way[0], &byte, 1), 1);
		km_kill(pid);
		KM_OK(close(way[0]));
	}
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "on_demand", .run = on_demand},
		{.name = "placed", .run = placed},
		{.name = "processes", .run = processes},
		{.name = "pids", .run = pids},
		{.name = "cpuset", .run = cpuset},
		{.name = "outlived", .run = outlived},
		{.name = "no_room", .run = no_room},
		{.name = "copied_while_stopped", .run = copied_while_stopped},
		{.name = "closed_while_stopped", .run = closed_while_stopped},
		{.name = "killed_while_copying", .run = killed_while_copying},
		{0},
	};

	return km_main(cases, argc, argv);
}
