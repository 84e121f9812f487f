// SPDX-License-Identifier: BSD-3-Clause
/*
 * What users may hold through both devices: each of them, all together, and what pages that are
 * part of larger ones count for.
 */
#include "dev.h"
#include "knem.h"

#include <sys/resource.h>

#define HUGE	   ((size_t)2 << 20)
#define PARAMETERS "/sys/module/onecopy/parameters/"

static size_t page;

/* A file of this user's, who need not be allowed to open the device, under this limit. */
static int open_as(uid_t uid, const char *parameter, const char *value, bool knem)
{
	char was[32];
	int fd;

	if (geteuid())
		km_skip("needs root to become another user");
	km_parameter(parameter, value, was);
	KM_OK(setresuid(uid, 0, 0));
	fd = knem ? kn_open() : dv_open();
	KM_OK(setresuid(0, 0, 0));
	km_parameter(parameter, was, NULL);
	return fd;
}

static int pin(int fd, void *p, size_t bytes)
{
	struct onecopy_segment seg = dv_seg(p, bytes);
	uint64_t cookie;

	return dv_create_try(fd, &seg, 1, DV_RO, &cookie);
}

static int pin_knem(int fd, void *p, size_t bytes)
{
	struct knem_cmd_param_iovec iov = kn_iov(p, bytes);
	knem_cookie_t cookie;

	return kn_create_try(fd, &iov, 1, PROT_READ, 0, &cookie);
}

/* RLIMIT_MEMLOCK is for all processes of a user together. */
static void memlock(void)
{
	const struct rlimit limit = {16 * page, 16 * page};
	uint8_t *p = km_pages(16 * page);
	int mine = open_as(1001, "max_user_pages", "0", false);
	int again = open_as(1001, "max_user_pages", "0", false);
	int theirs = open_as(1002, "max_user_pages", "0", false);
	pid_t pid;

	KM_OK(setrlimit(RLIMIT_MEMLOCK, &limit));
	km_drop(1001);
	KM_OK(pin(mine, p, 10 * page));
	pid = km_fork();
	if (pid == 0) {
		KM_OK(pin(again, p, 6 * page));
		KM_ERR(pin(again, p, page), ENOMEM);
		/* Of another user's file. */
		KM_OK(pin(theirs, p, 16 * page));
		KM_ERR(pin(theirs, p, page), ENOMEM);
		_exit(0);
	}
	km_join(pid);
	KM_ERR(pin(mine, p, page), ENOMEM);
	KM_OK(close(again));
	KM_OK(pin(mine, p, 6 * page));
}

/* One who is several users, as in a user namespace, has no more than all may have. */
static void all_users(void)
{
	uint8_t *p = km_pages(64 * page);
	int first = open_as(1001, "max_pages", "64", false);
	int knem = open_as(1002, "max_pages", "64", true);
	int last = open_as(1003, "max_pages", "64", false);

	KM_OK(pin(first, p, 40 * page));
	KM_OK(pin_knem(knem, p, 20 * page));
	/* Too much is nobody else's loss. */
	KM_ERR(pin(last, p, 5 * page), EDQUOT);
	KM_ERR(pin_knem(knem, p, 5 * page), ENOMEM);
	KM_OK(pin(last, p, 4 * page));
	KM_ERR(pin(first, p, 1), EDQUOT);
	KM_OK(close(first));
	KM_OK(pin_knem(knem, p, 40 * page));
	KM_ERR(pin(last, p, 1), EDQUOT);
	KM_OK(close(knem));
	KM_OK(close(last));

	first = open_as(1001, "max_regions", "10", false);
	last = open_as(1002, "max_regions", "10", false);
	for (int i = 0; i < 5; i++) {
		KM_OK(pin(first, p, 1));
		KM_OK(pin(last, p, 1));
	}
	KM_ERR(pin(first, p, 1), EDQUOT);
	KM_ERR(pin(last, p, 1), EDQUOT);
	KM_OK(close(first));
	KM_OK(pin(last, p, 1));
}

/* Who asks for all there is, over and over, and gets none of it, is in nobody's way. */
static void refused(void)
{
	const unsigned long rounds = km_scaled(20000);
	uint8_t *p = km_pages(64 * page);
	int greedy = open_as(1001, "max_pages", "64", false);
	int modest = open_as(1002, "max_pages", "64", false);
	pid_t pid = km_fork();

	if (pid == 0) {
		uint8_t *much = km_pages(65 * page);

		for (;;)
			KM_ERR(pin(greedy, much, 65 * page), EDQUOT);
	}
	for (unsigned long i = 0; i < rounds; i++) {
		uint64_t cookie = dv_create(modest, p, 64 * page, DV_RO);

		KM_OK(dv_destroy(modest, cookie));
	}
	km_kill(pid);
}

