// SPDX-License-Identifier: BSD-3-Clause
/* /dev/onecopy: each request with each of its allocations failing. */
#include "dev.h"
#include "fail.h"
#include "softdma.h"

#include <fcntl.h>
#include <linux/if_packet.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define BYTES	 (48 * 4096)
#define SEGMENTS 300
/* So many copies later a region's users are counted by processor (kernel/region.c). */
#define HOT 64

/* Large folios in a row, each of so many bytes. */
#define LARGE 4
#define HUGE  ((size_t)2 << 20)
#define BLOCK ((size_t)256 << 10)

static struct {
	int fd, event;
	bool track, dma;
	uint64_t cookie, warm;
	uint8_t *p, *q;
	struct onecopy_segment many[SEGMENTS];
	struct onecopy_map map;
	uint8_t *large; /* NULL: there are none */
	size_t folio;	/* bytes of one */
	uint8_t *at;	/* where huge entries fit; NULL: the kernel has none */
	struct onecopy_map huge;
	uint64_t pinned;
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
	if (s.at) {
		uint64_t cookie = dv_create(s.fd, s.large, 2 * HUGE, DV_RW);

		KM_OK(dv_map_try(s.fd, cookie, 0, 2 * HUGE, ONECOPY_MAP_READ, &s.huge));
		KM_EQ(s.huge.align, HUGE);
	}
	/* A page of the first is held: what fails later must not let go of that. */
	if (s.large)
		dv_create(s.fd, s.large, 1, DV_RO);
	s.pinned = dv_info(s.fd).pinned_bytes;
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

/* Over large folios, all that there are, of which the first and perhaps others are held already. */
static int do_create_large(void)
{
	struct onecopy_segment seg = dv_seg(s.large, LARGE * s.folio);
	uint64_t cookie;
	int err;

	if (!s.large || !dv_create_try(s.fd, &seg, 1, DV_RW, &cookie))
		return 0;
	err = errno;
	KM_EQ(dv_info(s.fd).pinned_bytes, s.pinned);
	errno = err;
	return -1;
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

/* The same by huge entries. */
static int do_mmap_huge(void)
{
	int sig;

	if (!s.at)
		return 0;
	if (mmap(s.at, 2 * HUGE, PROT_READ, MAP_SHARED | MAP_FIXED, s.fd, s.huge.map_offset) ==
	    MAP_FAILED)
		return -1;
	sig = km_touch(s.at + HUGE, false);
	munmap(s.at, 2 * HUGE);
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
	{"create, large folios", do_create_large, false},
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
	{"mmap, huge pages", do_mmap_huge, true},
	{"words", do_words, false},
	{"close", do_close, true},
	{0},
};

/* Huge pages; where the kernel has none, pages of a socket's that come in larger blocks. */
static void make_large(void)
{
	const struct tpacket_req ring = {BLOCK, LARGE, 2048, LARGE * BLOCK / 2048};
	int fd;

	s.large = km_pages((LARGE + 1) * HUGE);
	s.large += -(uintptr_t)s.large & (HUGE - 1);
	s.folio = HUGE;
	if (!madvise(s.large, LARGE * HUGE, MADV_HUGEPAGE)) {
		memset(s.large, 1, LARGE * HUGE);
		return;
	}
	s.folio = BLOCK;
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (fd >= 0 && !setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)))
		s.large = mmap(NULL, LARGE * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	else
		s.large = MAP_FAILED;
}

/* Whether they are what they should be: a byte of each keeps all of it. */
static void check_large(void)
{
	int fd = dv_open();

	for (int i = 0; i < LARGE && s.large != MAP_FAILED; i++)
		dv_create(fd, s.large + i * s.folio, 1, DV_RO);
	if (dv_info(fd).pinned_bytes != LARGE * s.folio) {
		km_note("no large folios: none fails");
		s.large = NULL;
	} else if (s.folio == HUGE && dv_info(fd).features & ONECOPY_FEATURE_HUGE_MAP) {
		s.at = km_pages(3 * HUGE);
		s.at += -(uintptr_t)s.at & (HUGE - 1);
	}
	KM_OK(close(fd));
}

static void make_memory(void)
{
	make_large();
	check_large();
	s.p = km_pages(BYTES);
	s.q = km_pages(BYTES);
	memset(s.p, 1, BYTES);
	memset(s.q, 1, BYTES);
	for (int i = 0; i < SEGMENTS; i++)
		s.many[i] = dv_seg(s.p + i * 600, 500);
}

static void each(void)
{
	make_memory();
	fail_each(requests, prepare, finish);
}

/* What is counted of large folios is undone. */
static void large_in_pairs(void)
{
	static const struct fail_request r = {"create, large folios", do_create_large, false};

	make_memory();
	fail_in_pairs(&r, prepare, finish);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "each", .run = each, .limit = 300},
		{.name = "large_in_pairs", .run = large_in_pairs, .limit = 300},
		{0},
	};

	return sd_main(cases, argc, argv);
}
