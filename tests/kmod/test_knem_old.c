// SPDX-License-Identifier: BSD-3-Clause
/* /dev/knem: the commands of KNEM before 0.7: INIT_SEND, INIT_ASYNC_RECV, SYNC_RECV. */
#include "knem.h"

#define BYTES 30000

static knem_cookie_t init_send(int fd, void *p, size_t bytes, uint32_t flags)
{
	struct knem_cmd_param_iovec iov = kn_iov(p, bytes);
	struct knem_cmd_init_send_param send = {
		.send_iovec_array = (uintptr_t)&iov, .send_iovec_nr = 1, .flags = flags};

	KM_OK(ioctl(fd, KNEM_CMD_INIT_SEND, &send));
	KM_TRUE(send.send_cookie != 0);
	return send.send_cookie;
}

/* The status, or -1. */
static int sync_recv(int fd, knem_cookie_t cookie, void *p, size_t bytes, uint32_t flags)
{
	struct knem_cmd_param_iovec iov = kn_iov(p, bytes);
	struct knem_cmd_sync_recv_param recv = {
		.recv_iovec_array = (uintptr_t)&iov,
		.recv_iovec_nr = 1,
		.status = KN_GARBAGE,
		.send_cookie = cookie,
		.flags = flags,
		.pad = KN_GARBAGE,
	};

	if (ioctl(fd, KNEM_CMD_SYNC_RECV, &recv)) {
		int err = errno;

		KM_EQ(recv.status, KN_GARBAGE);
		errno = err;
		return -1;
	}
	return recv.status;
}

static int async_recv(int fd, knem_cookie_t cookie, void *p, size_t bytes, uint32_t flags,
		      uint32_t slot)
{
	struct knem_cmd_param_iovec iov = kn_iov(p, bytes);
	struct knem_cmd_init_async_recv_param recv =
						      {
							      .recv_iovec_array = (uintptr_t)&iov,
							      .recv_iovec_nr = 1,
							      .status_index = slot,
							      .send_cookie = cookie,
							      .flags = flags,
							      .pad = KN_GARBAGE,
						      },
					      before = recv;
	int ret = ioctl(fd, KNEM_CMD_INIT_ASYNC_RECV, &recv);

	/* Reports in the slot only. */
	KM_TRUE(!memcmp(&recv, &before, sizeof(recv)));
	return ret;
}

/* Asynchronous bits are dropped: no array needed. */
static void synchronous(void)
{
	static const uint32_t flags[] = {0, KNEM_FLAG_PINLOCAL, KNEM_FLAG_ANY_ASYNC_MASK, 0x3e,
					 KNEM_FLAG_SINGLEUSE};
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int fd = kn_open(), peer = kn_open();

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		knem_cookie_t cookie = init_send(fd, p, BYTES, flags[i]);

		km_fill(p, BYTES, i);
		KM_EQ(sync_recv(peer, cookie, q, BYTES, flags[i]), KNEM_STATUS_SUCCESS);
		KM_EQ(km_differ(q, BYTES, i), BYTES);
		/* Single-use, whatever the flags say. */
		KM_ERR(sync_recv(peer, cookie, q, BYTES, 0), EINVAL);
	}
}

static void sync_errors(void)
{
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int fd = kn_open();
	knem_cookie_t cookie = init_send(fd, p, BYTES, 0);

	KM_ERR(sync_recv(fd, cookie, q, BYTES, KNEM_FLAG_NOTIFY_FD), EINVAL);
	KM_ERR(sync_recv(fd, cookie, q, BYTES, KNEM_FLAG_NOTIFY_FD | KNEM_FLAG_MEMCPYTHREAD),
	       EINVAL);
	/* Refused before the lookup: still there. Readable only. */
	KM_ERR(kn_inline(fd, cookie, 0, q, BYTES, true, 0), EACCES);
	KM_EQ(sync_recv(fd, cookie, (void *)8, BYTES, 0), KNEM_STATUS_FAILED);
	KM_ERR(sync_recv(fd, cookie, q, BYTES, 0), EINVAL);
	KM_ERR(ioctl(fd, KNEM_CMD_INIT_SEND, NULL), EFAULT);
	KM_ERR(ioctl(fd, KNEM_CMD_SYNC_RECV, NULL), EFAULT);
	KM_ERR(ioctl(fd, KNEM_CMD_INIT_ASYNC_RECV, NULL), EFAULT);
	/* Never received: gone with the file, or destroyed as a region. */
	cookie = init_send(fd, p, BYTES, 0);
	KM_OK(kn_destroy(fd, cookie));
	init_send(fd, p, BYTES, 0);
}

/* The array always, whatever the flags; the slot always. */
static void asynchronous(void)
{
	static const uint32_t flags[] = {0,
					 KNEM_FLAG_ASYNCDMACOMPLETE,
					 KNEM_FLAG_DMATHREAD,
					 KNEM_FLAG_MEMCPYTHREAD,
					 KNEM_FLAG_PINLOCAL,
					 0x3e};
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int fd = kn_open(), peer = kn_open();
	volatile knem_status_t *slot;
	knem_cookie_t cookie = init_send(fd, p, BYTES, 0);

	KM_ERR(async_recv(peer, cookie, q, BYTES, 0, 0), EINVAL);
	slot = kn_array(peer, 100);
	KM_ERR(async_recv(peer, cookie, q, BYTES, 0, km_page()), EINVAL);
	for (int i = 0; i < 6; i++) {
		km_fill(p, BYTES, i);
		memset(q, 0, BYTES);
		KM_OK(async_recv(peer, cookie, q, BYTES, flags[i], i));
		KM_TRUE((flags[i] & KNEM_FLAG_MEMCPYTHREAD) || slot[i] == KNEM_STATUS_SUCCESS);
		KM_EQ(kn_wait(slot + i), KNEM_STATUS_SUCCESS);
		KM_EQ(km_differ(q, BYTES, i), BYTES);
		KM_ERR(async_recv(peer, cookie, q, BYTES, flags[i], i), EINVAL);
		cookie = init_send(fd, p, BYTES, 0);
	}
	KM_EQ(slot[6], KNEM_STATUS_PENDING);
	KM_OK(async_recv(peer, cookie, (void *)8, BYTES, 0, 7));
	KM_EQ(slot[7], KNEM_STATUS_FAILED);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "synchronous", .run = synchronous},
		{.name = "sync_errors", .run = sync_errors},
		{.name = "asynchronous", .run = asynchronous},
		{0},
	};

	return km_main(cases, argc, argv);
}
