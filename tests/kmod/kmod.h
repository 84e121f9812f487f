/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Harness of the kernel module's tests: a program is a list of cases, printed
 * as TAP. Every case runs in a process group of its own, under a time limit,
 * and whatever it leaves behind is killed; after each, the module's counters
 * of what lives now must come back to zero. A check that does not hold ends the
 * process it is in; km_join() carries the verdict of a child to its parent.
 *
 * Environment:
 *   KMOD_SEED    seed of what is random (else a fresh one; always printed)
 *   KMOD_SCALE   how long random tests run, in percent of the default
 *   KMOD_ONLY    run only cases whose name contains this
 */
#ifndef KMOD_H
#define KMOD_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "../random.h"

/* As in automake and meson: every case was skipped. */
#define KM_SKIPPED 77

/* A user that is not the one running the tests. */
#define KM_OTHER_USER 65534

struct km_case {
	const char *name;
	void (*run)(void);
	/* Seconds it may take with a kernel at full speed; 0 means 30. */
	unsigned int limit;
};

/* Runs cases up to the one without a name; the value is main()'s. */
int km_main(const struct km_case *cases, int argc, char **argv);

_Noreturn void km_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The case cannot run here, and why. */
_Noreturn void km_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A line of comment in the output. */
void km_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define KM_TRUE(expr)                                                                              \
	do {                                                                                       \
		if (!(expr))                                                                       \
			km_fail(__FILE__, __LINE__, "%s", #expr);                                  \
	} while (0)

/* Two integers. */
#define KM_EQ(got, want) km_eq(__FILE__, __LINE__, #got, (long long)(got), (long long)(want))
/* A call that succeeds: anything but -1. */
#define KM_OK(call) km_ok(__FILE__, __LINE__, #call, (long long)(call))
/* A call that fails with this errno. */
#define KM_ERR(call, err) km_err(__FILE__, __LINE__, #call, (errno = 0, (long long)(call)), err)

void km_eq(const char *file, int line, const char *what, long long got, long long want);
long long km_ok(const char *file, int line, const char *what, long long got);
void km_err(const char *file, int line, const char *what, long long got, int err);

/* In [0, n); 0 if n is 0. */
uint64_t km_below(uint64_t *state, uint64_t n);
/* KMOD_SEED, or one chosen when the program started. */
uint64_t km_seed(void);

/* A kernel with sanitizers, or an emulated one: a tenth of the work will do. */
bool km_slow(void);
/* Where the kernel has readable data of its own, as far as we may know. */
void *km_kernel_address(void);
/* User-Mode Linux: other CPUs' address translations go at their next kernel entry. */
bool km_uml(void);
/* n by KMOD_SCALE; at least 1. */
unsigned long km_share(unsigned long n);
/* The same, made smaller for a slow kernel. */
unsigned long km_scaled(unsigned long n);
/* Seconds since some start. */
double km_now(void);
/* A short sleep between looks at something another process does. */
void km_pause(void);

/* Private zeroed memory, whole pages; the case fails if there is none. */
void *km_pages(size_t bytes);
size_t km_page(void);
/* Bytes that tell where they are and of which writer. */
void km_fill(void *p, size_t bytes, uint64_t seed);
/* Offset of the first byte that is not of this writer, or bytes. */
size_t km_differ(const void *p, size_t bytes, uint64_t seed);
/* Whether a read or write of one byte at p is delivered, not SIGBUS or SIGSEGV. */
int km_touch(void *p, bool write);

pid_t km_fork(void);
/* The child ended by itself and all its checks held. */
void km_join(pid_t pid);
/* The child was killed by us: no verdict expected. */
void km_kill(pid_t pid);
/* A child in @loop, which writes a byte to @ready each time it is about to do what it is to
 * be killed in, and is after so many pauses. Its number, of which no process is left. */
pid_t km_kill_in(void (*loop)(void *arg, int ready), void *arg, int pauses);
/* How the process sleeps, 'R', 'S', 'D', 'T' and so on, as /proc tells it. */
char km_state(pid_t pid);
/* Whether it comes to sleep so. */
bool km_becomes(pid_t pid, char state);
#define KM_CGROUP "/tmp/cgroups/one"
/* In a cgroup of its own, KM_CGROUP, with these settings; the case is skipped where there is none.
 */
void km_enter_cgroup(const char *controllers, const char *name, const char *value);
void km_leave_cgroup(void);
/* Becomes another user for good, root's powers gone. */
void km_drop(uid_t uid);
/* A number in a file, e.g. of /proc or /sys; -1 if it is not there. */
long long km_read_number(const char *path);
bool km_write_text(const char *path, const char *text);
/* Threads of any process whose name begins so; *thread (may be NULL): one of them. */
int km_threads(const char *name, pid_t *thread);
/* There are so many: now or soon, for one that has ended is seen a moment longer. */
void km_expect_threads(const char *name, int count);
/* A parameter of the module becomes @value; @was is what it was. Skips the case if it may not be
 * set. @was may be NULL. */
void km_parameter(const char *name, const char *value, char was[32]);
/* A file opened so that its user may pin more pages than there are. */
int km_open_unlimited(int (*open)(void));
/* The whole file, ended by 0, cut at size; false if it cannot be read. */
bool km_read_text(const char *path, char *buf, size_t size);

/* A live counter of the module by name; -1 if there are none to read. */
long long km_counter(const char *name);

#endif
