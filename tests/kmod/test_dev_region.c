// SPDX-License-Identifier: BSD-3-Clause
/* /dev/onecopy: regions: every error of creating, finding and destroying one; limits. */
#include "dev.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define BYTES 40000

static int create1(int fd, const void *p, uint64_t bytes, uint32_t flags)
{
	struct onecopy_segment seg = dv_seg(p, bytes);
	uint64_t cookie;

	return dv_create_try(fd, &seg, 1, flags, &cookie);
}

static void info(void)
{
	const size_t page = km_page();
	int fd = dv_open();
	struct onecopy_info i = dv_info(fd), after;

	KM_EQ(i.page_size, page);
	KM_EQ(i.features & ~0x1full, 0);
	KM_TRUE(i.features & ONECOPY_FEATURE_MAP && i.features & ONECOPY_FEATURE_ASYNC);
	KM_TRUE(i.max_segments >= 1024 && i.max_slots >= 1024);
	KM_TRUE(!(i.features & ONECOPY_FEATURE_TRACK) || i.generation_slots);
	dv_create(fd, km_pages(3 * page), 3 * page, DV_RO);
	after = dv_info(fd);
	KM_EQ(after.pinned_bytes - i.pinned_bytes, 3 * page);
}

static void create_errors(void)
{
	const size_t page = km_page();
	uint8_t *p = km_pages(4 * page);
	int fd = dv_open();
	uint32_t max = dv_info(fd).max_segments;
	struct onecopy_segment *many = calloc(max + 1, sizeof(*many));
	uint64_t cookie;

	KM_TRUE(many != NULL);
	KM_ERR(dv_create_try(fd, NULL, 1, DV_RW, &cookie), EFAULT);
	KM_ERR(dv_create_try(fd, (void *)8, 3, DV_RW, &cookie), EFAULT);
	KM_ERR(create1(fd, (void *)page, page, DV_RO), EFAULT);
	KM_ERR(create1(fd, (void *)(uintptr_t)0xffffffff81000000, 8, DV_RO), EFAULT);
	KM_ERR(create1(fd, p, UINT64_MAX - 8, DV_RO), EOVERFLOW);
	KM_ERR(create1(fd, (void *)(UINTPTR_MAX - 8), 64, DV_RO), EOVERFLOW);
	KM_ERR(create1(fd, p, page << 32, DV_RO), EOVERFLOW);
	KM_ERR(dv_create_try(fd, many, max + 1, DV_RW, &cookie), E2BIG);
	KM_ERR(dv_create_try(fd, many, UINT32_MAX, DV_RW, &cookie), E2BIG);
	KM_OK(dv_create_try(fd, many, max, DV_RW, &cookie));
	KM_OK(munmap(p + 2 * page, page));
	KM_ERR(create1(fd, p, 4 * page, DV_RO), EFAULT);
	KM_OK(mprotect(p, page, PROT_READ));
	KM_ERR(create1(fd, p, 2 * page, DV_RW), EFAULT);
	KM_ERR(create1(fd, p, 2 * page, ONECOPY_REGION_WRITE), EFAULT);
	KM_OK(create1(fd, p, 2 * page, DV_RO));
	KM_OK(mprotect(p, page, PROT_NONE));
	KM_ERR(create1(fd, p, 2 * page, DV_RO), EFAULT);
	/* A segment that cannot be pinned gives back those before it. */
	for (int i = 0; i < 8; i++)
		many[i] = dv_seg(p + page, page);
	many[8] = dv_seg(p, page);
	KM_ERR(dv_create_try(fd, many, 9, DV_RW, &cookie), EFAULT);
}

