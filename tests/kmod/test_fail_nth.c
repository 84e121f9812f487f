// SPDX-License-Identifier: BSD-3-Clause
/*
 * Every allocation (and access to user memory, where the kernel can) of every
 * request fails once: the first, then the second, until the request has no
 * more. Each failure must be an errno, undo what was begun, and leave a device
 * on which the same request then succeeds.
 */
#include "dev.h"
#include "knem.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>

#define BYTES	 (48 * 4096)
#define SEGMENTS 300
/* Far beyond what any request allocates. */
#define MOST 2000

struct stage {
	int fd, knem, event;
	uint64_t cookie, tracked;
	knem_cookie_t knem_cookie;
	uint8_t *p, *q;
	struct onecopy_segment many[SEGMENTS];
	struct onecopy_map map;
};

static struct stage s;

/* Fresh files each time: what is made once a file is made again. */
static void prepare(void)
{
	s.fd = dv_open();
	s.knem = kn_open();
	s.event = eventfd(0, 0);
	dv_async(s.fd, 64, -1);
	s.cookie = dv_create(s.fd, s.p, BYTES, DV_RW);
	s.knem_cookie = kn_create(s.knem, s.p, BYTES, KN_RW, 0);
	kn_array(s.knem, 4096);
	KM_OK(dv_map_try(s.fd, s.cookie, 0, BYTES, ONECOPY_MAP_READ, &s.map));
}

static void finish(void)
{
	close(s.fd);
	close(s.knem);
	close(s.event);
}

static int do_open(void)
{
	int fd = open(ONECOPY_DEVICE, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -1 : close(fd);
}

static int do_create(void)
{
	struct onecopy_segment seg = dv_seg(s.p, BYTES);
	uint64_t cookie;

	return dv_create_try(s.fd, &seg, 1, DV_RW, &cookie);
}

static int do_create_many(void)
{
	uint64_t cookie;

	return dv_create_try(s.fd, s.many, SEGMENTS, DV_RW, &cookie);
}

static int do_create_tracked(void)
{
	uint64_t cookie;

	if (!(dv_info(s.fd).features & ONECOPY_FEATURE_TRACK))
		return 0;
	return dv_create_try(s.fd, s.many, SEGMENTS, DV_RW | ONECOPY_REGION_TRACK, &cookie);
}

static int do_destroy(void)
{
	return dv_destroy(s.fd, s.cookie);
}

static int do_region_info(void)
{
	struct onecopy_region_info info;

	return dv_region_info(s.fd, s.cookie, &info);
}

static int do_copy(void)
{
	return dv_read(s.fd, s.cookie, 0, s.q, BYTES) == -1 ? -1 : 0;
}

static int do_copy_between(void)
{
	return dv_copy(s.fd, s.cookie, 0, s.cookie, BYTES / 2, BYTES / 2) == -1 ? -1 : 0;
}

static int do_copy_many(void)
{
	struct onecopy_copy c = {
		.size = sizeof(c),
		.source = s.cookie,
		.local = (uintptr_t)s.many,
		.nr_local = SEGMENTS,
		.length = UINT64_MAX,
	};

	return ioctl(s.fd, ONECOPY_IOC_COPY, &c);
}

static int do_copy_async(void)
{
	return dv_read_async(s.fd, s.cookie, 0, s.q, BYTES, 3, 0);
}

static int do_cancel(void)
{
	int ret = dv_cancel(s.fd, 5);

	return ret == -1 && errno == ENOENT ? 0 : ret;
}

static int do_setup(void)
{
	struct onecopy_async_setup setup = {
		.size = sizeof(setup), .nr_slots = 4096, .eventfd = s.event};
	int fd = open(ONECOPY_DEVICE, O_RDWR | O_CLOEXEC), ret = -1, err;

	if (fd < 0)
		return -1;
	ret = ioctl(fd, ONECOPY_IOC_ASYNC_SETUP, &setup);
	err = errno;
	close(fd);
	errno = err;
	return ret;
}

static int do_map(void)
{
	struct onecopy_map map;

	return dv_map_try(s.fd, s.cookie, 0, BYTES, ONECOPY_MAP_READ, &map);
}

static int do_mmap(void)
{
	volatile uint8_t *m = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, s.fd, s.map.map_offset);
	int sig;

	if (m == MAP_FAILED)
		return -1;
	/* Page tables are allocated now. */
	sig = km_touch((uint8_t *)m, false);
	munmap((void *)m, BYTES);
	KM_TRUE(sig == 0 || sig == SIGBUS);
	return 0;
}

static int do_close(void)
{
	return close(s.fd);
}

