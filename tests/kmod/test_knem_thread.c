// SPDX-License-Identifier: BSD-3-Clause
/* /dev/knem: the thread of a context: where it runs, how many there may be, and what close leaves
 * of its work. */
#include "knem.h"

#include <sched.h>
#include <stdlib.h>

#define PARAMETERS "/sys/module/onecopy/parameters/"

static int bind_offload(int fd, uint32_t flags, const void *mask, uint32_t len)
{
	struct knem_cmd_bind_offload bind = {flags, len, (uintptr_t)mask};

	return ioctl(fd, KNEM_CMD_BIND_OFFLOAD, &bind);
}

/* Where the one context that there is has its thread. */
static cpu_set_t thread_cpus(void)
{
	cpu_set_t cpus;
	pid_t thread;

	KM_EQ(km_threads("knem-ctx-", &thread), 1);
	CPU_ZERO(&cpus);
	KM_OK(sched_getaffinity(thread, sizeof(cpus), &cpus));
	return cpus;
}

static cpu_set_t only(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	return cpus;
}

/* The thread of a context whose process is on CPU 0, bound by @flags (0: not at all). */
static cpu_set_t bound(uint32_t flags, const void *mask, uint32_t len)
{
	const cpu_set_t zero = only(0);
	uint8_t *p = km_pages(4096), local[8];
	int fd = kn_open();
	volatile knem_status_t *slot;
	knem_cookie_t cookie = kn_create(fd, p, 4096, PROT_READ, 0);
	cpu_set_t was, cpus;

	KM_OK(sched_getaffinity(0, sizeof(was), &was));
	KM_OK(sched_setaffinity(0, sizeof(zero), &zero));
	if (flags)
		KM_OK(bind_offload(fd, flags, mask, len));
	slot = kn_array(fd, 4096);
	KM_OK(sched_setaffinity(0, sizeof(was), &was));
	KM_OK(kn_inline_async(fd, cookie, 0, local, 8, false, KNEM_FLAG_MEMCPYTHREAD, 0));
	KM_EQ(kn_wait(slot), KNEM_STATUS_SUCCESS);
	cpus = thread_cpus();
	KM_OK(munmap((void *)slot, 4096));
	KM_OK(close(fd));
	return cpus;
}

static void bind(void)
{
	const cpu_set_t zero = only(0), one = only(1);
	uint8_t short_mask = 1, long_mask[4096] = {1}, second = 2, none = 0;
	cpu_set_t cpus;

	cpus = bound(KNEM_BIND_FLAG_CUSTOM, &short_mask, 1);
	KM_TRUE(CPU_EQUAL(&cpus, &zero));
	cpus = bound(KNEM_BIND_FLAG_CUSTOM, long_mask, sizeof(long_mask));
	KM_TRUE(CPU_EQUAL(&cpus, &zero));
	cpus = bound(KNEM_BIND_FLAG_CURRENT, NULL, 0);
	KM_TRUE(CPU_EQUAL(&cpus, &zero));
	cpus = bound(0, NULL, 0);
	KM_TRUE(CPU_EQUAL(&cpus, &zero));
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return;
	cpus = bound(KNEM_BIND_FLAG_CUSTOM, &second, 1);
	KM_TRUE(CPU_EQUAL(&cpus, &one));
	cpus = bound(KNEM_BIND_FLAG_CURRENT_REVERSED, NULL, 0);
	KM_TRUE(!CPU_ISSET(0, &cpus) && CPU_ISSET(1, &cpus));
	/* Nowhere is anywhere. */
	cpus = bound(KNEM_BIND_FLAG_CUSTOM, &none, 1);
	KM_TRUE(CPU_ISSET(0, &cpus) && CPU_ISSET(1, &cpus));
}

static void bind_errors(void)
{
	uint8_t mask = 1, local;
	int fd = kn_open();
	volatile knem_status_t *slot;
	cpu_set_t cpus;

	KM_ERR(ioctl(fd, KNEM_CMD_BIND_OFFLOAD, NULL), EFAULT);
	KM_ERR(bind_offload(fd, 0, &mask, 1), EINVAL);
	KM_ERR(bind_offload(fd, 8, &mask, 1), EINVAL);
	KM_ERR(bind_offload(fd, 3, &mask, 1), EINVAL);
	KM_ERR(bind_offload(fd, 6, NULL, 0), EINVAL);
	KM_ERR(bind_offload(fd, KNEM_BIND_FLAG_CUSTOM, (void *)8, 8), EFAULT);
	/* The last word before the array counts. */
	KM_OK(bind_offload(fd, KNEM_BIND_FLAG_CURRENT, NULL, 0));
	KM_OK(bind_offload(fd, KNEM_BIND_FLAG_CURRENT_REVERSED, NULL, 0));
	KM_OK(bind_offload(fd, KNEM_BIND_FLAG_CUSTOM, &mask, 1));
	slot = kn_array(fd, 4096);
	/* Not before it is needed. */
	km_expect_threads("knem-ctx-", 0);
	KM_OK(kn_inline_async(fd, kn_create(fd, &mask, 1, PROT_READ, 0), 0, &local, 1, false,
			      KNEM_FLAG_MEMCPYTHREAD, 0));
	KM_EQ(kn_wait(slot), KNEM_STATUS_SUCCESS);
	cpus = thread_cpus();
	KM_EQ(CPU_COUNT(&cpus), 1);
	KM_ERR(bind_offload(fd, KNEM_BIND_FLAG_CUSTOM, &mask, 1), EBUSY);
	KM_ERR(bind_offload(fd, KNEM_BIND_FLAG_CURRENT, NULL, 0), EBUSY);
}