/* What REGION_INFO says of segments, pages, runs. */
static void region_info(void)
{
	const size_t page = km_page();
	uint8_t *p = km_pages(8 * page);
	struct onecopy_segment segs[] = {dv_seg(p + 10, 100), dv_seg(NULL, 0),
					 dv_seg(p + page - 1, 2), dv_seg(p + 4 * page, 1)};
	struct onecopy_region_info i;
	uint64_t cookie;
	int fd = dv_open();

	KM_OK(dv_create_try(fd, segs, 4, DV_RO | ONECOPY_REGION_ANY_USER, &cookie));
	KM_OK(dv_region_info(fd, cookie, &i));
	KM_EQ(i.length, 103);
	KM_EQ(i.region_flags, DV_RO | ONECOPY_REGION_ANY_USER);
	KM_TRUE(i.nr_segments == 3 || i.nr_segments == 4);
	/* A page that two segments share may be pinned once or twice. */
	KM_TRUE(i.nr_pages == 3 || i.nr_pages == 4);
	KM_TRUE(i.nr_runs >= 1 && i.nr_runs <= i.nr_pages);
	KM_OK(dv_create_try(fd, NULL, 0, DV_RO, &cookie));
	KM_OK(dv_region_info(fd, cookie, &i));
	KM_EQ(i.length, 0);
	KM_EQ(i.nr_pages, 0);
	/* A protection is not needed to ask. */
	cookie = dv_create(fd, p, page, 0);
	KM_OK(dv_region_info(fd, cookie, &i));
	KM_ERR(dv_region_info(fd, 0, &i), ENOENT);
	KM_ERR(dv_region_info(fd, cookie + 1, &i), ENOENT);
}

static void destroyed(void)
{
	uint8_t *p = km_pages(BYTES), local[64];
	struct onecopy_region_info i;
	int fd = dv_open(), other = dv_open();
	uint64_t cookie = dv_create(fd, p, BYTES, DV_RW), live = dv_create(fd, p, BYTES, DV_RW);

	KM_ERR(dv_destroy(other, cookie), ENOENT);
	KM_EQ(dv_read(other, cookie, 0, local, 64), 64);
	KM_OK(dv_destroy(fd, cookie));
	KM_ERR(dv_destroy(fd, cookie), ENOENT);
	KM_ERR(dv_read(other, cookie, 0, local, 64), ENOENT);
	KM_ERR(dv_region_info(other, cookie, &i), ENOENT);
	KM_ERR(dv_copy(fd, cookie, 0, live, 0, 8), ENOENT);
	KM_ERR(dv_copy(fd, live, 0, cookie, 0, 8), ENOENT);
	KM_ERR(dv_map_try(fd, cookie, 0, 64, ONECOPY_MAP_READ, &(struct onecopy_map){0}), ENOENT);
	KM_ERR(dv_destroy(fd, 0), ENOENT);
	KM_OK(close(fd));
	KM_ERR(dv_read(other, live, 0, local, 64), ENOENT);
}

static void single_use(void)
{
	uint8_t *p = km_pages(BYTES), local[64];
	struct onecopy_region_info i;
	struct onecopy_map map;
	const uint32_t once = ONECOPY_REGION_SINGLE_USE;
	int fd = dv_open();
	uint64_t rw = dv_create(fd, km_pages(BYTES), BYTES, DV_RW);
	uint64_t cookie = dv_create(fd, p, BYTES, DV_RO | once);

	/* Neither asking, nor mapping, nor a refusal uses it up. */
	KM_OK(dv_region_info(fd, cookie, &i));
	KM_ERR(dv_map_try(fd, cookie, 0, km_page(), ONECOPY_MAP_READ, &map), EOPNOTSUPP);
	KM_ERR(dv_write(fd, cookie, 0, local, 64), EACCES);
	KM_EQ(dv_read(fd, cookie, 0, local, 64), 64);
	KM_ERR(dv_read(fd, cookie, 0, local, 64), ENOENT);
	KM_ERR(dv_destroy(fd, cookie), ENOENT);
	/* Also with nothing moved, or a fault. */
	cookie = dv_create(fd, p, BYTES, DV_RO | once);
	KM_EQ(dv_read(fd, cookie, BYTES, local, 64), 0);
	KM_ERR(dv_read(fd, cookie, 0, local, 64), ENOENT);
	cookie = dv_create(fd, p, BYTES, DV_RO | once);
	KM_ERR(dv_read(fd, cookie, 0, (void *)8, 64), EFAULT);
	KM_ERR(dv_read(fd, cookie, 0, local, 64), ENOENT);
	/* The source first. */
	cookie = dv_create(fd, p, BYTES, DV_RW | once);
	KM_ERR(dv_copy(fd, 1, 0, cookie, 0, 8), ENOENT);
	KM_ERR(dv_copy(fd, cookie, 0, 1, 0, 8), ENOENT);
	KM_ERR(dv_copy(fd, rw, 0, cookie, 0, 8), ENOENT);
	cookie = dv_create(fd, p, BYTES, DV_RO | once);
	KM_OK(dv_destroy(fd, cookie));
	/* One copy cannot use it at both ends. */
	cookie = dv_create(fd, p, BYTES, DV_RW | once);
	KM_ERR(dv_copy(fd, cookie, 0, cookie, 64, 8), ENOENT);
}

