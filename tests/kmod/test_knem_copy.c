// SPDX-License-Identifier: BSD-3-Clause
/* /dev/knem: synchronous copies: which bytes move, which flags matter, what fails and how. */
#include "knem.h"

#include <stdlib.h>

#define BYTES 50000

static int inline_bounded(int fd, knem_cookie_t cookie, uint64_t off, void *p, size_t bytes,
			  bool write, uint64_t length)
{
	struct knem_cmd_param_iovec iov = kn_iov(p, bytes);
	struct knem_cmd_inline_copy_bounded copy = {
		.local_iovec_array = (uintptr_t)&iov,
		.local_iovec_nr = 1,
		.write = write,
		.remote_cookie = cookie,
		.remote_offset = off,
		.length = length,
		.current_status = KN_GARBAGE,
		.async_status_index = UINT32_MAX,
		.pad = KN_GARBAGE,
	};

	return ioctl(fd, KNEM_CMD_INLINE_COPY_BOUNDED, &copy) ? -1 : (int)copy.current_status;
}

/* Exactly [0, n) of got came from p + off; the rest still has the old bytes. */
static void expect(const uint8_t *got, size_t bytes, const uint8_t *p, size_t n)
{
	KM_TRUE(!memcmp(got, p, n));
	for (size_t i = n; i < bytes; i++)
		KM_EQ(got[i], 0xaa);
}

/* The shortest of region behind the offset, local memory and bound decides. */
static void lengths(void)
{
	static const uint64_t offsets[] = {0,	      1,     4095,	4096,
					   BYTES - 1, BYTES, BYTES + 1, UINT64_MAX};
	static const uint64_t bounds[] = {0, 1, 777, BYTES, BYTES + 9, UINT64_MAX};
	static const size_t locals[] = {0, 1, 4097, BYTES};
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES), *got = km_pages(BYTES + 16);
	int fd = kn_open();
	knem_cookie_t src = kn_create(fd, p, BYTES, PROT_READ, 0);
	knem_cookie_t dst = kn_create(fd, q, BYTES, KN_RW, 0);

	km_fill(p, BYTES, 3);
	for (size_t i = 0; i < 8 * 6 * 4; i++) {
		uint64_t off = offsets[i % 8], bound = bounds[i / 8 % 6];
		uint64_t left = off < BYTES ? BYTES - off : 0, n = locals[i / 48];

		n = n < left ? n : left;
		memset(got, 0xaa, BYTES + 16);
		KM_EQ(kn_inline(fd, src, off, got, locals[i / 48], false, 0), KNEM_STATUS_SUCCESS);
		expect(got, BYTES + 16, p + (n ? off : 0), n);
		n = n < bound ? n : bound;
		memset(got, 0xaa, BYTES + 16);
		KM_EQ(inline_bounded(fd, src, off, got, locals[i / 48], false, bound),
		      KNEM_STATUS_SUCCESS);
		expect(got, BYTES + 16, p + (n ? off : 0), n);
		/* The other way, between regions, from offset 100 of the source. */
		memset(q, 0xaa, BYTES);
		n = left < bound ? left : bound;
		n = n < BYTES - 100 ? n : BYTES - 100;
		KM_EQ(kn_copy_bounded(fd, src, 100, dst, off, bound, 0, 0), KNEM_STATUS_SUCCESS);
		expect(q + (n ? off : 0), n, p + 100, n);
		for (size_t j = 0; n && j < off; j++)
			KM_EQ(q[j], 0xaa);
	}
}

static void unbounded_copy(void)
{
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int fd = kn_open(), other = kn_open();
	knem_cookie_t src = kn_create(fd, p, BYTES, PROT_READ, 0);
	knem_cookie_t dst = kn_create(other, q, 3000, PROT_WRITE, 0);

	km_fill(p, BYTES, 4);
	memset(q, 0xaa, BYTES);
	KM_EQ(kn_copy(fd, src, 33, dst, 17, 0, UINT32_MAX), KNEM_STATUS_SUCCESS);
	expect(q + 17, 4000, p + 33, 3000 - 17);
	KM_EQ(q[16], 0xaa);
}

