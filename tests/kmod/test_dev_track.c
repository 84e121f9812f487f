// SPDX-License-Identifier: BSD-3-Clause
/* /dev/onecopy: regions that know when their owner's addresses show other memory. */
#include "dev.h"

#include <signal.h>

static size_t page;

struct tracked {
	uint64_t cookie;
	uint64_t good;
	uint32_t slot;
	uint8_t *p;
	uint8_t *map;
};

static const volatile uint64_t *generations(int fd)
{
	size_t bytes = dv_info(fd).generation_slots * sizeof(uint64_t);
	void *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, ONECOPY_MMAP_GENERATIONS);

	KM_TRUE(p != MAP_FAILED);
	return p;
}

static struct tracked track(int fd, void *p, size_t bytes)
{
	struct onecopy_segment seg = dv_seg(p, bytes);
	struct onecopy_region_create create = {
		.size = sizeof(create),
		.flags = DV_RW | ONECOPY_REGION_TRACK | ONECOPY_REGION_WHOLE_PAGES,
		.segments = (uintptr_t)&seg,
		.nr_segments = 1,
	};

	KM_OK(ioctl(fd, ONECOPY_IOC_REGION_CREATE, &create));
	KM_TRUE(create.generation_slot < dv_info(fd).generation_slots);
	return (struct tracked){create.cookie, create.generation, create.generation_slot, p, NULL};
}

static int device(void)
{
	int fd = dv_open();

	dv_need(fd, ONECOPY_FEATURE_TRACK, "MMU notifiers");
	return fd;
}

static void unsupported(void)
{
	int fd = dv_open();
	struct onecopy_segment seg = dv_seg(km_pages(4096), 4096);
	uint64_t cookie;

	if (dv_info(fd).features & ONECOPY_FEATURE_TRACK)
		km_skip("this kernel has MMU notifiers");
	KM_ERR(dv_create_try(fd, &seg, 1, DV_RO | ONECOPY_REGION_TRACK, &cookie), EOPNOTSUPP);
}

static void words(void)
{
	int fd = device();
	size_t bytes = dv_info(fd).generation_slots * sizeof(uint64_t);
	const volatile uint64_t *word = generations(fd);

	KM_ERR((intptr_t)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			      ONECOPY_MMAP_GENERATIONS),
	       EACCES);
	KM_ERR(mprotect((void *)word, page, PROT_READ | PROT_WRITE), EACCES);
	KM_TRUE(mmap(NULL, bytes + page, PROT_READ, MAP_SHARED, fd, ONECOPY_MMAP_GENERATIONS) ==
		MAP_FAILED);
	KM_EQ(errno, EINVAL);
}

static void unmapped(uint8_t *p)
{
	KM_OK(munmap(p + 4 * page, page));
}

