// SPDX-License-Identifier: BSD-3-Clause
#include "access/kdev.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "uapi/onecopy.h"

/* Local segments of a call: beyond some hundred its own cost is gone. */
#define BATCH 256

static struct {
	pthread_mutex_t lock;
	uint32_t users;
	int fd;
	int err; /* of the last open */
	struct oc_file file;
	struct onecopy_info info;
	const _Atomic uint64_t *generations; /* NULL: not tracked */
	bool handler;			     /* the fork handler is registered */
} kdev = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/*
 * The descriptor a child inherits would keep the parent's regions, and the
 * memory they pin, alive after the parent. Its mappings are not inherited.
 */
static void forget(void)
{
	oc_file_close(&kdev.file, kdev.fd);
	pthread_mutex_init(&kdev.lock, NULL);
	kdev.fd = -1;
	kdev.users = 0;
	kdev.err = 0;
	kdev.generations = NULL;
}

static int call(unsigned long request, void *argument)
{
	for (;;) {
		int err;

		if (!ioctl(kdev.fd, request, argument))
			return 0;
		err = errno;
		if (err == EINTR)
			continue;
		/* Closed behind our back, whatever has its number now. */
		return err == EBADF || err == ENOTTY ? -ENODEV : -err;
	}
}

static int probe_fd(void)
{
	struct onecopy_info info = {.size = sizeof(info)};
	int err = oc_file_identify(&kdev.file, kdev.fd);

	if (err)
		return err;
	err = call(ONECOPY_IOC_INFO, &info);
	if (err)
		return err == -ENODEV ? -EPROTO : err;
	if (info.abi != ONECOPY_ABI)
		return -EPROTO;
	kdev.info = info;
	return 0;
}

static void map_generations(void)
{
	void *at;

	kdev.generations = NULL;
	if (!(kdev.info.features & ONECOPY_FEATURE_TRACK))
		return;
	at = mmap(NULL, kdev.info.generation_slots * sizeof(uint64_t), PROT_READ, MAP_SHARED,
		  kdev.fd, (off_t)ONECOPY_MMAP_GENERATIONS);
	if (at != MAP_FAILED)
		kdev.generations = at;
}

/* Under the lock. */
static int open_device(void)
{
	int err;

	kdev.fd = oc_file_above(open(ONECOPY_DEVICE, O_RDWR | O_CLOEXEC));
	if (kdev.fd < 0)
		return -errno;
	err = probe_fd();
	if (err) {
		close(kdev.fd);
		kdev.fd = -1;
		return err;
	}
	map_generations();
	if (!kdev.handler)
		kdev.handler = !pthread_atfork(NULL, NULL, forget);
	return 0;
}

int oc_kdev_open(void)
{
	char why[120];
	int err;

	pthread_mutex_lock(&kdev.lock);
	if (!kdev.users && !kdev.err) {
		kdev.err = open_device();
		if (kdev.err) {
			oc_kdev_explain(kdev.err, why, sizeof(why));
			oc_note("no map, no kcopy: %s", why);
		}
	}
	err = kdev.err;
	kdev.users += !err;
	pthread_mutex_unlock(&kdev.lock);
	return err;
}

void oc_kdev_close(void)
{
	pthread_mutex_lock(&kdev.lock);
	if (kdev.users && !--kdev.users) {
		if (kdev.generations)
			munmap((void *)(uintptr_t)kdev.generations,
			       kdev.info.generation_slots * sizeof(uint64_t));
		kdev.generations = NULL;
		oc_file_close(&kdev.file, kdev.fd);
		kdev.fd = -1;
	}
	pthread_mutex_unlock(&kdev.lock);
}

void oc_kdev_explain(int err, char *why, size_t size)
{
	switch (-err) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		snprintf(why, size,
			 "no " ONECOPY_DEVICE ": the kernel module onecopy is not loaded");
		break;
	case EACCES:
	case EPERM:
		snprintf(why, size,
			 ONECOPY_DEVICE " may not be opened: its group or mode forbids it");
		break;
	case EPROTO:
		snprintf(why, size,
			 "the kernel module's interface is not version %d: another release",
			 ONECOPY_ABI);
		break;
	default:
		snprintf(why, size, ONECOPY_DEVICE ": %s", strerror(-err));
	}
}

bool oc_kdev_tracks(void)
{
	return kdev.generations;
}

size_t oc_kdev_page_size(void)
{
	return kdev.info.page_size;
}

int oc_kdev_region_create(const struct iovec *iov, size_t count, uint32_t flags,
			  struct oc_kdev_region *region)
{
	struct onecopy_region_create argument = {
		.size = sizeof(argument),
		.flags = flags | (kdev.generations ? ONECOPY_REGION_TRACK : 0),
		.nr_segments = (uint32_t)count,
	};
	struct onecopy_segment few[8], *segments = few;
	int err;

