// SPDX-License-Identifier: BSD-3-Clause
#include "knem.h"

#include <fcntl.h>

int kn_open_as(int flags)
{
	int fd = open(KNEM_DEVICE_FILENAME, flags | O_CLOEXEC);

	if (fd < 0 && (errno == ENOENT || errno == ENODEV))
		km_skip("no %s", KNEM_DEVICE_FILENAME);
	KM_OK(fd);
	return fd;
}

int kn_open(void)
{
	return kn_open_as(O_RDWR);
}

struct knem_cmd_param_iovec kn_iov(const void *p, size_t bytes)
{
	return (struct knem_cmd_param_iovec){.base = (uintptr_t)p, .len = bytes};
}

int kn_create_try(int fd, const struct knem_cmd_param_iovec *iov, uint32_t n, uint32_t prot,
		  uint32_t flags, knem_cookie_t *cookie)
{
	struct knem_cmd_create_region create = {
		.iovec_array = (uintptr_t)iov,
		.iovec_nr = n,
		.flags = flags,
		.protection = prot,
		.pad1 = KN_GARBAGE,
		.cookie = KN_GARBAGE,
	};

	if (ioctl(fd, KNEM_CMD_CREATE_REGION, &create)) {
		/* Written back only on success. */
		int err = errno;

		KM_EQ(create.cookie, KN_GARBAGE);
		errno = err;
		return -1;
	}
	KM_EQ(create.pad1, KN_GARBAGE);
	KM_TRUE(create.cookie != 0 && create.cookie != KN_GARBAGE);
	*cookie = create.cookie;
	return 0;
}

knem_cookie_t kn_create(int fd, const void *p, size_t bytes, uint32_t prot, uint32_t flags)
{
	struct knem_cmd_param_iovec iov = kn_iov(p, bytes);
	knem_cookie_t cookie = 0;

	KM_OK(kn_create_try(fd, &iov, 1, prot, flags, &cookie));
	return cookie;
}

int kn_destroy(int fd, knem_cookie_t cookie)
{
	return ioctl(fd, KNEM_CMD_DESTROY_REGION, &cookie);
}

/* Makes the call. The status is never anything else than the three, and told only on success. */
static int call(int fd, unsigned long command, void *copy, const uint32_t *current)
{
	if (ioctl(fd, command, copy)) {
		int err = errno;

		KM_EQ(*current, KN_GARBAGE);
		errno = err;
		return -1;
	}
	KM_TRUE(*current <= KNEM_STATUS_FAILED);
	return *current;
}

int kn_inline_async(int fd, knem_cookie_t cookie, uint64_t off, void *p, size_t bytes, bool write,
		    uint32_t flags, uint32_t slot)
{
	struct knem_cmd_param_iovec iov = kn_iov(p, bytes);
	struct knem_cmd_inline_copy copy = {
		.local_iovec_array = (uintptr_t)&iov,
		.local_iovec_nr = 1,
		.write = write,
		.remote_cookie = cookie,
		.remote_offset = off,
		.flags = flags,
		.current_status = KN_GARBAGE,
		.async_status_index = slot,
		.pad = KN_GARBAGE,
	};

	return call(fd, KNEM_CMD_INLINE_COPY, &copy, &copy.current_status);
}

int kn_inline(int fd, knem_cookie_t cookie, uint64_t off, void *p, size_t bytes, bool write,
	      uint32_t flags)
{
	return kn_inline_async(fd, cookie, off, p, bytes, write, flags, 0xffffffff);
}

void kn_get(int fd, knem_cookie_t cookie, uint64_t off, void *p, size_t bytes)
{
	KM_EQ(kn_inline(fd, cookie, off, p, bytes, false, 0), KNEM_STATUS_SUCCESS);
}

void kn_put(int fd, knem_cookie_t cookie, uint64_t off, void *p, size_t bytes)
{
	KM_EQ(kn_inline(fd, cookie, off, p, bytes, true, 0), KNEM_STATUS_SUCCESS);
}

int kn_copy(int fd, knem_cookie_t src, uint64_t src_off, knem_cookie_t dst, uint64_t dst_off,
	    uint32_t flags, uint32_t slot)
{
	struct knem_cmd_copy copy = {
		.src_cookie = src,
		.src_offset = src_off,
		.dst_cookie = dst,
		.dst_offset = dst_off,
		.flags = flags,
		.current_status = KN_GARBAGE,
		.async_status_index = slot,
		.pad = KN_GARBAGE,
	};

	return call(fd, KNEM_CMD_COPY, &copy, &copy.current_status);
}

int kn_copy_bounded(int fd, knem_cookie_t src, uint64_t src_off, knem_cookie_t dst,
		    uint64_t dst_off, uint64_t length, uint32_t flags, uint32_t slot)
{
	struct knem_cmd_copy_bounded copy = {
		.src_cookie = src,
		.src_offset = src_off,
		.dst_cookie = dst,
		.dst_offset = dst_off,
		.length = length,
		.flags = flags,
		.current_status = KN_GARBAGE,
		.async_status_index = slot,
		.pad = KN_GARBAGE,
	};

	return call(fd, KNEM_CMD_COPY_BOUNDED, &copy, &copy.current_status);
}

volatile knem_status_t *kn_array(int fd, size_t slots)
{
	void *p = mmap(NULL, slots, KN_RW, MAP_SHARED, fd, KNEM_STATUS_ARRAY_FILE_OFFSET);

	if (p == MAP_FAILED)
		km_fail(__FILE__, __LINE__, "status array: %s", strerror(errno));
	return p;
}

int kn_wait(volatile knem_status_t *slot)
{
	double until = km_now() + (km_slow() ? 60 : 10);

	while (*slot == KNEM_STATUS_PENDING)
		if (km_now() > until)
			km_fail(__FILE__, __LINE__, "the slot stays pending");
	return *slot;
}

bool kn_has_dma(int fd)
{
	struct knem_cmd_info info = {0};

	KM_OK(ioctl(fd, KNEM_CMD_GET_INFO, &info));
	return info.features & KNEM_FEATURE_DMA;
}