static void replaced(uint8_t *p)
{
	KM_TRUE(mmap(p + 7 * page, page, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + 7 * page);
}

static void moved(uint8_t *p)
{
	KM_TRUE(mremap(p, 8 * page, 8 * page, MREMAP_MAYMOVE | MREMAP_FIXED, km_pages(8 * page)) !=
		MAP_FAILED);
}

static void dropped(uint8_t *p)
{
	KM_OK(madvise(p + 2 * page, page, MADV_DONTNEED));
}

static void unmapped_all(uint8_t *p)
{
	KM_OK(munmap(p, 8 * page));
}

/* Each way to put other memory at the address: word, cookie and mappings tell. */
static void becomes_stale(void)
{
	static void (*const change[])(uint8_t *) = {unmapped, replaced, moved, dropped,
						    unmapped_all};
	int fd = device(), peer = dv_open();
	const volatile uint64_t *word = generations(fd);
	uint8_t local[64];

	for (size_t i = 0; i < sizeof(change) / sizeof(*change); i++) {
		uint8_t *p = km_pages(8 * page), *q = km_pages(page);
		struct tracked t = track(fd, p, 8 * page), other = track(fd, q, page);
		struct onecopy_region_info info;
		struct onecopy_map m, asked;
		uint64_t copy = dv_create(fd, q, page, DV_RW);

		KM_EQ(word[t.slot], t.good);
		KM_EQ(dv_read(peer, t.cookie, 0, local, 64), 64);
		t.map = dv_map(peer, t.cookie, 0, 8 * page, ONECOPY_MAP_READ);
		KM_TRUE(t.map != MAP_FAILED);
		KM_EQ(km_touch(t.map, false), 0);
		KM_OK(dv_map_try(peer, t.cookie, 0, page, ONECOPY_MAP_READ, &asked));
		/* Writing is not another memory. */
		memset(p, 1, 8 * page);
		KM_EQ(word[t.slot], t.good);
		change[i](p);
		KM_TRUE(word[t.slot] != t.good);
		KM_ERR(dv_read(peer, t.cookie, 0, local, 64), ESTALE);
		KM_ERR(dv_copy(peer, t.cookie, 0, copy, 0, 8), ESTALE);
		KM_ERR(dv_map_try(peer, t.cookie, 0, page, ONECOPY_MAP_READ, &m), ESTALE);
		KM_ERR(dv_region_info(peer, t.cookie, &info), ESTALE);
		KM_ERR((intptr_t)mmap(NULL, page, PROT_READ, MAP_SHARED, peer, asked.map_offset),
		       ESTALE);
		for (int wait = 0; wait < 5000 && !km_touch(t.map + 4 * page, false); wait++)
			km_pause();
		KM_EQ(km_touch(t.map + 4 * page, false), SIGBUS);
		/* Its neighbours know nothing of it. */
		KM_EQ(word[other.slot], other.good);
		KM_EQ(dv_read(peer, other.cookie, 0, local, 64), 64);
		KM_OK(dv_destroy(fd, t.cookie));
		KM_ERR(dv_read(peer, t.cookie, 0, local, 64), ENOENT);
		KM_OK(munmap(t.map, 8 * page));
	}
}

/* After a fork the parent's region is good, whatever either side writes. */
static void forked(void)
{
	uint8_t *p = km_pages(8 * page), *q = km_pages(8 * page);
	int fd = device();
	struct tracked t;
	pid_t pid;

	km_fill(p, 8 * page, 1);
	t = track(fd, p, 8 * page);
	pid = km_fork();
	if (pid == 0) {
		km_fill(p, 8 * page, 9);
		KM_OK(munmap(p, 4 * page));
		_exit(0);
	}
	km_join(pid);
	km_fill(p, 8 * page, 2);
	/* Never bytes of the past: refused, or right. */
	if (dv_read(fd, t.cookie, 0, q, 8 * page) == -1)
		KM_EQ(errno, ESTALE);
	else
		KM_EQ(km_differ(q, 8 * page, 2), 8 * page);
}

/*
 * Pinning itself puts other pages behind the addresses: of memory shared by copy on
 * write, of the page of zeroes. That is not the owner's doing: the region is good.
 */
static void made_of_shared_pages(void)
{
	uint8_t *p = km_pages(8 * page), *q = km_pages(8 * page);
	int fd = device(), go[2];
	const volatile uint64_t *word = generations(fd);
	struct tracked t;
	char byte;
	pid_t pid;

	km_fill(p, 4 * page, 1);
	for (int i = 4; i < 8; i++)
		KM_EQ(km_touch(p + i * page, false), 0);
	KM_OK(pipe(go));
	pid = km_fork();
	if (pid == 0) {
		KM_EQ(read(go[0], &byte, 1), 1);
		_exit(0);
	}
	t = track(fd, p, 8 * page);
	KM_EQ(word[t.slot], t.good);
	km_fill(p, 8 * page, 2);
	KM_EQ(word[t.slot], t.good);
	KM_EQ(dv_read(fd, t.cookie, 0, q, 8 * page), 8 * page);
	KM_EQ(km_differ(q, 8 * page, 2), 8 * page);
	KM_EQ(write(go[1], "", 1), 1);
	km_join(pid);
	KM_OK(munmap(p, page));
	KM_TRUE(word[t.slot] != t.good);
	KM_ERR(dv_read(fd, t.cookie, 0, q, page), ESTALE);
}

/* Words run out with ENOSPC, and come back. A word used again tells old from new. */
static void run_out(void)
{
	int fd = device();
	uint32_t slots = dv_info(fd).generation_slots;
	uint8_t *p = km_pages(page);
	struct onecopy_segment seg = dv_seg(p, page);
	struct tracked first = track(fd, p, page), again;
	const volatile uint64_t *word = generations(fd);
	uint64_t cookie = 0;

	for (uint32_t i = 1; i < slots; i++)
		KM_OK(dv_create_try(fd, &seg, 1, DV_RO | ONECOPY_REGION_TRACK, &cookie));
	KM_ERR(dv_create_try(fd, &seg, 1, DV_RO | ONECOPY_REGION_TRACK, &cookie), ENOSPC);
	KM_OK(dv_create_try(fd, &seg, 1, DV_RO, &cookie));
	KM_OK(dv_destroy(fd, first.cookie));
	KM_TRUE(word[first.slot] != first.good);
	again = track(fd, p, page);
	KM_EQ(again.slot, first.slot);
	KM_TRUE(again.good != first.good);
	/* All of them at once. */
	KM_OK(munmap(p, page));
	KM_TRUE(word[again.slot] != again.good);
}

/* The owner's process ends, the file lives on elsewhere: gone, and no trap. */
static void owner_exits(void)
{
	struct tracked *t =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = device();
	uint8_t local[64];
	pid_t pid = km_fork();

	if (pid == 0) {
		*t = track(fd, km_pages(page), page);
		_exit(0);
	}
	km_join(pid);
	KM_ERR(dv_read(fd, t->cookie, 0, local, 64), ENOENT);
	KM_OK(dv_destroy(fd, t->cookie));
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "unsupported", .run = unsupported},
		{.name = "words", .run = words},
		{.name = "becomes_stale", .run = becomes_stale},
		{.name = "forked", .run = forked},
		{.name = "made_of_shared_pages", .run = made_of_shared_pages},
		{.name = "run_out", .run = run_out},
		{.name = "owner_exits", .run = owner_exits},
		{0},
	};

	page = km_page();
	return km_main(cases, argc, argv);
}
