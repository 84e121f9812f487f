// SPDX-License-Identifier: BSD-3-Clause
#include "fail.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "kmod.h"

/* Far beyond what any request allocates. */
#define MOST 2000
/* The same in bytes, and steps that are no longer than what is allocated in one. */
#define BYTES (256 << 10)
#define STEP  64

#define SLAB "/sys/kernel/debug/failslab/"

static int control;

static void begin(void)
{
	static const char *const kinds[] = {"failslab", "fail_page_alloc", "fail_usercopy"};
	static const char *const options[][2] = {{"verbose", "0"},
						 {"ignore-gfp-wait", "N"},
						 {"ignore-gfp-highmem", "N"},
						 {"min-order", "0"}};
	char path[80];

	control = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC);
	if (control < 0)
		km_skip("this kernel injects no faults");
	for (int i = 0; i < 3; i++) {
		for (int j = 0; j < 4; j++) {
			snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", kinds[i],
				 options[j][0]);
			/* Not every kind has every option. */
			km_write_text(path, options[j][1]);
		}
	}
}

/* Reading and writing it are calls that may fail as well. */
static void arm(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	while (pwrite(control, text, len, 0) != len)
		KM_EQ(errno, EFAULT);
}

/* Whether the failure that was asked for has happened. */
static bool disarm(void)
{
	char text[16] = {0};
	ssize_t n = pread(control, text, sizeof(text) - 1, 0);

	if (n == -1)
		KM_EQ(errno, EFAULT);
	arm(0);
	return n > 0 && text[0] == '0';
}

static bool told_as_it_should(int err)
{
	return err == ENOMEM || err == EFAULT || err == EAGAIN || err == ENFILE;
}

static void fail_one(const struct fail_request *r, void (*prepare)(void), void (*finish)(void))
{
	unsigned int told = 0;

	for (unsigned int n = 1; n < MOST; n++) {
		int ret, err;
		bool injected;

		prepare();
		arm(n);
		ret = r->run();
		err = errno;
		injected = disarm();
		if (!injected && ret)
			km_fail(__FILE__, __LINE__, "%s: %s without a failure", r->name,
				strerror(err));
		if (ret) {
			told++;
			if (!told_as_it_should(err))
				km_fail(__FILE__, __LINE__, "%s, failure %u: %s", r->name, n,
					strerror(err));
			if (!r->final && r->run())
				km_fail(__FILE__, __LINE__, "%s after failure %u: %s", r->name, n,
					strerror(errno));
		}
		finish();
		if (!injected) {
			km_note("%s: %u places to fail, %u told", r->name, n - 1, told);
			return;
		}
	}
	km_fail(__FILE__, __LINE__, "%s never ends", r->name);
}

static void set_slab(const char *name, long value)
{
	char path[80], text[24];

	snprintf(path, sizeof(path), SLAB "%s", name);
	snprintf(text, sizeof(text), "%ld", value);
	KM_TRUE(km_write_text(path, text));
}

/* Two allocations in a row, after so many bytes of others; whether there were two. */
static bool fail_pair(const struct fail_request *r, int failing, long space, int *err)
{
	int ret;

	set_slab("space", space);
	set_slab("times", 2);
	KM_EQ(pwrite(failing, "1", 1, 0), 1);
	ret = r->run();
	*err = ret ? errno : 0;
	KM_EQ(pwrite(failing, "0", 1, 0), 1);
	return km_read_number(SLAB "times") == 0;
}

void fail_in_pairs(const struct fail_request *r, void (*prepare)(void), void (*finish)(void))
{
	int failing = open("/proc/self/make-it-fail", O_RDWR | O_CLOEXEC), err;
	unsigned int pairs = 0, told = 0;
	bool failed = true;

	if (failing < 0)
		km_skip("this kernel injects no faults");
	KM_TRUE(km_write_text(SLAB "task-filter", "Y"));
	KM_TRUE(km_write_text(SLAB "ignore-gfp-wait", "N"));
	set_slab("verbose", 0);
	set_slab("interval", 1);
	set_slab("probability", 100);
	for (long space = 0; failed; space += STEP) {
		KM_TRUE(space < BYTES);
		prepare();
		failed = fail_pair(r, failing, space, &err);
		pairs += failed;
		told += err != 0;
		if (err && (!told_as_it_should(err) || r->run()))
			km_fail(__FILE__, __LINE__, "%s, pair after %ld bytes: %s", r->name, space,
				strerror(err));
		finish();
	}
	set_slab("probability", 0);
	close(failing);
	km_note("%s: %u pairs failed, %u told", r->name, pairs, told);
}

void fail_each(const struct fail_request *requests, void (*prepare)(void), void (*finish)(void))
{
	begin();
	for (; requests->name; requests++)
		fail_one(requests, prepare, finish);
}

int fail_on_new_file(const char *path, unsigned long command, void *arg)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), ret, err;

	if (fd < 0)
		return -1;
	ret = ioctl(fd, command, arg);
	err = errno;
	close(fd);
	errno = err;
	return ret;
}