/* Five segments on either side, none aligned, in both directions. */
static void scattered(void)
{
	static const uint32_t at[5] = {3, 5000, 9001, 20480, 40960 - 7};
	static const uint32_t len[5] = {4093, 1, 8200, 4096, 5007};
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES), flat[2][4093 + 1 + 8200 + 4096 + 5007];
	struct knem_cmd_param_iovec remote[5], local[5];
	struct knem_cmd_inline_copy copy = {.local_iovec_array = (uintptr_t)local,
					    .local_iovec_nr = 5};
	knem_cookie_t cookie;
	int fd = kn_open();

	for (int i = 0; i < 5; i++) {
		remote[i] = kn_iov(p + at[i], len[i]);
		local[4 - i] = kn_iov(q + at[i] + 11, len[i]);
	}
	KM_OK(kn_create_try(fd, remote, 5, KN_RW, 0, &cookie));
	copy.remote_cookie = cookie;
	for (int write = 0; write < 2; write++) {
		size_t a = 0, b = 0;

		km_fill(p, BYTES, 5 + write);
		km_fill(q, BYTES, 7 + write);
		copy.write = write;
		KM_OK(ioctl(fd, KNEM_CMD_INLINE_COPY, &copy));
		KM_EQ(copy.current_status, KNEM_STATUS_SUCCESS);
		for (int i = 0; i < 5; i++) {
			memcpy(flat[0] + a, p + at[i], len[i]);
			memcpy(flat[1] + b, (void *)(uintptr_t)local[i].base, local[i].len);
			a += len[i];
			b += local[i].len;
		}
		KM_TRUE(!memcmp(flat[0], flat[1], a));
		/* It was a copy in this direction, and to nowhere else. */
		KM_EQ(km_differ(write ? q : p, BYTES, write ? 8 : 5), BYTES);
		km_fill(write ? q : p, BYTES, write ? 6 : 7);
		for (int i = 0; i < 5; i++) {
			uint8_t *to = write ? p + at[i] : (void *)(uintptr_t)local[i].base;
			const uint8_t *from = (write ? q : p) + (to - (write ? p : q));

			memcpy(to, from, write ? len[i] : local[i].len);
		}
		KM_EQ(km_differ(write ? p : q, BYTES, write ? 6 : 7), BYTES);
	}
}

/* Every bit of a synchronous copy that is dropped, or only changes how. */
static void flags(void)
{
	static const uint32_t good[] = {
		KNEM_FLAG_PINLOCAL,
		KNEM_FLAG_SINGLEUSE,
		KNEM_FLAG_ANY_USER_ACCESS,
		1u << 31,
		0xffffffff & ~KNEM_FLAG_ANY_COPY_MASK,
	};
	uint8_t *p = km_pages(BYTES), *got = km_pages(BYTES);
	int fd = kn_open();
	knem_cookie_t cookie = kn_create(fd, p, BYTES, KN_RW, 0);

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		km_fill(p, BYTES, i);
		memset(got, 0, BYTES);
		KM_EQ(kn_inline(fd, cookie, 0, got, BYTES, false, good[i]), KNEM_STATUS_SUCCESS);
		KM_EQ(km_differ(got, BYTES, i), BYTES);
		km_fill(got, BYTES, i + 100);
		KM_EQ(kn_inline(fd, cookie, 0, got, BYTES, true, good[i]), KNEM_STATUS_SUCCESS);
		KM_EQ(km_differ(p, BYTES, i + 100), BYTES);
	}
	/* A copy flag cannot make a region single-use. */
	kn_get(fd, cookie, 0, got, BYTES);
}

/* Without a channel: an error where the kernel has DMA at all, else a plain copy. */
static void dma(void)
{
	uint8_t *p = km_pages(BYTES), *got = km_pages(BYTES);
	int fd = kn_open();
	knem_cookie_t cookie = kn_create(fd, p, BYTES, PROT_READ, 0);

	km_fill(p, BYTES, 9);
	if (!kn_has_dma(fd) && access("/sys/class/dma", F_OK) == 0) {
		KM_ERR(kn_inline(fd, cookie, 0, got, BYTES, false, KNEM_FLAG_DMA), EINVAL);
		KM_ERR(kn_copy(fd, cookie, 0, cookie, 0, KNEM_FLAG_DMA, 0), EINVAL);
		return;
	}
	KM_EQ(kn_inline(fd, cookie, 0, got, BYTES, false, KNEM_FLAG_DMA), KNEM_STATUS_SUCCESS);
	KM_EQ(km_differ(got, BYTES, 9), BYTES);
}

