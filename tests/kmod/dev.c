// SPDX-License-Identifier: BSD-3-Clause
#include "dev.h"

#include <fcntl.h>

#define GARBAGE 0xdeadbeefdeadbeef

int dv_open_as(int flags)
{
	int fd = open(ONECOPY_DEVICE, flags | O_CLOEXEC);

	if (fd < 0 && (errno == ENOENT || errno == ENODEV))
		km_skip("no " ONECOPY_DEVICE);
	KM_OK(fd);
	return fd;
}

int dv_open(void)
{
	return dv_open_as(O_RDWR);
}

struct onecopy_info dv_info(int fd)
{
	struct onecopy_info info = {.size = sizeof(info)};

	KM_OK(ioctl(fd, ONECOPY_IOC_INFO, &info));
	KM_EQ(info.abi, ONECOPY_ABI);
	return info;
}

void dv_need(int fd, uint64_t feature, const char *what)
{
	if (!(dv_info(fd).features & feature))
		km_skip("this kernel has no %s", what);
}

struct onecopy_segment dv_seg(const void *p, size_t bytes)
{
	return (struct onecopy_segment){.addr = (uintptr_t)p, .length = bytes};
}

int dv_create_try(int fd, const struct onecopy_segment *segs, uint32_t nr, uint32_t flags,
		  uint64_t *cookie)
{
	struct onecopy_region_create create = {
		.size = sizeof(create),
		.flags = flags,
		.segments = (uintptr_t)segs,
		.nr_segments = nr,
		.cookie = GARBAGE,
	};

	if (ioctl(fd, ONECOPY_IOC_REGION_CREATE, &create)) {
		int err = errno;

		KM_TRUE(create.cookie == GARBAGE);
		errno = err;
		return -1;
	}
	KM_TRUE(create.cookie != 0 && create.cookie != GARBAGE);
	*cookie = create.cookie;
	return 0;
}

uint64_t dv_create(int fd, const void *p, size_t bytes, uint32_t flags)
{
	struct onecopy_segment seg = dv_seg(p, bytes);
	uint64_t cookie = 0;

	KM_OK(dv_create_try(fd, &seg, 1, flags, &cookie));
	return cookie;
}

int dv_destroy(int fd, uint64_t cookie)
{
	struct onecopy_region_destroy destroy = {.size = sizeof(destroy), .cookie = cookie};

	return ioctl(fd, ONECOPY_IOC_REGION_DESTROY, &destroy);
}

int dv_region_info(int fd, uint64_t cookie, struct onecopy_region_info *info)
{
	*info = (struct onecopy_region_info){.size = sizeof(*info), .cookie = cookie};
	return ioctl(fd, ONECOPY_IOC_REGION_INFO, info);
}

static ssize_t copy(int fd, struct onecopy_copy *c)
{
	c->size = sizeof(*c);
	c->copied = GARBAGE;
	if (ioctl(fd, ONECOPY_IOC_COPY, c)) {
		int err = errno;

		/* Told with EFAULT only. */
		KM_TRUE(c->copied == GARBAGE || err == EFAULT);
		errno = err;
		return -1;
	}
	return c->copied;
}

ssize_t dv_read(int fd, uint64_t cookie, uint64_t off, void *p, size_t bytes)
{
	struct onecopy_segment seg = dv_seg(p, bytes);
	struct onecopy_copy c = {
		.source = cookie,
		.source_offset = off,
		.local = (uintptr_t)&seg,
		.nr_local = 1,
		.length = UINT64_MAX,
	};

	return copy(fd, &c);
}

ssize_t dv_write(int fd, uint64_t cookie, uint64_t off, const void *p, size_t bytes)
{
	struct onecopy_segment seg = dv_seg(p, bytes);
	struct onecopy_copy c = {
		.destination = cookie,
		.destination_offset = off,
		.local = (uintptr_t)&seg,
		.nr_local = 1,
		.length = UINT64_MAX,
	};

	return copy(fd, &c);
}

ssize_t dv_copy(int fd, uint64_t src, uint64_t src_off, uint64_t dst, uint64_t dst_off,
		uint64_t length)
{
	struct onecopy_copy c = {
		.source = src,
		.source_offset = src_off,
		.destination = dst,
		.destination_offset = dst_off,
		.length = length,
	};

	return copy(fd, &c);
}

