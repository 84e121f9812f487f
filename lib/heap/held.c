// SPDX-License-Identifier: BSD-3-Clause
#include "heap/held.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

/* Looks in a row. One stop is no proof: both may be about to be continued. And a traced process
 * stops at each system call, as long as its tracer takes to write that down. */
#define STOPPED_LOOKS 2
#define STILL_LOOKS   50

/* The kernel lists them in the order in which they were made. One that has more than fits here is
 * not waited for by this. */
static pid_t newest_child(void)
{
	char text[4096], *last;
	long n = oc_file_read_text("/proc/thread-self/children", text, sizeof(text));
	int pid = 0;

	if (n <= 0 || n == sizeof(text) - 1)
		return 0;
	while (n && text[n - 1] == ' ')
		text[--n] = '\0';
	last = strrchr(text, ' ');
	return sscanf(last ? last + 1 : text, "%d", &pid) == 1 ? pid : 0;
}

/* Its own word is what counts in its PID namespace, which may be another. */
static void find_pid(struct oc_heap_held *held, int turn)
{
	pid_t said = 0;

	if (!held->pid)
		held->pid = newest_child();
	if (!held->pid && syscall(SYS_read, turn, &said, sizeof(said)) == sizeof(said))
		held->pid = said;
}

static bool is_stopped(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};

	return !syscall(SYS_waitid, P_PID, pid, &info, WSTOPPED | WNOWAIT | WNOHANG, NULL) &&
	       info.si_pid == pid;
}

/* The number in a line of /proc/PID/status. */
static uint64_t number_of(const char *text, const char *name)
{
	const char *line = strstr(text, name);

	return line ? strtoull(line + strlen(name), NULL, 10) : 0;
}

/* In a stop of its tracer's, and it has not run since the last look. The rest of what the kernel
 * says of it may change meanwhile: signals queued for all of its user's processes, for instance. */
static bool is_still(struct oc_heap_held *held)
{
	char path[32], text[8192]; /* masks of processors among it */
	uint64_t switches;
	bool same;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)held->pid);
	if (oc_file_read_text(path, text, sizeof(text)) <= 0 || !strstr(text, "\nState:\tt"))
		return false;
	switches = number_of(text, "\nvoluntary_ctxt_switches:") +
		   number_of(text, "\nnonvoluntary_ctxt_switches:");
	same = switches == held->switches;
	held->switches = switches;
	return same;
}

bool oc_heap_held(struct oc_heap_held *held, int turn)
{
	int saved = errno;

	find_pid(held, turn);
	held->stopped = held->pid && is_stopped(held->pid) ? held->stopped + 1 : 0;
	held->still = held->pid && is_still(held) ? held->still + 1 : 0;
	errno = saved;
	return held->stopped >= STOPPED_LOOKS || held->still >= STILL_LOOKS;
}