/* Pins what the file's user may yet, to the page: how much that is. */
static uint64_t pin_all(int fd, uint8_t *p, size_t bytes)
{
	uint64_t all = 0;

	while (bytes >= page) {
		if (!pin(fd, p, bytes)) {
			all += bytes;
			continue;
		}
		KM_EQ(errno, EDQUOT);
		bytes /= 2;
	}
	return all;
}

/* If nobody says otherwise each user may pin a sixteenth of the memory, and all of them a quarter.
 * A page is lost to each division. */
static void defaults(void)
{
	const uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * page;
	uint64_t limit = dv_info(dv_open()).limit_bytes, all = 0;
	uint8_t *p = km_pages(4 * HUGE);

	if (km_read_number(PARAMETERS "max_user_pages") || km_read_number(PARAMETERS "max_pages"))
		km_skip("a limit was set");
	KM_TRUE(limit > memory / 16 - 2 * page && limit <= memory / 16);
	/* The same small pages over and over, which count each time. */
	madvise(p, 4 * HUGE, MADV_NOHUGEPAGE);
	for (uid_t uid = 1001; uid <= 1005; uid++) {
		uint64_t bytes = pin_all(open_as(uid, "max_user_pages", "0", false), p, 4 * HUGE);

		KM_TRUE(uid == 1005 || bytes == limit);
		all += bytes;
	}
	KM_TRUE(all > memory / 4 - 2 * page && all <= memory / 4);
}

/* A page of a huge one keeps all of it: that counts, once. */
static void huge(void)
{
	uint8_t *p = km_pages(5 * HUGE), *q = km_pages(4 * page);
	int fd = dv_open();
	struct onecopy_region_info info;
	uint64_t cookie[4], small;

	p += -(uintptr_t)p & (HUGE - 1);
	if (madvise(p, 4 * HUGE, MADV_HUGEPAGE))
		km_skip("no transparent huge pages here");
	km_fill(p, 4 * HUGE, 1);
	small = dv_create(fd, p, 4 * HUGE, DV_RO);
	KM_OK(dv_region_info(fd, small, &info));
	KM_OK(dv_destroy(fd, small));
	if (info.nr_runs > 4)
		km_skip("no huge page to be had");

	small = dv_create(fd, q, 4 * page, DV_RO);
	KM_EQ(dv_info(fd).pinned_bytes, 4 * page);
	/* Two pages, two regions, one huge page. */
	cookie[0] = dv_create(fd, p + 17 * page, 1, DV_RO);
	KM_EQ(dv_info(fd).pinned_bytes, 4 * page + HUGE);
	cookie[1] = dv_create(fd, p + 99 * page, 3 * page, DV_RW);
	KM_EQ(dv_info(fd).pinned_bytes, 4 * page + HUGE);
	/* Over the edge of the next; then all. */
	cookie[2] = dv_create(fd, p + HUGE - page, 2 * page, DV_RO);
	KM_EQ(dv_info(fd).pinned_bytes, 4 * page + 2 * HUGE);
	cookie[3] = dv_create(fd, p, 4 * HUGE, DV_RO);
	KM_EQ(dv_info(fd).pinned_bytes, 4 * page + 4 * HUGE);
	KM_OK(dv_destroy(fd, cookie[0]));
	KM_OK(dv_destroy(fd, cookie[3]));
	KM_EQ(dv_info(fd).pinned_bytes, 4 * page + 2 * HUGE);
	KM_OK(dv_destroy(fd, cookie[1]));
	KM_EQ(dv_info(fd).pinned_bytes, 4 * page + 2 * HUGE);
	KM_OK(dv_destroy(fd, cookie[2]));
	KM_EQ(dv_info(fd).pinned_bytes, 4 * page);
	KM_OK(dv_destroy(fd, small));
	KM_EQ(dv_info(fd).pinned_bytes, 0);

	/* The limit is for what is kept. */
	fd = open_as(1001, "max_user_pages", "800", false);
	KM_OK(pin(fd, p, page));
	KM_OK(pin(fd, p + HUGE / 2, HUGE / 2));
	KM_ERR(pin(fd, p + HUGE, 1), EDQUOT);
	KM_ERR(pin(fd, p + HUGE - page, 2 * page), EDQUOT);
	KM_EQ(dv_info(fd).pinned_bytes, HUGE);
	KM_OK(pin(fd, q, 4 * page));
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "memlock", .run = memlock},
		{.name = "all_users", .run = all_users},
		{.name = "refused", .run = refused, .limit = 120},
		{.name = "defaults", .run = defaults},
		{.name = "huge", .run = huge},
		{0},
	};

	page = km_page();
	return km_main(cases, argc, argv);
}