int dv_map_try(int fd, uint64_t cookie, uint64_t off, uint64_t bytes, uint32_t flags,
	       struct onecopy_map *map)
{
	*map = (struct onecopy_map){
		.size = sizeof(*map),
		.flags = flags,
		.cookie = cookie,
		.offset = off,
		.length = bytes,
		.map_offset = GARBAGE,
		.map_length = GARBAGE,
	};
	if (ioctl(fd, ONECOPY_IOC_MAP, map)) {
		int err = errno;

		KM_TRUE(map->map_offset == GARBAGE && map->map_length == GARBAGE);
		errno = err;
		return -1;
	}
	KM_TRUE(map->map_offset % km_page() == 0 && map->map_length % km_page() == 0);
	KM_TRUE(map->skip < km_page() && map->map_length >= map->skip + bytes);
	KM_TRUE(map->align >= km_page() && !(map->align & (map->align - 1)));
	KM_TRUE(map->align_offset < map->align);
	return 0;
}

void *dv_map(int fd, uint64_t cookie, uint64_t off, uint64_t bytes, uint32_t flags)
{
	struct onecopy_map map;
	uint8_t *p;

	if (dv_map_try(fd, cookie, off, bytes, flags, &map))
		return MAP_FAILED;
	p = mmap(NULL, map.map_length, PROT_READ | (flags & ONECOPY_MAP_WRITE ? PROT_WRITE : 0),
		 MAP_SHARED, fd, map.map_offset);
	return p == MAP_FAILED ? p : p + map.skip;
}

volatile struct onecopy_completion *dv_async(int fd, uint32_t slots, int eventfd)
{
	struct onecopy_async_setup setup = {
		.size = sizeof(setup),
		.nr_slots = slots,
		.eventfd = eventfd,
	};
	void *p;

	KM_OK(ioctl(fd, ONECOPY_IOC_ASYNC_SETUP, &setup));
	p = mmap(NULL, slots * sizeof(struct onecopy_completion), PROT_READ | PROT_WRITE,
		 MAP_SHARED, fd, ONECOPY_MMAP_COMPLETIONS);
	if (p == MAP_FAILED)
		km_fail(__FILE__, __LINE__, "completion words: %s", strerror(errno));
	return p;
}

static int later(int fd, struct onecopy_copy *c, const void *p, size_t bytes, uint32_t slot,
		 uint32_t flags)
{
	struct onecopy_segment seg = dv_seg(p, bytes);

	c->flags = flags | ONECOPY_COPY_ASYNC;
	c->local = (uintptr_t)&seg;
	c->nr_local = 1;
	c->slot = slot;
	c->length = UINT64_MAX;
	if (copy(fd, c) == -1)
		return -1;
	/* Told by the word, not here. */
	KM_TRUE(c->copied == GARBAGE);
	return 0;
}

int dv_read_async(int fd, uint64_t cookie, uint64_t off, void *p, size_t bytes, uint32_t slot,
		  uint32_t flags)
{
	struct onecopy_copy c = {.source = cookie, .source_offset = off};

	return later(fd, &c, p, bytes, slot, flags);
}

int dv_write_async(int fd, uint64_t cookie, uint64_t off, const void *p, size_t bytes,
		   uint32_t slot, uint32_t flags)
{
	struct onecopy_copy c = {.destination = cookie, .destination_offset = off};

	return later(fd, &c, p, bytes, slot, flags);
}

int dv_cancel(int fd, uint32_t slot)
{
	struct onecopy_cancel cancel = {.size = sizeof(cancel), .slot = slot};

	return ioctl(fd, ONECOPY_IOC_CANCEL, &cancel);
}

uint32_t dv_wait(volatile struct onecopy_completion *word)
{
	double until = km_now() + (km_slow() ? 60 : 10);
	uint32_t state;

	while ((state = __atomic_load_n(&word->state, __ATOMIC_ACQUIRE)) == ONECOPY_STATE_PENDING)
		if (km_now() > until)
			km_fail(__FILE__, __LINE__, "the word stays pending");
	if (state == ONECOPY_STATE_DONE)
		return 0;
	KM_EQ(state, ONECOPY_STATE_FAILED);
	KM_TRUE(word->error != 0);
	return word->error;
}