/* NOTIFY_FD asks for a thread, and for no DMA completion by polling. */
static void notify_needs_thread(void)
{
	static const uint32_t bad[] = {
		KNEM_FLAG_NOTIFY_FD,
		KNEM_FLAG_NOTIFY_FD | KNEM_FLAG_PINLOCAL,
		KNEM_FLAG_NOTIFY_FD | KNEM_FLAG_ASYNCDMACOMPLETE,
		KNEM_FLAG_NOTIFY_FD | KNEM_FLAG_ASYNCDMACOMPLETE | KNEM_FLAG_MEMCPYTHREAD,
	};
	uint8_t *p = km_pages(BYTES), local[64];
	int fd = kn_open();
	knem_cookie_t cookie = kn_create(fd, p, BYTES, KN_RW, 0);

	kn_array(fd, 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		KM_ERR(kn_inline_async(fd, cookie, 0, local, 64, false, bad[i], 0), EINVAL);
		KM_ERR(kn_copy(fd, cookie, 0, cookie, 0, bad[i], 0), EINVAL);
	}
}

/*
 * Memory that is only touched while copying: the copy was accepted and FAILED.
 * Memory that had to be pinned first: the call fails, EFAULT.
 */
static void faults(void)
{
	const size_t page = km_page();
	uint8_t *p = km_pages(4 * page), *hole = km_pages(4 * page);
	struct knem_cmd_inline_copy copy = {.local_iovec_nr = 1};
	int fd = kn_open();
	knem_cookie_t rw = kn_create(fd, p, 4 * page, KN_RW, 0);

	km_fill(p, 4 * page, 1);
	KM_OK(munmap(hole + 2 * page, page));
	KM_EQ(kn_inline(fd, rw, 0, hole, 4 * page, false, 0), KNEM_STATUS_FAILED);
	KM_ERR(kn_inline(fd, rw, 0, hole, 4 * page, true, 0), EFAULT);
	KM_ERR(kn_inline(fd, rw, 0, hole, 4 * page, false, KNEM_FLAG_PINLOCAL), EFAULT);
	KM_ERR(kn_inline(fd, rw, 0, hole, 4 * page, true, KNEM_FLAG_PINLOCAL), EFAULT);
	/* Past the end of all addresses; not with 32 bits. */
	if (SIZE_MAX == UINT64_MAX) {
		KM_EQ(kn_inline(fd, rw, 0, hole, SIZE_MAX, false, 0), KNEM_STATUS_FAILED);
		KM_ERR(kn_inline(fd, rw, 0, hole, SIZE_MAX, true, 0), EFAULT);
	}
	KM_EQ(km_differ(p, 4 * page, 1), 4 * page);
	/* What the copy does not reach does not matter. */
	KM_EQ(kn_inline(fd, rw, 2 * page, hole, 4 * page, false, 0), KNEM_STATUS_SUCCESS);
	KM_TRUE(!memcmp(hole, p + 2 * page, 2 * page));
	/* Only readable: a source, no target. */
	KM_OK(mprotect(hole, 2 * page, PROT_READ));
	kn_put(fd, rw, 0, hole, 2 * page);
	KM_EQ(kn_inline(fd, rw, 0, hole, page, false, 0), KNEM_STATUS_FAILED);
	KM_ERR(kn_inline(fd, rw, 0, hole, page, false, KNEM_FLAG_PINLOCAL), EFAULT);
	/* The kernel's memory is nobody's. */
	KM_TRUE(kn_inline(fd, rw, 0, km_kernel_address(), 64, false, 0) != KNEM_STATUS_SUCCESS);
	KM_TRUE(kn_inline(fd, rw, 0, km_kernel_address(), 64, true, 0) != KNEM_STATUS_SUCCESS);
	copy.remote_cookie = rw;
	KM_ERR(ioctl(fd, KNEM_CMD_INLINE_COPY, &copy), EFAULT);
	KM_ERR(ioctl(fd, KNEM_CMD_INLINE_COPY, NULL), EFAULT);
	KM_ERR(ioctl(fd, KNEM_CMD_COPY, NULL), EFAULT);
	KM_ERR(ioctl(fd, KNEM_CMD_COPY_BOUNDED, NULL), EFAULT);
	KM_ERR(ioctl(fd, KNEM_CMD_INLINE_COPY_BOUNDED, NULL), EFAULT);
}