static void memlock(void)
{
	const struct rlimit limit = {64 << 10, 64 << 10};
	uint8_t *p = km_pages(BYTES);
	int fd = dv_open();
	uint64_t cookie;

	KM_OK(setrlimit(RLIMIT_MEMLOCK, &limit));
	/* CAP_IPC_LOCK: not charged. */
	if (geteuid() == 0) {
		cookie = dv_create(fd, km_pages(1 << 20), 1 << 20, DV_RO);
		KM_OK(dv_destroy(fd, cookie));
		km_drop(KM_OTHER_USER);
	}
	KM_OK(create1(fd, p, BYTES, DV_RO));
	KM_ERR(create1(fd, p, BYTES, DV_RO), ENOMEM);
	KM_ERR(create1(fd, km_pages(1 << 20), 1 << 20, DV_RO), ENOMEM);
	/* Given back by destroy and by close; a refused one takes nothing. */
	for (int i = 0; i < 100; i++)
		KM_ERR(create1(fd, p, BYTES, DV_RO), ENOMEM);
	KM_OK(create1(fd, p, 8192, DV_RO));
	KM_OK(close(fd));
}

/* A region that was in much use is given back by its destruction like any other. */
static void memlock_after_use(void)
{
	const size_t bytes = 5 << 20;
	const struct rlimit limit = {8 << 20, 8 << 20};
	const uint32_t flags = DV_RO | ONECOPY_REGION_ANY_USER;
	uint8_t *p = km_pages(bytes), *q = km_pages(bytes), local[64];
	volatile struct onecopy_completion *word;
	int fd;

	KM_OK(setrlimit(RLIMIT_MEMLOCK, &limit));
	fd = dv_open();
	word = dv_async(fd, 8, -1);
	/* CAP_IPC_LOCK: not charged. */
	if (geteuid() == 0)
		km_drop(KM_OTHER_USER);
	for (int i = 0; i < 20; i++) {
		uint64_t cookie = dv_create(fd, p, bytes, flags), small;

		for (int j = 0; j < 100; j++)
			KM_EQ(dv_read(fd, cookie, 0, local, sizeof(local)), sizeof(local));
		KM_ERR(create1(fd, q, bytes, DV_RO), ENOMEM);
		KM_OK(dv_destroy(fd, cookie));
		if (i & 1)
			continue;
		/* Local memory that is pinned, too. */
		small = dv_create(fd, km_pages(4096), 4096, flags);
		KM_OK(dv_read_async(fd, small, 0, q, bytes, 0, 0));
		KM_EQ(dv_wait(word), 0);
		KM_OK(dv_destroy(fd, small));
	}
}

static void limits(void)
{
	static const char pages[] = "/sys/module/onecopy/parameters/max_user_pages";
	static const char regions[] = "/sys/module/onecopy/parameters/max_user_regions";
	const size_t page = km_page();
	uint8_t *p = km_pages(32 * page);
	char was[32], text[32];
	uint64_t cookie;
	int fd, other;

	if (!km_read_text(pages, was, sizeof(was)) || !km_write_text(pages, "16"))
		km_skip("module parameters are not to be set");
	KM_TRUE(km_write_text(pages, "0"));
	fd = dv_open();
	KM_TRUE(dv_info(fd).limit_bytes > 0);
	KM_TRUE(dv_info(fd).limit_bytes < sysconf(_SC_PHYS_PAGES) * page);
	KM_OK(close(fd));
	KM_TRUE(km_write_text(pages, "16"));
	/* A file has the limits of its open(); users share them over files. */
	fd = dv_open();
	other = dv_open();
	KM_TRUE(km_write_text(pages, was));
	KM_EQ(dv_info(fd).limit_bytes, 16 * page);
	cookie = dv_create(fd, p, 12 * page, DV_RW);
	KM_ERR(create1(other, p, 5 * page, DV_RO), EDQUOT);
	KM_ERR(create1(fd, p, 5 * page, DV_RO), EDQUOT);
	KM_OK(create1(other, p, 4 * page, DV_RO));
	KM_ERR(create1(other, p, 1, DV_RO), EDQUOT);
	KM_OK(dv_destroy(fd, cookie));
	KM_OK(create1(other, p, 12 * page, DV_RO));
	KM_OK(close(fd));
	KM_OK(close(other));

	KM_TRUE(km_read_text(regions, was, sizeof(was)));
	snprintf(text, sizeof(text), "%d", 10);
	KM_TRUE(km_write_text(regions, text));
	fd = dv_open();
	KM_TRUE(km_write_text(regions, was));
	cookie = dv_create(fd, p, 1, DV_RO);
	for (int i = 1; i < 10; i++)
		KM_OK(create1(fd, p, 1, DV_RO));
	KM_ERR(create1(fd, p, 1, DV_RO), EDQUOT);
	KM_OK(dv_destroy(fd, cookie));
	KM_OK(create1(fd, p, 1, DV_RO));
}

