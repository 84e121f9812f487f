/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What regions cost, a page and a call. In a guest whose clock counts
 * instructions (QEMU, -icount shift=0) a nanosecond is one.
 *
 * Costs of a page are the difference between 64 and 32 MiB, so that what a
 * call costs as such drops out. get_user_pages_fast() is seen through
 * vmsplice(), which does little else.
 */

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <onecopy.h>

#include "device.h"

#define SMALL_PAGE 4096
#define HUGE_PAGE  (2 << 20)
#define LARGE	   ((size_t)64 << 20)
#define PIPE	   (1 << 20)
#define REGIONS	   100000
#define CALLS	   2000

enum step { CREATE, FAULT, UNMAP, DESTROY, GET_USER_PAGES, STEPS };

static const char *const step_names[STEPS] = {
	"create", "map", "unmap", "destroy", "get_user_pages",
};

static double pages_get(char *memory, size_t length)
{
	double sum = 0;

	for (size_t at = 0; at < length; at += PIPE) {
		struct iovec piece = {.iov_base = memory + at, .iov_len = PIPE};
		int ends[2];
		double start;

		if (pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, PIPE) < 0)
			err(1, "pipe");
		start = now();
		if (vmsplice(ends[1], &piece, 1, 0) != PIPE)
			err(1, "vmsplice");
		sum += now() - start;
		close(ends[0]);
		close(ends[1]);
	}
	return sum;
}

static void region_live(int fd, char *memory, size_t length, int huge, double cost[STEPS])
{
	double time[STEPS + 1];
	volatile char *area;
	uint64_t cookie;

	time[0] = now();
	cookie = device_create(fd, memory, length);
	cost[CREATE] = now() - time[0];
	area = device_map(fd, cookie, length, huge);
	time[0] = now();
	(void)area[0];
	time[1] = now();
	munmap((void *)area, length);
	time[2] = now();
	device_destroy(fd, cookie);
	cost[DESTROY] = now() - time[2];
	cost[FAULT] = time[1] - time[0];
	cost[UNMAP] = time[2] - time[1];
	cost[GET_USER_PAGES] = pages_get(memory, length);
}

static void pages_measure(int fd, int huge)
{
	const char *pages = huge ? "huge" : "small";
	char *memory = memory_make(LARGE, huge);
	size_t unit = huge ? HUGE_PAGE : SMALL_PAGE;
	double half[STEPS];
	double whole[STEPS];

	/* Once to warm up. */
	for (int i = 0; i < 2; i++) {
		region_live(fd, memory, LARGE / 2, huge, half);
		region_live(fd, memory, LARGE, huge, whole);
	}
	for (int i = 0; i < STEPS; i++)
		figure(step_names[i], pages, unit,
		       (whole[i] - half[i]) / ((double)LARGE / 2 / unit), "ns/page");
	munmap(memory, LARGE);
}

static double call_measure(int fd, unsigned long command, const uint64_t *cookies, size_t nr)
{
	double start = now();

	for (size_t i = 0; i < CALLS; i++) {
		struct onecopy_region_info region = {.size = sizeof(region)};
		struct onecopy_info info = {.size = sizeof(info)};
		int failed;

		if (command == ONECOPY_IOC_INFO) {
			failed = ioctl(fd, command, &info);
		} else {
			region.cookie = cookies[i * 7919 % nr];
			failed = ioctl(fd, command, &region);
		}
		if (failed)
			err(1, "lookup");
	}
	return (now() - start) / CALLS;
}

static void lookup_measure(int fd)
{
	static uint64_t cookies[REGIONS];
	char *memory = memory_make(SMALL_PAGE, 0);
	size_t have = 0;

	for (size_t want = 10; want <= REGIONS; want *= 10) {
		while (have < want)
			cookies[have++] = device_create(fd, memory, SMALL_PAGE);
		/* The table grows in the background. */
		sleep(1);
		call_measure(fd, ONECOPY_IOC_REGION_INFO, cookies, have);
		figure("region_info", "small", have,
		       call_measure(fd, ONECOPY_IOC_REGION_INFO, cookies, have), "ns/call");
		figure("info", "small", have, call_measure(fd, ONECOPY_IOC_INFO, NULL, 0),
		       "ns/call");
	}
}

int main(void)
{
	int fd = device_open();

	pages_measure(fd, 0);
	pages_measure(fd, 1);
	lookup_measure(fd);
	return 0;
}