/* No local memory at all: nothing moves, in any way of copying. */
static void no_local_segments(void)
{
	static const uint32_t flags[] = {0, KNEM_FLAG_PINLOCAL, KNEM_FLAG_DMATHREAD,
					 KNEM_FLAG_MEMCPYTHREAD};
	int fd = kn_open();
	volatile knem_status_t *slot = kn_array(fd, 4096);
	knem_cookie_t rw = kn_create(fd, km_pages(BYTES), BYTES, KN_RW, 0);

	for (uint32_t i = 0; i < 8; i++) {
		struct knem_cmd_inline_copy copy = {
			.write = i & 1,
			.remote_cookie = rw,
			.flags = flags[i / 2],
			.async_status_index = i,
		};
		struct knem_cmd_sync_recv_param recv = {.send_cookie = rw, .flags = flags[i / 2]};

		KM_OK(ioctl(fd, KNEM_CMD_INLINE_COPY, &copy));
		if (flags[i / 2] & KNEM_FLAG_ANY_ASYNC_MASK)
			KM_EQ(kn_wait(slot + i), KNEM_STATUS_SUCCESS);
		else
			KM_EQ(copy.current_status, KNEM_STATUS_SUCCESS);
		KM_OK(ioctl(fd, KNEM_CMD_SYNC_RECV, &recv));
		KM_EQ(recv.status, KNEM_STATUS_SUCCESS);
	}
}

/* More iovecs than any array has. */
static void too_many_segments(void)
{
	uint8_t local[64] = {0};
	struct knem_cmd_param_iovec iov = kn_iov(local, sizeof(local));
	struct knem_cmd_inline_copy copy = {.local_iovec_array = (uintptr_t)&iov,
					    .local_iovec_nr = UINT32_MAX};
	struct knem_cmd_sync_recv_param recv = {.recv_iovec_array = (uintptr_t)&iov,
						.recv_iovec_nr = UINT32_MAX};
	struct knem_cmd_init_send_param send = {.send_iovec_array = (uintptr_t)&iov,
						.send_iovec_nr = UINT32_MAX};
	int fd = kn_open();

	copy.remote_cookie = kn_create(fd, km_pages(BYTES), BYTES, KN_RW, 0);
	recv.send_cookie = copy.remote_cookie;
	KM_ERR(ioctl(fd, KNEM_CMD_INLINE_COPY, &copy), ENOMEM);
	KM_ERR(ioctl(fd, KNEM_CMD_SYNC_RECV, &recv), ENOMEM);
	KM_ERR(ioctl(fd, KNEM_CMD_INIT_SEND, &send), ENOMEM);
}

/* The call changes the bytes from @at to @end of *@request if it succeeds, and none if not. */
static void writes_only(int fd, unsigned long command, const void *request, size_t size, size_t at,
			size_t end, bool good)
{
	uint8_t space[64];

	memcpy(space, request, size);
	if (good)
		KM_OK(ioctl(fd, command, space));
	else
		KM_TRUE(ioctl(fd, command, space) == -1);
	for (size_t i = 0; i < size; i++)
		if (!good || i < at || i >= end)
			KM_EQ(space[i], ((const uint8_t *)request)[i]);
	/* What was there is no answer. */
	KM_TRUE(!good || at == end || memcmp(space + at, (const uint8_t *)request + at, end - at));
}

#define ANSWER(of, name) offsetof(of, name), offsetof(of, name) + sizeof(((of *)0)->name)

