// SPDX-License-Identifier: BSD-3-Clause
/* The side of the harness that runs cases, and judges what they leave behind. */
#include "kmod.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>

#define COUNTERS "/sys/kernel/debug/onecopy/counters"
/* Bits of /proc/sys/kernel/tainted: the kernel oopsed, or warned. */
#define TAINT_DIE  (1 << 7)
#define TAINT_WARN (1 << 9)

static uint64_t seed;

uint64_t km_seed(void)
{
	return seed;
}

static void choose_seed(void)
{
	const char *given = getenv("KMOD_SEED");

	if (given)
		seed = strtoull(given, NULL, 0);
	else if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint64_t)getpid();
}

/* One counter a line: its name, its value. */
static bool next_counter(char **text, char **name, long long *value)
{
	char *line;

	while ((line = strsep(text, "\n"))) {
		size_t len = strcspn(line, " \t:");

		if (!len || !line[len])
			continue;
		*value = strtoll(line + len + strspn(line + len, " \t:"), NULL, 0);
		line[len] = 0;
		*name = line;
		return true;
	}
	return false;
}

long long km_counter(const char *which)
{
	char buf[4096], *text = buf, *name;
	long long value;

	if (!km_read_text(COUNTERS, buf, sizeof(buf)))
		return -1;
	while (next_counter(&text, &name, &value))
		if (!strcmp(name, which))
			return value;
	return -1;
}

/* Of what lives now. The last references go with works and grace periods: they get some seconds. */
static bool counters_zero(void)
{
	double until = km_now() + (km_slow() ? 20 : 5);
	char buf[4096], *text, *name;
	bool zero, late;

	do {
		long long value;

		late = km_now() > until;
		zero = true;
		text = buf;
		if (!km_read_text(COUNTERS, buf, sizeof(buf))) {
			/* Another module's devices, or none, have no such counters. */
			if (access("/sys/module/onecopy", F_OK))
				return true;
			km_note("%s: %s", COUNTERS, strerror(errno));
			return false;
		}
		while (next_counter(&text, &name, &value)) {
			if (!value || strncmp(name, "live_", 5))
				continue;
			zero = false;
			if (late)
				km_note("counter %s is %lld after the case", name, value);
		}
		if (!zero)
			km_pause();
	} while (!zero && !late);
	return zero;
}

static long long vmstat(const char *name)
{
	char buf[16384], *at;
	size_t len = strlen(name);

	if (!km_read_text("/proc/vmstat", buf, sizeof(buf)))
		return 0;
	for (at = buf; (at = strstr(at, name)); at += len)
		if (at[len] == ' ')
			return strtoll(at + len, NULL, 10);
	return 0;
}

/* Pages pinned by anybody, as the kernel itself counts them, all processors' counts added up by
 * reading stat_refresh. */
static long long pinned(void)
{
	char none[16];

	km_read_text("/proc/sys/vm/stat_refresh", none, sizeof(none));
	return vmstat("nr_foll_pin_acquired") - vmstat("nr_foll_pin_released");
}

/*
 * What the kernel had to complain of so far: taint tells the first time of each kind, later
 * ones only the counts, of the kernels that have them. KCSAN counts each data race as a warning,
 * the kernel's own as well: whose they are vm/races.py tells, from the log.
 */
struct complaints {
	long long taint, warned, oopsed;
};

static struct complaints complaints(void)
{
	return (struct complaints){
		.taint = km_read_number("/proc/sys/kernel/tainted") & (TAINT_DIE | TAINT_WARN),
		.warned = access("/sys/kernel/debug/kcsan", F_OK)
				  ? km_read_number("/sys/kernel/warn_count")
				  : 0,
		.oopsed = km_read_number("/sys/kernel/oops_count"),
	};
}

/* The status of the case's process, or -1 if it did not end in time. */
static int await(pid_t pid, double seconds)
{
	double until = km_now() + seconds;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (km_now() > until)
			return -1;
		km_pause();
	}
	return status;
}

/* Where in the kernel a process is that does not end. */
static void explain(pid_t pid)
{
	static const char *const what[] = {"wchan", "stack", "syscall"};
	char path[64], text[2048];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, what[i]);
		if (km_read_text(path, text, sizeof(text)))
			km_note("%s of %d: %s", what[i], pid, text);
	}
}

/* What the case left running is a child of ours now (subreaper). */
static bool sweep(pid_t group)
{
	double until = km_now() + 30;
	pid_t pid;

	kill(-group, SIGKILL);
	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0) {
		if (pid == 0)
			km_pause();
		if (km_now() > until) {
			explain(group);
			return false;
		}
	}
	return true;
}

static const char *verdict(const struct km_case *c)
{
	struct complaints before = complaints(), after;
	double limit = (c->limit ? c->limit : 30) * (km_slow() ? 8.0 : 1.0);
	long long pins = pinned();
	const char *bad = NULL;
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return "no process";
	if (pid == 0) {
		setpgid(0, 0);
		c->run();
		_exit(0);
	}
	setpgid(pid, pid);
	status = await(pid, limit);
	if (status == -1) {
		bad = "out of time";
		explain(pid);
	} else if (WIFSIGNALED(status)) {
		bad = strsignal(WTERMSIG(status));
	} else if (WEXITSTATUS(status) && WEXITSTATUS(status) != KM_SKIPPED) {
		bad = "a check failed";
	}
	if (!sweep(pid))
		bad = "a process that cannot be killed";
	if (!counters_zero() && !bad)
		bad = "counters not zero";
	/* Those of other processes' direct I/O are soon given back. */
	for (int i = 0; i < 2000 && pinned() != pins; i++)
		km_pause();
	if (!bad && pinned() != pins) {
		km_note("%lld pages stay pinned", pinned() - pins);
		bad = "pages stay pinned";
	}
	after = complaints();
	if (after.taint != before.taint || after.warned != before.warned ||
	    after.oopsed != before.oopsed)
		bad = "the kernel complained";
	if (bad)
		return bad;
	return WEXITSTATUS(status) == KM_SKIPPED ? "" : NULL;
}

int km_main(const struct km_case *cases, int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : getenv("KMOD_ONLY");
	unsigned int ran = 0, skipped = 0, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	choose_seed();
	printf("TAP version 13\n# seed KMOD_SEED=%#llx\n", (unsigned long long)seed);
	for (const struct km_case *c = cases; c->name; c++) {
		const char *bad;
		double start = km_now();

		if (only && !strstr(c->name, only))
			continue;
		fflush(stdout);
		bad = verdict(c);
		ran++;
		skipped += bad && !*bad;
		failed += bad && *bad;
		printf("%s %u - %s%s%s", bad && *bad ? "not ok" : "ok", ran, c->name,
		       bad && !*bad ? " # SKIP" : "", bad && *bad ? " # " : "");
		printf("%s%s%.1f s\n", bad ? bad : "", bad ? " " : " # ", km_now() - start);
	}
	printf("1..%u\n", ran);
	if (failed || !ran)
		return 1;
	return skipped == ran ? KM_SKIPPED : 0;
}