/* Sets a parameter for the rest of the case; the value is what it was. */
static void parameter(const char *path, const char *value, char *was, size_t size)
{
	if (!km_read_text(path, was, size) || !km_write_text(path, value))
		km_skip("module parameters are not to be set");
}

/* Told not to listen, the thread is where its process may be. */
static void binding(void)
{
	static const char path[] = PARAMETERS "binding";
	const cpu_set_t zero = only(0);
	uint8_t second = 2;
	cpu_set_t by_mask, reversed, silent;
	char was[32];

	parameter(path, "0", was, sizeof(was));
	by_mask = bound(KNEM_BIND_FLAG_CUSTOM, &second, 1);
	reversed = bound(KNEM_BIND_FLAG_CURRENT_REVERSED, NULL, 0);
	silent = bound(0, NULL, 0);
	KM_TRUE(km_write_text(path, was));
	KM_TRUE(CPU_EQUAL(&by_mask, &zero));
	KM_TRUE(CPU_EQUAL(&reversed, &zero));
	KM_TRUE(CPU_EQUAL(&silent, &zero));
}

/* A copy by a thread, if there may be one; its status when the call returns. */
static int by_thread(int fd, volatile knem_status_t *slot)
{
	uint8_t *p = km_pages(4096), local[64];
	knem_cookie_t cookie = kn_create(fd, p, 4096, PROT_READ, 0);
	int status;

	km_fill(p, 4096, fd);
	KM_OK(kn_inline_async(fd, cookie, 0, local, 64, false, KNEM_FLAG_MEMCPYTHREAD, 0));
	status = *slot;
	KM_EQ(kn_wait(slot), KNEM_STATUS_SUCCESS);
	KM_EQ(km_differ(local, 64, fd), 64);
	KM_OK(kn_destroy(fd, cookie));
	return status;
}

/* Threads are bounded for each user and for all, and given back; who gets none copies itself. */
static void limit(void)
{
	static const char *const names[] = {"max_user_threads", "max_threads"};

	for (int n = 0; n < 2; n++) {
		volatile knem_status_t *slot[3];
		char was[32];
		int fd[3];

		km_parameter(names[n], "2", was);
		for (int i = 0; i < 3; i++)
			fd[i] = kn_open();
		km_parameter(names[n], was, NULL);
		for (int i = 0; i < 3; i++) {
			slot[i] = kn_array(fd[i], 4096);
			by_thread(fd[i], slot[i]);
		}
		km_expect_threads("knem-ctx-", 2);
		for (int i = 0; i < 20; i++)
			KM_EQ(by_thread(fd[2], slot[2]), KNEM_STATUS_SUCCESS);
		KM_OK(munmap((void *)slot[1], 4096));
		KM_OK(close(fd[1]));
		km_expect_threads("knem-ctx-", 1);
		by_thread(fd[2], slot[2]);
		km_expect_threads("knem-ctx-", 2);
		for (int i = 0; i < 3; i += 2) {
			KM_OK(munmap((void *)slot[i], 4096));
			KM_OK(close(fd[i]));
		}
		km_expect_threads("knem-ctx-", 0);
	}
}

/* If nobody says otherwise each user has as many threads as there are processors, and all of them
 * four times as many. */
static void defaults(void)
{
	const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);

	if (geteuid())
		km_skip("needs root to become another user");
	if (km_read_number(PARAMETERS "max_user_threads") ||
	    km_read_number(PARAMETERS "max_threads"))
		km_skip("a limit was set");
	for (int user = 1; user <= 5; user++) {
		for (int i = 0; i <= cpus; i++) {
			int fd;

			KM_OK(setresuid((uid_t)(1000 + user), 0, 0));
			fd = kn_open();
			by_thread(fd, kn_array(fd, 4096));
			KM_OK(setresuid(0, 0, 0));
		}
		km_expect_threads("knem-ctx-", (user < 4 ? user : 4) * cpus);
	}
}

#define SPAN ((size_t)16 << 20)

/* The same memory many times over, so that a copy of it takes long. */
static knem_cookie_t long_region(int fd, void *p, uint32_t times, uint32_t prot)
{
	struct knem_cmd_param_iovec *iov = calloc(times, sizeof(*iov));
	knem_cookie_t cookie;

	KM_TRUE(iov != NULL);
	for (uint32_t i = 0; i < times; i++)
		iov[i] = kn_iov(p, SPAN);
	KM_OK(kn_create_try(fd, iov, times, prot, 0, &cookie));
	free(iov);
	return cookie;
}

