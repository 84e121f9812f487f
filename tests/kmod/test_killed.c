// SPDX-License-Identifier: BSD-3-Clause
/*
 * Requests of /dev/onecopy that a signal comes into. Fatal ones end them with EINTR, which
 * only the kernel's trace gets to see, and long before they would have ended; others
 * do not disturb them. Who waits in read() sees EINTR.
 */
#include "dev.h"

#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/time.h>

#define TRACING "/sys/kernel/tracing/"
#define SPAN	((size_t)16 << 20)
#define TIMES	128
#define TRIES	40

/* The same memory many times over, so that a request takes long. */
struct scene {
	struct onecopy_segment segments[TIMES];
	uint32_t nr;
	int fd;
	uint64_t source, destination;
};

static void prepare(struct scene *s)
{
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	uint8_t *p = km_pages(SPAN);

	KM_OK(setrlimit(RLIMIT_MEMLOCK, &unlimited));
	s->fd = km_open_unlimited(dv_open);
	s->nr = km_slow() ? TIMES / 4 : TIMES;
	for (uint32_t i = 0; i < s->nr; i++)
		s->segments[i] = dv_seg(p, SPAN);
	KM_OK(dv_create_try(s->fd, s->segments, s->nr, DV_RO, &s->source));
	KM_OK(dv_create_try(s->fd, s->segments, s->nr, DV_RW, &s->destination));
}

static int copy(struct scene *s, bool local)
{
	struct onecopy_copy c = {
		.size = sizeof(c),
		.source = local ? 0 : s->source,
		.destination = s->destination,
		.local = local ? (uintptr_t)s->segments : 0,
		.nr_local = local ? s->nr : 0,
		.length = UINT64_MAX,
	};
	int err = ioctl(s->fd, ONECOPY_IOC_COPY, &c);

	if (!err)
		KM_EQ(c.copied, s->nr * SPAN);
	return err;
}

static void copy_regions(struct scene *s)
{
	KM_OK(copy(s, false));
}

static void copy_local(struct scene *s)
{
	KM_OK(copy(s, true));
}

static void create(struct scene *s)
{
	uint64_t cookie = 0;

	KM_OK(dv_create_try(s->fd, s->segments, s->nr, DV_RO, &cookie));
	KM_OK(dv_destroy(s->fd, cookie));
}

/* Events in the kernel's trace: of a request that ends with EINTR. */
struct witness {
	const char *enable, *filter, *interrupted;
};

static const struct witness copied = {
	TRACING "events/onecopy/onecopy_copy/enable",
	TRACING "events/onecopy/onecopy_copy/filter",
	"err == -4",
};
/* Of every request; not every kernel traces system calls. */
static const struct witness returned = {
	TRACING "events/raw_syscalls/sys_exit/enable",
	TRACING "events/raw_syscalls/sys_exit/filter",
	"ret == -4",
};

/* Each switch rewrites code that runs, which an emulated processor may hang in: few of them. */
static void watch(const struct witness *w, bool on)
{
	if (on) {
		KM_TRUE(km_write_text(TRACING "options/record-cmd", "0"));
		KM_TRUE(km_write_text(w->filter, w->interrupted));
	}
	KM_TRUE(km_write_text(w->enable, on ? "1" : "0"));
	if (!on)
		KM_TRUE(km_write_text(w->filter, "0"));
}

static bool testifies(pid_t pid)
{
	char text[65536], who[32];

	KM_TRUE(km_read_text(TRACING "trace", text, sizeof(text)));
	snprintf(who, sizeof(who), "-%d ", pid);
	return strstr(text, who);
}

static void request_on(void *arg, int ready)
{
	void (*const *request)(struct scene * s) = arg;
	struct scene s;

	prepare(&s);
	KM_EQ(write(ready, "", 1), 1);
	for (;;)
		(*request)(&s);
}

static void killed(void (*request)(struct scene *s), const struct witness *w)
{
	bool seen = false;

	if (access(w->enable, W_OK)) {
		for (int i = 0; i < TRIES / 4; i++)
			km_kill_in(request_on, &request, 1 + i % 20);
		km_skip("no %s: only that the request ends was seen", w->enable);
	}
	watch(w, true);
	for (int i = 0; i < TRIES && !seen; i++)
		seen = testifies(km_kill_in(request_on, &request, 1 + i % 20));
	watch(w, false);
	KM_TRUE(seen);
}

static void killed_copy_regions(void)
{
	killed(copy_regions, &copied);
}

static void killed_copy_local(void)
{
	killed(copy_local, &copied);
}

static void killed_create(void)
{
	killed(create, &returned);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void alarm_often(int flags)
{
	const struct itimerval soon = {.it_value.tv_usec = 2000, .it_interval.tv_usec = 2000};
	struct sigaction act = {.sa_handler = on_alarm, .sa_flags = flags};

	KM_OK(sigaction(SIGALRM, &act, NULL));
	KM_OK(setitimer(ITIMER_REAL, &soon, NULL));
}

/* Signals with a handler wait until the request is through. */
static void not_disturbed(void)
{
	struct scene s;

	prepare(&s);
	alarm_often(0);
	copy_regions(&s);
	copy_local(&s);
	create(&s);
	KM_TRUE(alarms > 0);
}

/* Waiting for an event may take for ever, so any signal ends that. */
static void read_interrupted(void)
{
	const int event = eventfd(0, 0);
	uint8_t *p = km_pages(4096), local[8];
	int fd = dv_open();
	uint64_t source = dv_create(fd, p, 4096, DV_RO), count = 0;
	volatile struct onecopy_completion *word = dv_async(fd, 8, event);

	alarm_often(0);
	KM_ERR(read(fd, &count, sizeof(count)), EINTR);
	alarm_often(SA_RESTART);
	KM_ERR(read(fd, &count, sizeof(count)), EINTR);
	/* What is there is told first. */
	KM_OK(dv_read_async(fd, source, 0, local, sizeof(local), 3, ONECOPY_COPY_EVENT));
	KM_EQ(dv_wait(word + 3), 0);
	while (read(fd, &count, sizeof(count)) < 0)
		KM_EQ(errno, EINTR);
	KM_EQ(count, 1);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "killed_copy_regions", .run = killed_copy_regions},
		{.name = "killed_copy_local", .run = killed_copy_local},
		{.name = "killed_create", .run = killed_create},
		{.name = "not_disturbed", .run = not_disturbed},
		{.name = "read_interrupted", .run = read_interrupted},
		{0},
	};

	return km_main(cases, argc, argv);
}
