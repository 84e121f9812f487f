// SPDX-License-Identifier: BSD-3-Clause
/* /dev/knem: the status array, copies that end later, and their order. */
#include "knem.h"

#define BYTES (1 << 20)

/* Bits that must not change what an asynchronous copy does. */
#define NOISE (KNEM_FLAG_PINLOCAL | KNEM_FLAG_SINGLEUSE)

static void array_limits(void)
{
	const size_t page = km_page();
	uint8_t *p = km_pages(page), local[8];
	int fd = kn_open(), other;
	volatile knem_status_t *slot;
	knem_cookie_t cookie = kn_create(fd, p, page, PROT_READ, 0);

	KM_ERR((intptr_t)mmap(NULL, page, KN_RW, MAP_SHARED, fd, page), EINVAL);
	KM_ERR((intptr_t)mmap(NULL, (1ull << 32) + 1, KN_RW, MAP_SHARED, fd, 0), EINVAL);
	slot = kn_array(fd, 45);
	/* Slots of the whole page, all pending. */
	for (size_t i = 0; i < page; i++)
		KM_EQ(slot[i], KNEM_STATUS_PENDING);
	KM_TRUE(kn_inline_async(fd, cookie, 0, local, 8, false, KNEM_FLAG_MEMCPYTHREAD, page - 1) >=
		0);
	KM_EQ(kn_wait(slot + page - 1), KNEM_STATUS_SUCCESS);
	KM_ERR(kn_inline_async(fd, cookie, 0, local, 8, false, KNEM_FLAG_MEMCPYTHREAD, page),
	       EINVAL);
	/* Once in the life of the open file. */
	KM_ERR((intptr_t)mmap(NULL, page, KN_RW, MAP_SHARED, fd, 0), EBUSY);
	KM_OK(munmap((void *)slot, page));
	KM_ERR((intptr_t)mmap(NULL, page, KN_RW, MAP_SHARED, fd, 0), EBUSY);
	/* The array is there without its mapping. */
	KM_TRUE(kn_inline_async(fd, cookie, 0, local, 8, false, KNEM_FLAG_MEMCPYTHREAD, 0) >= 0);
	other = kn_open();
	slot = kn_array(other, 3 * page + 1);
	KM_TRUE(kn_inline_async(other, cookie, 0, local, 8, false, KNEM_FLAG_DMATHREAD,
				4 * page - 1) >= 0);
	KM_EQ(slot[4 * page - 1], KNEM_STATUS_SUCCESS);
	KM_ERR(kn_inline_async(other, cookie, 0, local, 8, false, KNEM_FLAG_DMATHREAD, 4 * page),
	       EINVAL);
}

/* As many slots as there are indexes; their memory comes with use. */
static void whole_array(void)
{
	uint8_t *p = km_pages(km_page()), local[8];
	int fd = kn_open();
	volatile knem_status_t *slot = kn_array(fd, 1ull << 32);
	knem_cookie_t cookie = kn_create(fd, p, km_page(), PROT_READ, 0);

	for (uint32_t i = 5; i; i = i < UINT32_MAX ? UINT32_MAX : 0) {
		KM_OK(kn_inline_async(fd, cookie, 0, local, 8, false, KNEM_FLAG_MEMCPYTHREAD, i));
		KM_EQ(kn_wait(slot + i), KNEM_STATUS_SUCCESS);
	}
	KM_EQ(slot[UINT32_MAX - 1], KNEM_STATUS_PENDING);
}

/* Any asynchronous bit asks for the array, before any cookie is looked at. */
static void needs_array(void)
{
	static const uint32_t bits[] = {KNEM_FLAG_ASYNCDMACOMPLETE, KNEM_FLAG_DMATHREAD,
					KNEM_FLAG_MEMCPYTHREAD, KNEM_FLAG_ANY_ASYNC_MASK};
	uint8_t *p = km_pages(BYTES), local[64];
	int fd = kn_open();
	knem_cookie_t once = kn_create(fd, p, BYTES, PROT_READ, KNEM_FLAG_SINGLEUSE);
	knem_cookie_t dst = kn_create(fd, local, 64, KN_RW, 0);

	for (int i = 0; i < 4; i++) {
		KM_ERR(kn_inline_async(fd, once, 0, local, 64, false, bits[i], 0), EINVAL);
		KM_ERR(kn_copy(fd, once, 0, dst, 0, bits[i], 0), EINVAL);
	}
	kn_array(fd, km_page());
	for (int i = 0; i < 4; i++)
		KM_ERR(kn_copy(fd, once, 0, dst, 0, bits[i], UINT32_MAX), EINVAL);
	/* Still there. */
	KM_EQ(kn_copy(fd, once, 0, dst, 0, 0, 0), KNEM_STATUS_SUCCESS);
}

