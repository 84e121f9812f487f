// SPDX-License-Identifier: BSD-3-Clause
/* /dev/onecopy: each request with each of its allocations failing. */
#include "dev.h"
#include "fail.h"
#include "softdma.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>

#define BYTES	 (48 * 4096)
#define SEGMENTS 300
/* So many copies later a region's users are counted by processor (kernel/region.c). */
#define HOT 64

static struct {
	int fd, event;
	bool track, dma;
	uint64_t cookie, warm;
	uint8_t *p, *q;
	struct onecopy_segment many[SEGMENTS];
	struct onecopy_map map;
} s;

/* Fresh files each time: what is made once a file is made again. */
static void prepare(void)
{
	s.fd = dv_open();
	s.track = dv_info(s.fd).features & ONECOPY_FEATURE_TRACK;
	s.event = eventfd(0, EFD_CLOEXEC);
	munmap((void *)dv_async(s.fd, 64, -1), 4096);
	s.cookie = dv_create(s.fd, s.p, BYTES, DV_RW);
	KM_OK(dv_map_try(s.fd, s.cookie, 0, BYTES, ONECOPY_MAP_READ, &s.map));
	s.dma = dv_info(s.fd).features & ONECOPY_FEATURE_DMA;
	s.warm = dv_create(s.fd, s.p, BYTES, DV_RW);
	for (int i = 0; i < HOT; i++)
		KM_EQ(dv_read(s.fd, s.warm, 0, s.q, 8), 8);
}

static void finish(void)
{
	close(s.fd);
	close(s.event);
}

static int do_open(void)
{
	int fd = open(ONECOPY_DEVICE, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -1 : close(fd);
}

static int do_create(void)
{
	struct onecopy_segment seg = dv_seg(s.p, BYTES);
	uint64_t cookie;

	return dv_create_try(s.fd, &seg, 1, DV_RW, &cookie);
}

static int do_create_many(void)
{
	uint64_t cookie;

	return dv_create_try(s.fd, s.many, SEGMENTS, DV_RW, &cookie);
}

static int do_create_tracked(void)
{
	uint64_t cookie;

	if (!s.track)
		return 0;
	return dv_create_try(s.fd, s.many, SEGMENTS, DV_RW | ONECOPY_REGION_TRACK, &cookie);
}

static int do_destroy(void)
{
	return dv_destroy(s.fd, s.cookie);
}

static int do_copy(void)
{
	return dv_read(s.fd, s.cookie, 0, s.q, BYTES) == -1 ? -1 : 0;
}

/* The one that makes the region hot, and one that finds it so. */
static int do_copy_warm(void)
{
	if (dv_read(s.fd, s.warm, 0, s.q, 8) == -1)
		return -1;
	return dv_read(s.fd, s.warm, 0, s.q, 8) == -1 ? -1 : 0;
}

static int do_copy_between(void)
{
	return dv_copy(s.fd, s.cookie, 0, s.cookie, BYTES / 2, BYTES / 2) == -1 ? -1 : 0;
}

static int do_copy_many(void)
{
	struct onecopy_copy c = {
		.size = sizeof(c),
		.source = s.cookie,
		.local = (uintptr_t)s.many,
		.nr_local = SEGMENTS,
		.length = UINT64_MAX,
	};

	return ioctl(s.fd, ONECOPY_IOC_COPY, &c);
}

static int do_copy_async(void)
{
	return dv_read_async(s.fd, s.cookie, 0, s.q, BYTES, 3, 0);
}

static int do_copy_dma(void)
{
	if (!s.dma)
		return 0;
	return dv_write_async(s.fd, s.cookie, 0, s.q, BYTES, 4, ONECOPY_COPY_DMA);
}

static int do_cancel(void)
{
	int ret = dv_cancel(s.fd, 5);

	return ret == -1 && errno == ENOENT ? 0 : ret;
}

static int do_region_info(void)
{
	struct onecopy_region_info info;

	return dv_region_info(s.fd, s.cookie, &info);
}

static int do_setup(void)
{
	struct onecopy_async_setup setup = {
		.size = sizeof(setup), .nr_slots = 4096, .eventfd = s.event};

	return fail_on_new_file(ONECOPY_DEVICE, ONECOPY_IOC_ASYNC_SETUP, &setup);
}

static int do_map(void)
{
	struct onecopy_map map;

	return dv_map_try(s.fd, s.cookie, 0, BYTES, ONECOPY_MAP_READ, &map);
}

static int do_mmap(void)
{
	volatile uint8_t *m = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, s.fd, s.map.map_offset);
	int sig;

	if (m == MAP_FAILED)
		return -1;
	/* Page tables are allocated now. */
	sig = km_touch((uint8_t *)m, false);
	munmap((void *)m, BYTES);
	KM_TRUE(sig == 0 || sig == SIGBUS);
	return 0;
}

/* Those of generations, and a page of those of completions. */
static int do_words(void)
{
	void *words = mmap(NULL, 4096, PROT_READ, MAP_SHARED, s.fd, ONECOPY_MMAP_GENERATIONS);
	int sig;

	if (words == MAP_FAILED)
		return -1;
	munmap(words, 4096);
	words = mmap(NULL, 4096, PROT_READ, MAP_SHARED, s.fd, ONECOPY_MMAP_COMPLETIONS);
	if (words == MAP_FAILED)
		return -1;
	sig = km_touch(words, false);
	munmap(words, 4096);
	KM_TRUE(sig == 0 || sig == SIGBUS);
	return 0;
}

static int do_close(void)
{
	return close(s.fd);
}

static const struct fail_request requests[] = {
	{"open", do_open, false},
	{"create", do_create, false},
	{"create, many segments", do_create_many, false},
	{"create, tracked", do_create_tracked, false},
	{"destroy", do_destroy, false},
	{"region info", do_region_info, false},
	{"copy", do_copy, false},
	{"copy, from then on hot", do_copy_warm, false},
	{"copy between regions", do_copy_between, false},
	{"copy, many segments", do_copy_many, false},
	{"copy, asynchronous", do_copy_async, false},
	{"copy, by an engine", do_copy_dma, false},
	{"cancel", do_cancel, false},
	{"asynchronous setup", do_setup, false},
	{"map", do_map, false},
	{"mmap", do_mmap, true},
	{"words", do_words, false},
	{"close", do_close, true},
	{0},
};

static void each(void)
{
	s.p = km_pages(BYTES);
	s.q = km_pages(BYTES);
	memset(s.p, 1, BYTES);
	memset(s.q, 1, BYTES);
	for (int i = 0; i < SEGMENTS; i++)
		s.many[i] = dv_seg(s.p + i * 600, 500);
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
