// SPDX-License-Identifier: BSD-3-Clause
/* /dev/knem: each command with each of its allocations failing. */
#include "fail.h"
#include "knem.h"
#include "softdma.h"

#include <fcntl.h>

#define BYTES	 (48 * 4096)
#define SEGMENTS 300

static struct {
	int fd;
	bool dma;
	knem_cookie_t cookie;
	uint8_t *p, *q;
	struct knem_cmd_param_iovec many[SEGMENTS];
} s;

/* A fresh file each time: what is made once a file is made again. */
static void prepare(void)
{
	struct knem_cmd_info info;

	s.fd = kn_open();
	s.cookie = kn_create(s.fd, s.p, BYTES, KN_RW, 0);
	munmap((void *)kn_array(s.fd, 4096), 4096);
	KM_OK(ioctl(s.fd, KNEM_CMD_GET_INFO, &info));
	s.dma = info.features & KNEM_FEATURE_DMA;
}

static void finish(void)
{
	close(s.fd);
}

static int do_open(void)
{
	int fd = open(KNEM_DEVICE_FILENAME, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -1 : close(fd);
}

static int do_array(void)
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

static int do_create(void)
{
	knem_cookie_t cookie;

	return kn_create_try(s.fd, s.many, SEGMENTS, KN_RW, 0, &cookie);
}

static int do_destroy(void)
{
	return kn_destroy(s.fd, s.cookie);
}

static int do_init_send(void)
{
	struct knem_cmd_init_send_param send = {.send_iovec_array = (uintptr_t)s.many,
						.send_iovec_nr = SEGMENTS};

	return ioctl(s.fd, KNEM_CMD_INIT_SEND, &send);
}

static int do_sync_recv(void)
{
	struct knem_cmd_sync_recv_param recv = {.recv_iovec_array = (uintptr_t)s.many,
						.recv_iovec_nr = SEGMENTS,
						.send_cookie = s.cookie};

	return ioctl(s.fd, KNEM_CMD_SYNC_RECV, &recv);
}

/* FAILED is how a copy tells that memory could not be had on the way. */
static int copied(int status)
{
	return status == -1 ? -1 : 0;
}

static int do_copy(void)
{
	return copied(kn_copy(s.fd, s.cookie, 0, s.cookie, BYTES / 2, 0, 0));
}

static int do_inline(void)
{
	return copied(kn_inline(s.fd, s.cookie, 0, s.q, BYTES, false, 0));
}

static int do_pinned(void)
{
	return copied(kn_inline(s.fd, s.cookie, 0, s.q, BYTES, true, KNEM_FLAG_PINLOCAL));
}

static int do_thread(void)
{
	return copied(kn_inline_async(s.fd, s.cookie, 0, s.q, BYTES, false,
				      KNEM_FLAG_MEMCPYTHREAD | KNEM_FLAG_NOTIFY_FD, 7));
}

static int do_dma(void)
{
	return s.dma ? copied(kn_inline(s.fd, s.cookie, 0, s.q, BYTES, false, KNEM_FLAG_DMA)) : 0;
}

static int do_dma_async(void)
{
	const uint32_t flags = KNEM_FLAG_DMA | KNEM_FLAG_ASYNCDMACOMPLETE;

	return s.dma ? copied(kn_inline_async(s.fd, s.cookie, 0, s.q, BYTES, true, flags, 7)) : 0;
}

static int do_bind(void)
{
	struct knem_cmd_bind_offload bind = {.flags = KNEM_BIND_FLAG_CURRENT};

	return fail_on_new_file(KNEM_DEVICE_FILENAME, KNEM_CMD_BIND_OFFLOAD, &bind);
}

static const struct fail_request requests[] = {
	{"open", do_open, false},
	{"status array", do_array, false},
	{"create", do_create, false},
	{"destroy", do_destroy, false},
	{"init send", do_init_send, false},
	{"sync recv", do_sync_recv, false},
	{"copy", do_copy, false},
	{"inline copy", do_inline, false},
	{"inline copy, pinned", do_pinned, false},
	{"inline copy, thread", do_thread, false},
	{"inline copy, engine", do_dma, false},
	{"inline copy, engine, later", do_dma_async, false},
	{"bind", do_bind, false},
	{0},
};

static void each(void)
{
	s.p = km_pages(BYTES);
	s.q = km_pages(BYTES);
	memset(s.p, 1, BYTES);
	memset(s.q, 1, BYTES);
	for (int i = 0; i < SEGMENTS; i++)
		s.many[i] = kn_iov(s.p + i * 600, 500);
	fail_each(requests, prepare, finish);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "each", .run = each, .limit = 300},
		{0},
	};

	return sd_main(cases, argc, argv);
}
