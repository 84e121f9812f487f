// SPDX-License-Identifier: BSD-3-Clause
/* /dev/knem: the loads KNEM's own test suite puts on it: many files, many regions, much memory. */
#include "knem.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static void raise_files(rlim_t n)
{
	struct rlimit limit = {n, n};

	if (setrlimit(RLIMIT_NOFILE, &limit))
		km_skip("no %lu descriptors here", (unsigned long)n);
}

/* A thousand contexts, each with a region that the others use. */
static void files(void)
{
	enum { N = 1000 };
	static int fd[N];
	static knem_cookie_t cookie[N];
	uint8_t *p = km_pages(km_page()), local[64];

	raise_files(N + 100);
	km_fill(p, km_page(), 1);
	for (int i = 0; i < N; i++) {
		fd[i] = kn_open();
		cookie[i] = kn_create(fd[i], p, 64, PROT_READ, 0);
	}
	for (int i = 0; i < N; i++) {
		kn_get(fd[i], cookie[(i * 7 + 1) % N], 0, local, 64);
		KM_EQ(km_differ(local, 64, 1), 64);
	}
	for (int i = 0; i < N; i += 2)
		KM_OK(close(fd[i]));
	for (int i = 0; i < N; i++) {
		if (i & 1)
			kn_get(fd[1], cookie[i], 0, local, 64);
		else
			KM_ERR(kn_inline(fd[1], cookie[i], 0, local, 64, false, 0), EINVAL);
	}
}

/* 100,000 regions on one file: all to be found, destroyed in another order. */
static void regions(void)
{
	const size_t n = km_slow() ? 20000 : 100000;
	knem_cookie_t *cookie = calloc(n, sizeof(*cookie));
	uint8_t *p = km_pages(km_page()), local[8];
	int fd = km_open_unlimited(kn_open);
	uint64_t seed = km_seed();

	KM_TRUE(cookie != NULL);
	for (size_t i = 0; i < n; i++)
		cookie[i] = kn_create(fd, p, 8, PROT_READ, 0);
	for (size_t i = n - 1; i > 0; i--) {
		size_t j = km_below(&seed, i + 1);
		knem_cookie_t swap = cookie[i];

		cookie[i] = cookie[j];
		cookie[j] = swap;
	}
	for (size_t i = 0; i < n / 2; i++) {
		kn_get(fd, cookie[i], 0, local, 8);
		KM_OK(kn_destroy(fd, cookie[i]));
		KM_ERR(kn_inline(fd, cookie[i], 0, local, 8, false, 0), EINVAL);
	}
	/* The rest goes with the file. */
}

/* 65,536 pages, each a region; every one shows its own page. */
static void page_regions(void)
{
	const size_t n = km_slow() ? 8192 : 65536, page = km_page();
	knem_cookie_t *cookie = calloc(n, sizeof(*cookie));
	uint8_t *p = km_pages(n * page);
	int fd = km_open_unlimited(kn_open);

	for (size_t i = 0; i < n; i++) {
		*(uint64_t *)(p + i * page + 40) = i;
		cookie[i] = kn_create(fd, p + i * page, page, KN_RW, 0);
	}
	for (size_t i = 0; i < n; i += 13) {
		uint64_t got = 0;

		kn_get(fd, cookie[i], 40, &got, sizeof(got));
		KM_EQ(got, i);
		got = ~got;
		kn_put(fd, cookie[i], 48, &got, sizeof(got));
		KM_EQ(*(uint64_t *)(p + i * page + 48), ~(uint64_t)i);
	}
}

/* 256 MiB pinned at once, under the usual limit of locked memory. */
static void much_memory(void)
{
	const size_t bytes = km_slow() ? 64 << 20 : 256 << 20;
	struct rlimit limit = {8 << 20, 8 << 20};
	uint8_t *p = km_pages(bytes), *q = km_pages(bytes);
	int fd = km_open_unlimited(kn_open);
	knem_cookie_t cookie;

	KM_OK(setrlimit(RLIMIT_MEMLOCK, &limit));
	if (geteuid() == 0)
		km_drop(KM_OTHER_USER);
	km_fill(p, bytes, 3);
	cookie = kn_create(fd, p, bytes, KN_RW, KNEM_FLAG_ANY_USER_ACCESS);
	kn_get(fd, cookie, 0, q, bytes);
	KM_TRUE(!memcmp(p, q, bytes));
	memset(q, 0x3c, 1 << 20);
	kn_put(fd, cookie, bytes - (1 << 20), q, 1 << 20);
	KM_EQ(p[bytes - 1], 0x3c);
	KM_EQ(p[bytes - (1 << 20) - 1], q[bytes - (1 << 20) - 1]);
}

/* Every mixture of flags, -F 63 of the suite: accepted, right, in the one place or the other. */
static void flag_mixtures(void)
{
	const size_t bytes = 100000;
	uint8_t *p = km_pages(bytes), *q = km_pages(bytes);
	int fd = kn_open();
	volatile knem_status_t *slot = kn_array(fd, 4096);
	knem_cookie_t cookie = kn_create(fd, p, bytes, KN_RW, 0);
	bool dma = kn_has_dma(fd);

	for (uint32_t flags = 0; flags < 64; flags++) {
		int now;

		if ((flags & KNEM_FLAG_DMA) && !dma)
			continue;
		for (int write = 0; write < 2; write++) {
			uint8_t *from = write ? q : p, *to = write ? p : q;

			km_fill(from, bytes, flags + 1);
			memset(to, 0, bytes);
			slot[flags] = KNEM_STATUS_PENDING;
			now = kn_inline_async(fd, cookie, 0, q, bytes, write, flags, flags);
			if (now == KNEM_STATUS_PENDING)
				now = kn_wait(slot + flags);
			KM_EQ(now, KNEM_STATUS_SUCCESS);
			KM_EQ(slot[flags], flags & KNEM_FLAG_ANY_ASYNC_MASK ? KNEM_STATUS_SUCCESS
									    : KNEM_STATUS_PENDING);
			KM_EQ(km_differ(to, bytes, flags + 1), bytes);
		}
	}
}

/* Two files of two users of the cookie: used through one, then void through both. */
static void two_files(void)
{
	uint8_t *p = km_pages(4096), local[64];
	int a = kn_open(), b = kn_open();
	knem_cookie_t cookie = kn_create(a, p, 4096, PROT_READ, KNEM_FLAG_SINGLEUSE);

	kn_get(b, cookie, 0, local, 64);
	KM_ERR(kn_inline(a, cookie, 0, local, 64, false, 0), EINVAL);
	KM_ERR(kn_inline(b, cookie, 0, local, 64, false, 0), EINVAL);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "files", .run = files},
		{.name = "regions", .run = regions, .limit = 60},
		{.name = "page_regions", .run = page_regions, .limit = 60},
		{.name = "much_memory", .run = much_memory, .limit = 60},
		{.name = "flag_mixtures", .run = flag_mixtures},
		{.name = "two_files", .run = two_files},
		{0},
	};

	return km_main(cases, argc, argv);
}