/* The thread: PENDING or not at first, the slot changes when the data is there. */
static void thread(void)
{
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int fd = kn_open();
	volatile knem_status_t *slot = kn_array(fd, 4096);
	knem_cookie_t src = kn_create(fd, p, BYTES, PROT_READ, 0);
	knem_cookie_t dst = kn_create(fd, q, BYTES, KN_RW, 0);

	for (int i = 0; i < 24; i++) {
		const uint32_t flags = KNEM_FLAG_MEMCPYTHREAD | (i & 1 ? NOISE : 0) |
				       (i & 2 ? KNEM_FLAG_DMATHREAD : 0) |
				       (i & 4 ? KNEM_FLAG_ASYNCDMACOMPLETE : 0);
		int now;

		km_fill(p, BYTES, i);
		memset(q, 0, BYTES);
		if (i % 3 == 0)
			now = kn_inline_async(fd, src, 0, q, BYTES, false, flags, i);
		else if (i % 3 == 1)
			now = kn_copy(fd, src, 0, dst, 0, flags, i);
		else
			now = kn_inline_async(fd, dst, 0, p, BYTES, true, flags, i);
		KM_TRUE(now == KNEM_STATUS_PENDING || now == KNEM_STATUS_SUCCESS);
		if (now != KNEM_STATUS_PENDING)
			KM_EQ(slot[i], now);
		KM_EQ(kn_wait(slot + i), KNEM_STATUS_SUCCESS);
		KM_EQ(km_differ(q, BYTES, i), BYTES);
	}
	KM_EQ(slot[24], KNEM_STATUS_PENDING);
}

/* Bits 0x2 and 0x4 alone: the copy ends in the call, told in both places. */
static void in_the_call(void)
{
	static const uint32_t bits[] = {
		KNEM_FLAG_ASYNCDMACOMPLETE,
		KNEM_FLAG_DMATHREAD,
		KNEM_FLAG_ASYNCDMACOMPLETE | KNEM_FLAG_DMATHREAD,
		KNEM_FLAG_DMATHREAD | NOISE,
	};
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int fd = kn_open();
	volatile knem_status_t *slot = kn_array(fd, 4096);
	knem_cookie_t src = kn_create(fd, p, BYTES, PROT_READ, 0);

	for (int i = 0; i < 4; i++) {
		km_fill(p, BYTES, i);
		KM_EQ(kn_inline_async(fd, src, 0, q, BYTES, false, bits[i], i),
		      KNEM_STATUS_SUCCESS);
		KM_EQ(slot[i], KNEM_STATUS_SUCCESS);
		KM_EQ(km_differ(q, BYTES, i), BYTES);
	}
	/* Fails in the call, told in both places too. */
	KM_EQ(kn_inline_async(fd, src, 0, (void *)8, 64, false, bits[0], 7), KNEM_STATUS_FAILED);
	KM_EQ(slot[7], KNEM_STATUS_FAILED);
	/* Nothing to move is a success like any other. */
	KM_EQ(kn_inline_async(fd, src, BYTES, q, 64, false, bits[0], 8), KNEM_STATUS_SUCCESS);
	KM_EQ(slot[8], KNEM_STATUS_SUCCESS);
}

static void thread_errors(void)
{
	const uint32_t flags = KNEM_FLAG_MEMCPYTHREAD;
	uint8_t *p = km_pages(BYTES), local[64];
	int fd = kn_open(), now;
	volatile knem_status_t *slot = kn_array(fd, 4096);
	knem_cookie_t src = kn_create(fd, p, BYTES, PROT_READ, 0);

	/* The thread has no address space of ours: local memory is pinned, or EFAULT. */
	KM_ERR(kn_inline_async(fd, src, 0, (void *)8, 64, false, flags, 0), EFAULT);
	KM_ERR(kn_inline_async(fd, 0, 0, local, 64, false, flags, 0), EINVAL);
	KM_ERR(kn_inline_async(fd, src, 0, local, 64, true, flags, 0), EACCES);
	KM_EQ(slot[0], KNEM_STATUS_PENDING);
	/* Zero bytes, one of the original's bugs: current_status agrees with the slot. */
	now = kn_inline_async(fd, src, BYTES, local, 64, false, flags, 1);
	if (now != KNEM_STATUS_PENDING)
		KM_EQ(slot[1], now);
	KM_EQ(kn_wait(slot + 1), KNEM_STATUS_SUCCESS);
	KM_OK(now);
}