/* Close does not wait for the end of a long copy. */
static void broken_off(void)
{
	const uint32_t times = km_slow() ? 128 : 512;
	uint8_t *p = km_pages(SPAN), *q = km_pages(SPAN);
	int owner = km_open_unlimited(kn_open), fd = kn_open();
	volatile knem_status_t *slot = kn_array(fd, 4096);
	knem_cookie_t src = long_region(owner, p, times, PROT_READ);
	knem_cookie_t dst = long_region(owner, q, times, PROT_WRITE);
	long long moved = km_counter("bytes_copied");

	if (moved < 0)
		km_skip("no counters to read");
	KM_OK(kn_copy(fd, src, 0, dst, 0, KNEM_FLAG_MEMCPYTHREAD, 0));
	KM_OK(munmap((void *)slot, 4096));
	KM_OK(close(fd));
	KM_EQ(km_counter("live_copies"), 0);
	moved = km_counter("bytes_copied") - moved;
	km_note("%lld MiB of %zu", moved >> 20, times * SPAN >> 20);
	KM_TRUE(moved < (long long)(times * SPAN));
}

/* What waits for its turn keeps nobody's pages: it fails when they are gone. */
static void gone_when_due(void)
{
	enum { PAGES = 21 };
	uint8_t *p = km_pages(SPAN), *q = km_pages(SPAN), local[64];
	int fd = km_open_unlimited(kn_open), owner = km_open_unlimited(kn_open);
	volatile knem_status_t *slot = kn_array(fd, 4096);
	knem_cookie_t src = long_region(fd, p, km_slow() ? 16 : 128, PROT_READ);
	knem_cookie_t dst = long_region(fd, q, km_slow() ? 16 : 128, PROT_WRITE);
	knem_cookie_t theirs = kn_create(owner, p, PAGES * km_page(), PROT_READ, 0);
	long long live;

	for (int i = 0; i < 2; i++)
		KM_OK(kn_copy(fd, src, 0, dst, 0, KNEM_FLAG_MEMCPYTHREAD, i));
	KM_OK(kn_inline_async(fd, theirs, 0, local, 64, false, KNEM_FLAG_MEMCPYTHREAD, 2));
	live = km_counter("live_pages");
	KM_OK(kn_destroy(owner, theirs));
	if (slot[1] != KNEM_STATUS_PENDING)
		km_skip("the machine was busy elsewhere");
	if (live >= 0)
		KM_EQ(km_counter("live_pages"), live - PAGES);
	KM_EQ(kn_wait(slot + 2), KNEM_STATUS_FAILED);
	KM_EQ(slot[1], KNEM_STATUS_SUCCESS);
}

/* Who submits more copies than there are slots waits; all are made. */
static void bounded_queue(void)
{
	enum { SLOTS = 4096, N = 3 * SLOTS };
	const uint32_t times = km_slow() ? 128 : 512;
	uint8_t *p = km_pages(SPAN), *q = km_pages(SPAN), local[64];
	int fd = km_open_unlimited(kn_open);
	volatile knem_status_t *slot = kn_array(fd, SLOTS);
	knem_cookie_t src = long_region(fd, p, times, PROT_READ);
	knem_cookie_t dst = long_region(fd, q, times, PROT_WRITE);
	long long most = 0;
	pid_t pid;

	if (km_counter("live_copies") < 0)
		km_skip("no counters to read");
	KM_OK(kn_copy(fd, src, 0, dst, 0, KNEM_FLAG_MEMCPYTHREAD, 0));
	pid = km_fork();
	if (pid == 0) {
		for (int i = 1; i < N; i++)
			KM_EQ(kn_inline_async(fd, src, 0, local, 64, false, KNEM_FLAG_MEMCPYTHREAD,
					      1 + i % (SLOTS - 2)),
			      KNEM_STATUS_PENDING);
		KM_OK(kn_inline_async(fd, src, 0, local, 64, false, KNEM_FLAG_MEMCPYTHREAD,
				      SLOTS - 1));
		_exit(0);
	}
	while (slot[0] == KNEM_STATUS_PENDING) {
		long long now = km_counter("live_copies");

		most = now > most ? now : most;
	}
	km_join(pid);
	KM_EQ(kn_wait(slot + SLOTS - 1), KNEM_STATUS_SUCCESS);
	km_note("%lld copies at once", most);
	/* And what is about to be let in, and the reading is no snapshot. */
	KM_TRUE(most <= SLOTS + 16);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "bind", .run = bind},
		{.name = "bind_errors", .run = bind_errors},
		{.name = "binding", .run = binding},
		{.name = "limit", .run = limit},
		{.name = "defaults", .run = defaults},
		{.name = "broken_off", .run = broken_off, .limit = 60},
		{.name = "gone_when_due", .run = gone_when_due, .limit = 60},
		{.name = "bounded_queue", .run = bounded_queue, .limit = 60},
		{0},
	};

	return km_main(cases, argc, argv);
}