/* Pins of processes that have ended, whose files live on, are their user's still. */
static void left_behind(void)
{
	static const char pages[] = "/sys/module/onecopy/parameters/max_user_pages";
	const size_t page = km_page();
	uint8_t *p = km_pages(16 * page);
	char was[32];
	int fd;

	if (!km_read_text(pages, was, sizeof(was)) || !km_write_text(pages, "64"))
		km_skip("module parameters are not to be set");
	fd = dv_open();
	KM_TRUE(km_write_text(pages, was));
	for (int i = 0; i < 6; i++) {
		pid_t pid = km_fork();

		if (pid == 0) {
			if (i < 4)
				KM_OK(create1(fd, p, 16 * page, DV_RO));
			else
				KM_ERR(create1(fd, p, 16 * page, DV_RO), EDQUOT);
			_exit(0);
		}
		km_join(pid);
	}
	KM_EQ(dv_info(fd).pinned_bytes, 64 * page);
}

/* ENOENT, EPERM, EACCES, in this order. */
static void other_user(void)
{
	uint8_t *p = km_pages(BYTES), local[64];
	struct onecopy_region_info i;
	struct onecopy_map map;
	int fd = dv_open(), own = dv_open();
	uint64_t ro = dv_create(fd, p, BYTES, DV_RO | ONECOPY_REGION_WHOLE_PAGES);
	uint64_t any = dv_create(fd, p, BYTES, DV_RO | ONECOPY_REGION_ANY_USER);
	uint64_t once = dv_create(fd, p, BYTES, DV_RO | ONECOPY_REGION_SINGLE_USE);
	pid_t pid = km_fork();

	if (pid == 0) {
		km_drop(KM_OTHER_USER);
		KM_ERR(dv_read(own, 1, 0, local, 64), ENOENT);
		KM_ERR(dv_read(own, ro, 0, local, 64), EPERM);
		KM_ERR(dv_read(fd, ro, 0, local, 64), EPERM);
		KM_ERR(dv_write(own, ro, 0, local, 64), EPERM);
		KM_ERR(dv_read(own, once, 0, local, 64), EPERM);
		KM_ERR(dv_copy(own, any, 0, ro, 0, 64), EPERM);
		KM_ERR(dv_region_info(own, ro, &i), EPERM);
		KM_ERR(dv_map_try(own, ro, 0, 64, ONECOPY_MAP_READ, &map), EPERM);
		KM_ERR(dv_write(own, any, 0, local, 64), EACCES);
		KM_EQ(dv_read(own, any, 0, local, 64), 64);
		_exit(0);
	}
	km_join(pid);
	KM_EQ(dv_read(own, once, 0, local, 64), 64);
	KM_ERR(dv_write(own, ro, 0, local, 64), EACCES);
	KM_ERR(dv_map_try(own, ro, 0, 64, ONECOPY_MAP_READ | ONECOPY_MAP_WRITE, &map), EACCES);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "info", .run = info},
		{.name = "create_errors", .run = create_errors},
		{.name = "region_info", .run = region_info},
		{.name = "destroyed", .run = destroyed},
		{.name = "single_use", .run = single_use},
		{.name = "memlock", .run = memlock},
		{.name = "memlock_after_use", .run = memlock_after_use},
		{.name = "limits", .run = limits},
		{.name = "left_behind", .run = left_behind},
		{.name = "other_user", .run = other_user},
		{0},
	};

	return km_main(cases, argc, argv);
}