static int do_knem_open(void)
{
	int fd = open(KNEM_DEVICE_FILENAME, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -1 : close(fd);
}

static int do_knem_array(void)
{
	int fd = open(KNEM_DEVICE_FILENAME, O_RDWR | O_CLOEXEC), err;
	void *p;

	if (fd < 0)
		return -1;
	p = mmap(NULL, 9000, KN_RW, MAP_SHARED, fd, 0);
	err = errno;
	if (p != MAP_FAILED)
		munmap(p, 9000);
	close(fd);
	errno = err;
	return p == MAP_FAILED ? -1 : 0;
}

static int do_knem_create(void)
{
	knem_cookie_t cookie;

	return kn_create_try(s.knem, (void *)s.many, SEGMENTS, KN_RW, 0, &cookie);
}

/* FAILED is how a copy tells that memory could not be had on the way. */
static int copied(int status)
{
	return status == -1 ? -1 : 0;
}

static int do_knem_inline(void)
{
	return copied(kn_inline(s.knem, s.knem_cookie, 0, s.q, BYTES, false, 0));
}

static int do_knem_pinned(void)
{
	return copied(kn_inline(s.knem, s.knem_cookie, 0, s.q, BYTES, true, KNEM_FLAG_PINLOCAL));
}

static int do_knem_thread(void)
{
	return copied(kn_inline_async(s.knem, s.knem_cookie, 0, s.q, BYTES, false,
				      KNEM_FLAG_MEMCPYTHREAD | KNEM_FLAG_NOTIFY_FD, 7));
}

static int do_knem_bind(void)
{
	struct knem_cmd_bind_offload bind = {.flags = KNEM_BIND_FLAG_CURRENT};
	int fd = open(KNEM_DEVICE_FILENAME, O_RDWR | O_CLOEXEC), ret, err;

	if (fd < 0)
		return -1;
	ret = ioctl(fd, KNEM_CMD_BIND_OFFLOAD, &bind);
	err = errno;
	close(fd);
	errno = err;
	return ret;
}

static const struct request {
	const char *name;
	int (*run)(void);
} requests[] = {
	{"open", do_open},
	{"create", do_create},
	{"create, many segments", do_create_many},
	{"create, tracked", do_create_tracked},
	{"destroy", do_destroy},
	{"region info", do_region_info},
	{"copy", do_copy},
	{"copy between regions", do_copy_between},
	{"copy, many segments", do_copy_many},
	{"copy, asynchronous", do_copy_async},
	{"cancel", do_cancel},
	{"asynchronous setup", do_setup},
	{"map", do_map},
	{"mmap", do_mmap},
	{"close", do_close},
	{"knem open", do_knem_open},
	{"knem array", do_knem_array},
	{"knem create", do_knem_create},
	{"knem inline copy", do_knem_inline},
	{"knem inline copy, pinned", do_knem_pinned},
	{"knem inline copy, thread", do_knem_thread},
	{"knem bind", do_knem_bind},
};

static int control;

static void arm(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	KM_EQ(pwrite(control, text, len, 0), len);
}

/* Whether the failure that was asked for has happened. */
static bool disarm(void)
{
	char text[16] = {0};

	KM_TRUE(pread(control, text, sizeof(text) - 1, 0) > 0);
	arm(0);
	return text[0] == '0';
}

static void fail_each(const struct request *r)
{
	unsigned int failed = 0;

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
			failed++;
			if (err != ENOMEM && err != EFAULT && err != EAGAIN && err != ENFILE)
				km_fail(__FILE__, __LINE__, "%s, failure %u: %s", r->name, n,
					strerror(err));
			/* A close that "fails" is done all the same. */
			if (r->run != do_close && r->run != do_mmap && r->run())
				km_fail(__FILE__, __LINE__, "%s after failure %u: %s", r->name, n,
					strerror(errno));
		}
		finish();
		if (!injected) {
			km_note("%s: %u places to fail, %u told", r->name, n - 1, failed);
			return;
		}
	}
	km_fail(__FILE__, __LINE__, "%s never ends", r->name);
}

static void fail_nth(void)
{
	static const char *const no[] = {
		"/sys/kernel/debug/failslab/ignore-gfp-wait",
		"/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait",
		"/sys/kernel/debug/fail_page_alloc/ignore-gfp-highmem",
	};

	control = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC);
	if (control < 0)
		km_skip("this kernel injects no faults");
	for (int i = 0; i < 3; i++)
		km_write_text(no[i], "N");
	km_write_text("/sys/kernel/debug/fail_page_alloc/min-order", "0");
	s.p = km_pages(BYTES);
	s.q = km_pages(BYTES);
	memset(s.p, 1, BYTES);
	memset(s.q, 1, BYTES);
	for (int i = 0; i < SEGMENTS; i++)
		s.many[i] = dv_seg(s.p + i * 600, 500);
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
		fail_each(&requests[i]);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "fail_nth", .run = fail_nth, .limit = 300},
		{0},
	};

	return km_main(cases, argc, argv);
}