/* One thread, first in first out: a slot is never done before those ahead of it. */
static void order(void)
{
	enum { N = 300 };
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int fd = kn_open();
	volatile knem_status_t *slot = kn_array(fd, 4096);
	knem_cookie_t src = kn_create(fd, p, BYTES, PROT_READ, 0);
	uint64_t seed = km_seed();
	int done = 0;

	km_fill(p, BYTES, 5);
	for (int i = 0; i < N; i++) {
		/* Long ones before short ones. */
		size_t len = i % 7 ? km_below(&seed, 5000) : BYTES;

		KM_OK(kn_inline_async(fd, src, 0, q, len, false, KNEM_FLAG_MEMCPYTHREAD, i));
	}
	while (done < N) {
		/* From the back: what is seen done has everything before it done. */
		for (int i = N - 1; i >= done; i--) {
			if (slot[i] == KNEM_STATUS_PENDING)
				continue;
			for (int j = done; j <= i; j++)
				KM_EQ(slot[j], KNEM_STATUS_SUCCESS);
			done = i + 1;
		}
	}
	KM_EQ(km_differ(q, BYTES, 5), BYTES);
}

/*
 * A peer's region destroyed while copies use it: those that had begun end well, with its
 * bytes, the others fail.
 */
static void destroyed_under_way(void)
{
	enum { N = 32 };
	uint8_t *p = km_pages(BYTES), *q = km_pages(N * 4096);
	int fd = kn_open(), owner = kn_open();
	volatile knem_status_t *slot = kn_array(fd, 4096);
	knem_cookie_t src = kn_create(owner, p, BYTES, PROT_READ, 0);

	km_fill(p, BYTES, 6);
	for (int i = 0; i < N; i++)
		KM_OK(kn_inline_async(fd, src, 0, q + i * 4096, 4096, false, KNEM_FLAG_MEMCPYTHREAD,
				      i));
	KM_OK(kn_destroy(owner, src));
	KM_OK(close(owner));
	KM_OK(munmap(p, BYTES));
	KM_ERR(kn_inline(fd, src, 0, q, 8, false, 0), EINVAL);
	for (int i = 0; i < N; i++) {
		if (kn_wait(slot + i) == KNEM_STATUS_SUCCESS)
			KM_EQ(km_differ(q + i * 4096, 4096, 6), 4096);
		else
			KM_EQ(slot[i], KNEM_STATUS_FAILED);
	}
}

/* One's own: copies of it that wait for their turn are made. */
static void own_destroyed_under_way(void)
{
	enum { N = 32 };
	uint8_t *p = km_pages(BYTES), *q = km_pages(N * 4096);
	int fd = kn_open();
	volatile knem_status_t *slot = kn_array(fd, 4096);
	knem_cookie_t src = kn_create(fd, p, BYTES, PROT_READ, 0);

	km_fill(p, BYTES, 6);
	for (int i = 0; i < N; i++)
		KM_OK(kn_inline_async(fd, src, 0, q + i * 4096, 4096, false, KNEM_FLAG_MEMCPYTHREAD,
				      i));
	KM_OK(kn_destroy(fd, src));
	KM_OK(munmap(p, BYTES));
	KM_ERR(kn_inline(fd, src, 0, q, 8, false, 0), EINVAL);
	for (int i = 0; i < N; i++) {
		KM_EQ(kn_wait(slot + i), KNEM_STATUS_SUCCESS);
		KM_EQ(km_differ(q + i * 4096, 4096, 6), 4096);
	}
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "array_limits", .run = array_limits},
		{.name = "whole_array", .run = whole_array},
		{.name = "needs_array", .run = needs_array},
		{.name = "thread", .run = thread},
		{.name = "in_the_call", .run = in_the_call},
		{.name = "thread_errors", .run = thread_errors},
		{.name = "order", .run = order},
		{.name = "destroyed_under_way", .run = destroyed_under_way},
		{.name = "own_destroyed_under_way", .run = own_destroyed_under_way},
		{0},
	};

	return km_main(cases, argc, argv);
}