/* Of each request; "pad" is of the answer in none. */
static void written_back(void)
{
	uint8_t *p = km_pages(BYTES);
	struct knem_cmd_param_iovec iov = kn_iov(p, 64);
	int fd = kn_open();
	knem_cookie_t rw = kn_create(fd, p + 4096, BYTES - 4096, KN_RW, 0);

	for (int good = 0; good < 2; good++) {
		const uint64_t cookie = good ? rw : 0, array = good ? (uintptr_t)&iov : 8;
		const struct knem_cmd_create_region create = {array,	 1,	     0,
							      PROT_READ, KN_GARBAGE, KN_GARBAGE};
		const struct knem_cmd_init_send_param send = {array, 1, 0, KN_GARBAGE};
		const struct knem_cmd_copy copy = {cookie, 0,	       cookie, 4096,
						   0,	   KN_GARBAGE, 9,      KN_GARBAGE};
		const struct knem_cmd_copy_bounded bounded = {cookie,	  0, cookie,	4096, 64, 0,
							      KN_GARBAGE, 9, KN_GARBAGE};
		const struct knem_cmd_inline_copy in = {array, 1,	   0, cookie,	 0,
							0,     KN_GARBAGE, 9, KN_GARBAGE};
		const struct knem_cmd_inline_copy_bounded in_bounded = {
			array, 1, 0, cookie, 0, 64, 0, KN_GARBAGE, 9, KN_GARBAGE};
		const struct knem_cmd_sync_recv_param recv = {array,  1, KN_GARBAGE,
							      cookie, 0, KN_GARBAGE};
		const struct knem_cmd_bind_offload bind = {good ? KNEM_BIND_FLAG_CURRENT : 0, 1, 0};

		writes_only(fd, KNEM_CMD_CREATE_REGION, &create, sizeof(create),
			    ANSWER(struct knem_cmd_create_region, cookie), good);
		writes_only(fd, KNEM_CMD_INIT_SEND, &send, sizeof(send),
			    ANSWER(struct knem_cmd_init_send_param, send_cookie), good);
		writes_only(fd, KNEM_CMD_COPY, &copy, sizeof(copy),
			    ANSWER(struct knem_cmd_copy, current_status), good);
		writes_only(fd, KNEM_CMD_COPY_BOUNDED, &bounded, sizeof(bounded),
			    ANSWER(struct knem_cmd_copy_bounded, current_status), good);
		writes_only(fd, KNEM_CMD_INLINE_COPY, &in, sizeof(in),
			    ANSWER(struct knem_cmd_inline_copy, current_status), good);
		writes_only(fd, KNEM_CMD_INLINE_COPY_BOUNDED, &in_bounded, sizeof(in_bounded),
			    ANSWER(struct knem_cmd_inline_copy_bounded, current_status), good);
		writes_only(fd, KNEM_CMD_SYNC_RECV, &recv, sizeof(recv),
			    ANSWER(struct knem_cmd_sync_recv_param, status), good);
		writes_only(fd, KNEM_CMD_BIND_OFFLOAD, &bind, sizeof(bind), 0, 0, good);
	}
}

/* A synchronous copy never writes a slot: MPICH looks at it after both kinds. */
static void slot_untouched(void)
{
	uint8_t *p = km_pages(BYTES), local[64];
	int fd = kn_open();
	knem_cookie_t cookie = kn_create(fd, p, BYTES, KN_RW, 0);
	volatile knem_status_t *slot = kn_array(fd, 4096);

	KM_EQ(kn_inline_async(fd, cookie, 0, local, 64, false, 0, 0), KNEM_STATUS_SUCCESS);
	KM_EQ(kn_inline_async(fd, cookie, 0, local, 64, true, KNEM_FLAG_PINLOCAL, 0),
	      KNEM_STATUS_SUCCESS);
	KM_EQ(kn_copy_bounded(fd, cookie, 0, cookie, 128, 64, 0, 0), KNEM_STATUS_SUCCESS);
	KM_EQ(slot[0], KNEM_STATUS_PENDING);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "lengths", .run = lengths},
		{.name = "unbounded_copy", .run = unbounded_copy},
		{.name = "scattered", .run = scattered},
		{.name = "flags", .run = flags},
		{.name = "dma", .run = dma},
		{.name = "notify_needs_thread", .run = notify_needs_thread},
		{.name = "faults", .run = faults},
		{.name = "no_local_segments", .run = no_local_segments},
		{.name = "too_many_segments", .run = too_many_segments},
		{.name = "written_back", .run = written_back},
		{.name = "slot_untouched", .run = slot_untouched},
		{0},
	};

	return km_main(cases, argc, argv);
}