	if (count > kdev.info.max_segments)
		return -E2BIG;
	if (count > sizeof(few) / sizeof(few[0]))
		segments = malloc(count * sizeof(*segments));
	if (!segments)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		segments[i] = (struct onecopy_segment){.addr = (uintptr_t)iov[i].iov_base,
						       .length = iov[i].iov_len};
	argument.segments = (uintptr_t)segments;
	err = call(ONECOPY_IOC_REGION_CREATE, &argument);
	if (segments != few)
		free(segments);
	if (!err)
		*region = (struct oc_kdev_region){.cookie = argument.cookie,
						  .generation = argument.generation,
						  .slot = argument.generation_slot};
	return err;
}

void oc_kdev_region_destroy(uint64_t cookie)
{
	struct onecopy_region_destroy argument = {.size = sizeof(argument), .cookie = cookie};

	call(ONECOPY_IOC_REGION_DESTROY, &argument);
}

bool oc_kdev_region_fresh(const struct oc_kdev_region *region)
{
	if (!kdev.generations)
		return false;
	return atomic_load_explicit(&kdev.generations[region->slot], memory_order_acquire) ==
	       region->generation;
}

int oc_kdev_region_check(uint64_t cookie)
{
	struct onecopy_region_info argument = {.size = sizeof(argument), .cookie = cookie};

	return call(ONECOPY_IOC_REGION_INFO, &argument);
}

static size_t gather(const struct oc_cursor *local, struct onecopy_segment *segments, size_t limit,
		     size_t *bytes)
{
	struct iovec iov[BATCH];
	size_t n = oc_cursor_gather(local, iov, BATCH, limit, bytes);

	for (size_t i = 0; i < n; i++)
		segments[i] = (struct onecopy_segment){.addr = (uintptr_t)iov[i].iov_base,
						       .length = iov[i].iov_len};
	return n;
}

ssize_t oc_kdev_copy(enum oc_direction direction, uint64_t cookie, uint64_t offset,
		     struct oc_cursor *local, size_t len)
{
	struct onecopy_segment segments[BATCH];
	size_t done = 0;

	while (done < len) {
		struct onecopy_copy argument = {.size = sizeof(argument),
						.local = (uintptr_t)segments};
		size_t bytes;
		int err;

		argument.nr_local = (uint32_t)gather(local, segments, len - done, &bytes);
		argument.length = bytes;
		if (direction == OC_GET) {
			argument.source = cookie;
			argument.source_offset = offset + done;
		} else {
			argument.destination = cookie;
			argument.destination_offset = offset + done;
		}
		err = bytes ? call(ONECOPY_IOC_COPY, &argument) : -EFAULT;
		if (err && err != -EFAULT)
			return done ? (ssize_t)done : err;
		oc_cursor_skip(local, argument.copied);
		done += argument.copied;
		/* What follows a short copy is refused, or past the end. */
		if (argument.copied < bytes)
			return done ? (ssize_t)done : -EFAULT;
	}
	return (ssize_t)done;
}

ssize_t oc_kdev_copy_between(uint64_t dst, uint64_t dst_offset, uint64_t src, uint64_t src_offset,
			     size_t len)
{
	struct onecopy_copy argument = {.size = sizeof(argument),
					.source = src,
					.source_offset = src_offset,
					.destination = dst,
					.destination_offset = dst_offset,
					.length = len};
	int err = call(ONECOPY_IOC_COPY, &argument);

	return err ? err : (ssize_t)argument.copied;
}

/* Address space of @length bytes that begins at @align_offset modulo @align. */
static void *reserve(size_t length, size_t align, size_t align_offset)
{
	size_t page = kdev.info.page_size, slack = align > page ? align : 0;
	char *at = mmap(NULL, length + slack, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t head;

	if (at == MAP_FAILED || !slack)
		return at;
	head = (align_offset - (uintptr_t)at) & (align - 1);
	if (head)
		munmap(at, head);
	if (slack > head)
		munmap(at + head + length, slack - head);
	return at + head;
}

int oc_kdev_map(uint64_t cookie, uint64_t offset, size_t length, bool write,
		struct oc_kdev_map *map)
{
	struct onecopy_map argument = {
		.size = sizeof(argument),
		.flags = ONECOPY_MAP_READ | (write ? ONECOPY_MAP_WRITE : 0),
		.cookie = cookie,
		.offset = offset,
		.length = length,
	};
	int err = call(ONECOPY_IOC_MAP, &argument);
	void *where, *at;

	if (err)
		return err;
	where = reserve(argument.map_length, argument.align, argument.align_offset);
	/* Even without room the answer must be used up, by an mmap() that the
	 * kernel will refuse in its turn. */
	if (where == MAP_FAILED)
		where = NULL;
	at = mmap(where, argument.map_length, PROT_READ | (write ? PROT_WRITE : 0),
		  MAP_SHARED | (where ? MAP_FIXED : 0), kdev.fd, (off_t)argument.map_offset);
	if (at == MAP_FAILED) {
		err = -errno;
		if (where)
			munmap(where, argument.map_length);
		return err;
	}
	*map = (struct oc_kdev_map){
		.at = (char *)at + argument.skip, .base = at, .length = argument.map_length};
	return 0;
}

void oc_kdev_unmap(const struct oc_kdev_map *map)
{
	munmap(map->base, map->length);
}
