/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include <onecopy.h>

#define HUGE_PAGE ((size_t)2 << 20)

int device_open(void)
{
	int fd = open(ONECOPY_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		err(1, "%s", ONECOPY_DEVICE);
	return fd;
}

uint64_t device_create(int fd, void *memory, size_t length)
{
	struct onecopy_segment segment = {.addr = (uintptr_t)memory, .length = length};
	struct onecopy_region_create create = {
		.size = sizeof(create),
		.flags = ONECOPY_REGION_READ | ONECOPY_REGION_WRITE,
		.segments = (uintptr_t)&segment,
		.nr_segments = 1,
	};

	if (ioctl(fd, ONECOPY_IOC_REGION_CREATE, &create))
		err(1, "create");
	return create.cookie;
}

void device_destroy(int fd, uint64_t cookie)
{
	struct onecopy_region_destroy destroy = {.size = sizeof(destroy), .cookie = cookie};

	if (ioctl(fd, ONECOPY_IOC_REGION_DESTROY, &destroy))
		err(1, "destroy");
}

void device_copy(int fd, uint64_t source, void *to, size_t length)
{
	struct onecopy_segment local = {.addr = (uintptr_t)to, .length = length};
	struct onecopy_copy copy = {
		.size = sizeof(copy),
		.source = source,
		.local = (uintptr_t)&local,
		.nr_local = 1,
		.length = length,
	};

	if (ioctl(fd, ONECOPY_IOC_COPY, &copy) || copy.copied != length)
		err(1, "copy");
}

void device_copy_between(int fd, uint64_t source, uint64_t destination, size_t length)
{
	struct onecopy_copy copy = {
		.size = sizeof(copy),
		.source = source,
		.destination = destination,
		.length = length,
	};

	if (ioctl(fd, ONECOPY_IOC_COPY, &copy) || copy.copied != length)
		err(1, "copy");
}

void *device_map(int fd, uint64_t cookie, size_t length, int huge)
{
	struct onecopy_map map = {
		.size = sizeof(map),
		.flags = ONECOPY_MAP_READ | ONECOPY_MAP_WRITE,
		.cookie = cookie,
		.length = length,
	};
	/* Within one GiB, which a first fault fills in. Small pages may lie one behind the
	 * other in memory and then be mapped as a huge one, but not at this address. */
	uintptr_t at = ((uintptr_t)1 << 44) + (huge ? 0 : 4096);
	char *area;

	if (ioctl(fd, ONECOPY_IOC_MAP, &map))
		err(1, "map");
	area = mmap((void *)(at + map.align_offset), map.map_length, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED, fd, map.map_offset);
	if (area == MAP_FAILED)
		err(1, "mmap");
	return area + map.skip;
}

void *memory_make(size_t length, int huge)
{
	char *area = mmap(NULL, length + HUGE_PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		err(1, "mmap");
	area = (char *)(((uintptr_t)area + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
	/* A kernel without huge pages says EINVAL, and means small ones. */
	madvise(area, length, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(area, 1, length);
	return area;
}

double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

void figure(const char *name, const char *pages, size_t bytes, double value, const char *unit)
{
	printf("%s,%s,%zu,%.5g,%s\n", name, pages, bytes, value, unit);
	fflush(stdout);
}
