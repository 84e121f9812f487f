// SPDX-License-Identifier: BSD-3-Clause
/*
 * /dev/onecopy against a process that wants what it was not given: guessed
 * cookies, other users' regions, bytes beside a region, descriptors closed and
 * used again, mappings kept after their end.
 */
#include "dev.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#define SECRET 0x5ec2e7

static size_t page;

static bool any_access(int fd, uint64_t cookie)
{
	struct onecopy_region_info info;
	struct onecopy_map map;
	uint8_t local[64];

	return dv_read(fd, cookie, 0, local, sizeof(local)) != -1 ||
	       dv_write(fd, cookie, 0, local, sizeof(local)) != -1 ||
	       !dv_map_try(fd, cookie, 0, page, ONECOPY_MAP_READ, &map) ||
	       !dv_region_info(fd, cookie, &info) || !dv_destroy(fd, cookie);
}

/* Random ones, and all that look like our own. */
static void guessed_cookies(void)
{
	unsigned long tries = km_scaled(40000);
	uint64_t seed = km_seed(), own[32], victim[32];
	uint8_t *p = km_pages(page);
	int fd = dv_open(), theirs = dv_open();

	km_fill(p, page, SECRET);
	for (int i = 0; i < 32; i++) {
		own[i] = dv_create(fd, p, page, DV_RW);
		victim[i] = dv_create(theirs, p, page, DV_RW | ONECOPY_REGION_ANY_USER);
	}
	for (unsigned long i = 0; i < tries; i++) {
		uint64_t guess = own[i % 32];
		bool hit = false;

		switch (i % 4) {
		case 0:
			guess = random_next(&seed);
			break;
		case 1:
			guess ^= 1ull << km_below(&seed, 64);
			break;
		case 2:
			guess += km_below(&seed, 512) - 256;
			break;
		default:
			/* Halves of two of ours. */
			guess = (guess & 0xffffffff) | (own[km_below(&seed, 32)] & ~0xffffffffull);
		}
		for (int j = 0; j < 32; j++)
			hit |= guess == own[j];
		if (hit)
			continue;
		for (int j = 0; j < 32; j++)
			KM_TRUE(guess != victim[j]);
		KM_TRUE(!any_access(fd, guess));
	}
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* One cookie says nothing about the next: no step between them repeats, no half is constant. */
static void cookies_unrelated(void)
{
	enum { N = 4096 };
	static uint64_t step[N], high[N];
	uint8_t *p = km_pages(page);
	int fd = dv_open(), same_step = 0, same_high = 0;
	uint64_t last = dv_create(fd, p, 1, DV_RO);

	for (int i = 0; i < N; i++) {
		uint64_t cookie = dv_create(fd, p, 1, DV_RO);

		step[i] = cookie - last;
		high[i] = cookie >> 32;
		last = cookie;
	}
	qsort(step, N, sizeof(*step), compare);
	qsort(high, N, sizeof(*high), compare);
	for (int i = 1; i < N; i++) {
		same_step += step[i] == step[i - 1];
		same_high += high[i] == high[i - 1];
	}
	/* 4096 draws of 2^32 repeat once in 500 runs. */
	KM_EQ(same_step, 0);
	KM_TRUE(same_high < 4);
}

/* Every offset and length around the edges of a region inside a page of secrets. */
static void bytes_beside(void)
{
	uint8_t *p = km_pages(3 * page), *got = km_pages(4 * page);
	const size_t at = page - 50, bytes = 100;
	int fd = dv_open();
	uint64_t cookie = dv_create(fd, p + at, bytes, DV_RW);
	struct onecopy_map map;

	km_fill(p, 3 * page, SECRET);
	for (uint64_t off = 0; off < 3 * page; off += off < 120 ? 1 : 511) {
		size_t n = off < bytes ? bytes - off : 0;

		memset(got, 0, 4 * page);
		KM_EQ(dv_read(fd, cookie, off, got, 4 * page), n);
		KM_TRUE(!memcmp(got, p + at + off, n));
		for (size_t i = n; i < n + 200; i++)
			KM_EQ(got[i], 0);
		KM_ERR(dv_map_try(fd, cookie, off, 1, ONECOPY_MAP_READ, &map),
		       off < bytes ? EOPNOTSUPP : ERANGE);
		memset(got, 0xab, 4 * page);
		KM_EQ(dv_write(fd, cookie, off, got, 4 * page), n);
	}
	/* Offsets that wrap. */
	KM_EQ(dv_read(fd, cookie, UINT64_MAX - 10, got, 100), 0);
	KM_EQ(dv_write(fd, cookie, -(uint64_t)at, got, page), 0);
	for (size_t i = 0; i < bytes; i++)
		KM_EQ(p[at + i], 0xab);
	km_fill(got, 3 * page, SECRET);
	KM_TRUE(!memcmp(p, got, at));
	KM_TRUE(!memcmp(p + at + bytes, got + at + bytes, 3 * page - at - bytes));
}

/* Root inside a user namespace of one's own is still the user one was. */
static void user_namespace(void)
{
	uint8_t *p = km_pages(page);
	int fd = dv_open(), theirs = dv_open();
	uint64_t cookie = dv_create(theirs, p, page, DV_RW);
	char map[32];

	km_drop(KM_OTHER_USER);
	if (unshare(CLONE_NEWUSER))
		km_skip("no user namespaces here: %s", strerror(errno));
	/* Its files in /proc are root's since the credentials changed. */
	KM_OK(prctl(PR_SET_DUMPABLE, 1));
	snprintf(map, sizeof(map), "0 %d 1", KM_OTHER_USER);
	KM_TRUE(km_write_text("/proc/self/uid_map", map));
	KM_EQ(getuid(), 0);
	KM_TRUE(!any_access(fd, cookie));
	KM_ERR(dv_read(fd, cookie, 0, map, 8), EPERM);
}

/* Descriptors come back by number, not by what they were. */
static void descriptors(void)
{
	uint8_t *p = km_pages(page), local[8];
	int fd = dv_open(), peer = dv_open();

	for (int i = 0; i < 200; i++) {
		uint64_t cookie = dv_create(fd, p, page, DV_RW);
		struct onecopy_map map;
		int again;

		KM_OK(dv_map_try(fd, cookie, 0, page, ONECOPY_MAP_READ, &map));
		KM_OK(close(fd));
		KM_ERR(dv_destroy(fd, cookie), EBADF);
		again = dv_open();
		KM_EQ(again, fd);
		KM_TRUE(!any_access(fd, cookie));
		KM_ERR(dv_read(peer, cookie, 0, local, 8), ENOENT);
		KM_ERR((intptr_t)mmap(NULL, page, PROT_READ, MAP_SHARED, fd, map.map_offset),
		       EINVAL);
	}
	/* A file that is no device of ours. */
	fd = open("/dev/null", O_RDWR);
	KM_TRUE(dv_destroy(fd, 1) == -1 && errno == ENOTTY);
}

/* No offset shows anything that was not asked for. */
static void unasked_offsets(void)
{
	unsigned long tries = km_scaled(20000);
	uint64_t seed = km_seed();
	int fd = dv_open(), theirs = dv_open();
	uint8_t *p = km_pages(64 * page);
	uint64_t cookie = dv_create(theirs, p, 64 * page, DV_RW);
	struct onecopy_map map;

	for (int i = 0; i < 50; i++)
		KM_OK(dv_map_try(theirs, cookie, i * page, page, ONECOPY_MAP_READ, &map));
	for (unsigned long i = 0; i < tries; i++) {
		uint64_t off = random_next(&seed) >> (16 + km_below(&seed, 36)) << 12;

		if (i & 1)
			off = map.map_offset + (km_below(&seed, 4096) - 2048) * page;
		KM_TRUE(mmap(NULL, page, PROT_READ, MAP_SHARED, fd, off) == MAP_FAILED ||
			off == ONECOPY_MMAP_GENERATIONS);
	}
}

/* Another process's mapping, after the owner destroyed the region and reused the memory. */
static void kept_mapping(void)
{
	uint8_t *p = km_pages(16 * page);
	int fd = dv_open(), ready[2], done[2];
	uint64_t cookie = dv_create(fd, p, 16 * page, DV_RW);
	char byte;
	pid_t pid;

	km_fill(p, 16 * page, 1);
	KM_OK(pipe(ready));
	KM_OK(pipe(done));
	pid = km_fork();
	if (pid == 0) {
		uint8_t *m = dv_map(dv_open(), cookie, 0, 16 * page,
				    ONECOPY_MAP_READ | ONECOPY_MAP_WRITE);

		KM_TRUE(m != MAP_FAILED);
		KM_EQ(km_differ(m, 16 * page, 1), 16 * page);
		KM_EQ(write(ready[1], "", 1), 1);
		KM_EQ(read(done[0], &byte, 1), 1);
		for (int i = 0; i < 16; i++) {
			KM_EQ(km_touch(m + i * page, true), SIGBUS);
			KM_EQ(km_touch(m + i * page, false), SIGBUS);
		}
		_exit(0);
	}
	KM_EQ(read(ready[0], &byte, 1), 1);
	KM_OK(dv_destroy(fd, cookie));
	km_fill(p, 16 * page, SECRET);
	KM_EQ(write(done[1], "", 1), 1);
	km_join(pid);
	KM_EQ(km_differ(p, 16 * page, SECRET), 16 * page);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "guessed_cookies", .run = guessed_cookies},
		{.name = "cookies_unrelated", .run = cookies_unrelated},
		{.name = "bytes_beside", .run = bytes_beside},
		{.name = "user_namespace", .run = user_namespace},
		{.name = "descriptors", .run = descriptors},
		{.name = "unasked_offsets", .run = unasked_offsets},
		{.name = "kept_mapping", .run = kept_mapping},
		{0},
	};

	page = km_page();
	return km_main(cases, argc, argv);
}
