// SPDX-License-Identifier: BSD-3-Clause
/* /dev/onecopy: mapped regions: the same memory, nothing beside it, gone when it has to be. */
#include "dev.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/uio.h>

#define READ ONECOPY_MAP_READ
#define BOTH (ONECOPY_MAP_READ | ONECOPY_MAP_WRITE)

static size_t page;

static void same_memory(void)
{
	const size_t bytes = 300 * 4096;
	uint8_t *p = km_pages(bytes), *m;
	int fd = dv_open();
	uint64_t cookie = dv_create(fd, p, bytes, DV_RW);

	km_fill(p, bytes, 1);
	m = dv_map(fd, cookie, 0, bytes, BOTH);
	KM_TRUE(m != MAP_FAILED);
	KM_EQ(km_differ(m, bytes, 1), bytes);
	km_fill(m, bytes, 2);
	KM_EQ(km_differ(p, bytes, 2), bytes);
	p[12345] ^= 1;
	KM_EQ(m[12345], p[12345]);
	/* Pieces, at odd offsets of it. */
	m = dv_map(fd, cookie, 4096 + 13, 10000, READ);
	KM_TRUE(m != MAP_FAILED);
	KM_TRUE(!memcmp(m, p + 4096 + 13, 10000));
	KM_EQ(km_touch(m, true), SIGSEGV);
}

/* Several segments that join at page boundaries are one mapping, in their order. */
static void joined_segments(void)
{
	uint8_t *p = km_pages(16 * page), *m;
	struct onecopy_segment segs[] = {dv_seg(p + 9 * page, 3 * page), dv_seg(NULL, 0),
					 dv_seg(p + 2 * page, page),
					 dv_seg(p + 5 * page, 4 * page)};
	uint64_t cookie;
	int fd = dv_open();

	km_fill(p, 16 * page, 4);
	KM_OK(dv_create_try(fd, segs, 4, DV_RW, &cookie));
	m = dv_map(fd, cookie, 0, 8 * page, BOTH);
	KM_TRUE(m != MAP_FAILED);
	KM_TRUE(!memcmp(m, p + 9 * page, 3 * page));
	KM_TRUE(!memcmp(m + 3 * page, p + 2 * page, page));
	KM_TRUE(!memcmp(m + 4 * page, p + 5 * page, 4 * page));
	m[3 * page] ^= 0xff;
	KM_EQ(p[2 * page], m[3 * page]);
}

static void errors(void)
{
	uint8_t *p = km_pages(8 * page);
	struct onecopy_segment apart[] = {dv_seg(p, 100), dv_seg(p + page, page)};
	struct onecopy_map m;
	int fd = dv_open();
	uint64_t cookie = dv_create(fd, p, 8 * page, DV_RO), odd, split, wo;

	KM_ERR(dv_map_try(fd, cookie, 0, 0, READ, &m), EINVAL);
	KM_ERR(dv_map_try(fd, cookie, 0, page, 0, &m), EINVAL);
	KM_ERR(dv_map_try(fd, cookie, 0, page, ONECOPY_MAP_WRITE, &m), EINVAL);
	KM_ERR(dv_map_try(fd, cookie, 0, page, BOTH, &m), EACCES);
	KM_ERR(dv_map_try(fd, 1, 0, page, READ, &m), ENOENT);
	KM_ERR(dv_map_try(fd, cookie, 0, 8 * page + 1, READ, &m), ERANGE);
	KM_ERR(dv_map_try(fd, cookie, 8 * page, 1, READ, &m), ERANGE);
	KM_ERR(dv_map_try(fd, cookie, UINT64_MAX, 2, READ, &m), ERANGE);
	KM_ERR(dv_map_try(fd, cookie, 1, UINT64_MAX, READ, &m), ERANGE);
	wo = dv_create(fd, p, 8 * page, ONECOPY_REGION_WRITE);
	KM_ERR(dv_map_try(fd, wo, 0, page, BOTH, &m), EACCES);
	KM_ERR(dv_map_try(fd, wo, 0, page, READ, &m), EACCES);
	/* Bytes beside the region would show. */
	odd = dv_create(fd, p + 8, 3 * page, DV_RO);
	KM_ERR(dv_map_try(fd, odd, 0, page, READ, &m), EOPNOTSUPP);
	KM_ERR(dv_map_try(fd, odd, 2 * page, page, READ, &m), EOPNOTSUPP);
	KM_ERR(dv_map_try(fd, odd, page - 9, 2, READ, &m), EOPNOTSUPP);
	KM_ERR(dv_map_try(fd, odd, 3 * page - 9, 2, READ, &m), EOPNOTSUPP);
	KM_OK(dv_map_try(fd, odd, page - 8, 2 * page, READ, &m));
	KM_OK(dv_map_try(fd, odd, page + 5, 2, READ, &m));
	odd = dv_create(fd, p + 8, 3 * page, DV_RO | ONECOPY_REGION_WHOLE_PAGES);
	KM_OK(dv_map_try(fd, odd, 0, 3 * page, READ, &m));
	KM_EQ(m.skip, 8);
	KM_OK(dv_create_try(fd, apart, 2, DV_RO | ONECOPY_REGION_WHOLE_PAGES, &split));
	KM_ERR(dv_map_try(fd, split, 0, 101, READ, &m), EOPNOTSUPP);
	KM_OK(dv_map_try(fd, split, 0, 100, READ, &m));
	KM_OK(dv_map_try(fd, split, 100, page, READ, &m));
	/* Asking without mapping, for ever. */
	for (int i = 0; i < 1000000; i++) {
		if (!dv_map_try(fd, cookie, 0, page, READ, &m))
			continue;
		KM_EQ(errno, EMFILE);
		return;
	}
	km_fail(__FILE__, __LINE__, "a million answers wait for their mmap()");
}

/* The refused way to map part of a region; the answer is asked for anew each time. */
static void refused(int fd, uint64_t cookie, uint32_t flags, int prot, int how, size_t bytes,
		    int by, int err)
{
	struct onecopy_map m;

	KM_OK(dv_map_try(fd, cookie, 0, 8 * page, flags, &m));
	KM_ERR((intptr_t)mmap(NULL, bytes, prot, how, by, m.map_offset), err);
}

static void mmap_errors(void)
{
	uint8_t *p = km_pages(8 * page), *at;
	struct onecopy_map m;
	int fd = dv_open(), other = dv_open();
	uint64_t c = dv_create(fd, p, 8 * page, DV_RW);
	const int shared = MAP_SHARED, ro = PROT_READ, rw = PROT_READ | PROT_WRITE;

	refused(fd, c, READ, ro, MAP_PRIVATE, 8 * page, fd, EINVAL);
	refused(fd, c, READ, ro, shared, 7 * page, fd, EINVAL);
	refused(fd, c, READ, ro, shared, 9 * page, fd, EINVAL);
	refused(fd, c, READ, ro, shared, 8 * page, other, EINVAL);
	refused(fd, c, READ, rw, shared, 8 * page, fd, EACCES);
	refused(fd, c, READ, ro | PROT_EXEC, shared, 8 * page, fd, EACCES);
	refused(fd, c, BOTH, rw | PROT_EXEC, shared, 8 * page, fd, EACCES);
	KM_OK(dv_map_try(fd, c, 0, 8 * page, READ, &m));
	at = mmap(NULL, m.map_length, ro, shared, fd, m.map_offset);
	KM_TRUE(at != MAP_FAILED);
	KM_ERR((intptr_t)mmap(NULL, m.map_length, ro, shared, fd, m.map_offset), EINVAL);
	/* Nor more later. */
	KM_ERR(mprotect(at, page, rw), EACCES);
	KM_ERR(mprotect(at, page, ro | PROT_EXEC), EACCES);
	KM_OK(mprotect(at, page, PROT_NONE));
	KM_EQ(km_touch(at, false), SIGSEGV);
	KM_OK(mprotect(at, page, ro));
	KM_EQ(km_touch(at, false), 0);
	KM_OK(dv_map_try(fd, c, 0, page, READ, &m));
	KM_OK(dv_destroy(fd, c));
	KM_ERR((intptr_t)mmap(NULL, m.map_length, ro, shared, fd, m.map_offset), ENOENT);
	KM_ERR((intptr_t)mmap(NULL, page, ro, shared, fd, 0x7ull << 40), EINVAL);
}

/* Whichever end comes: the next touch is SIGBUS, never old or foreign bytes. */
static void revoked(void)
{
	const uint32_t linger[] = {0, ONECOPY_REGION_LINGER};

	for (int i = 0; i < 2; i++) {
		uint8_t *p = km_pages(8 * page), *a, *b;
		int fd = dv_open(), own = dv_open();
		uint64_t cookie = dv_create(fd, p, 8 * page, DV_RW | linger[i]);

		km_fill(p, 8 * page, 1);
		a = dv_map(own, cookie, 0, 8 * page, BOTH);
		b = dv_map(fd, cookie, page, page, READ);
		KM_TRUE(a != MAP_FAILED && b != MAP_FAILED);
		KM_EQ(km_differ(a, 8 * page, 1), 8 * page);
		KM_EQ(km_touch(b, false), 0);
		KM_OK(dv_destroy(fd, cookie));
		for (size_t off = 0; off < 8 * page; off += page) {
			KM_EQ(km_touch(a + off, false), SIGBUS);
			KM_EQ(km_touch(a + off, true), SIGBUS);
		}
		KM_EQ(km_touch(b, false), SIGBUS);
		/* System calls see it too. */
		KM_TRUE(dv_read(own, dv_create(own, p, page, DV_RO), 0, a, 64) == -1);
		KM_EQ(errno, EFAULT);
		KM_OK(munmap(a, 8 * page));
	}
}

/* Closing the owner's file revokes, but for LINGER; our own file is not needed for ours. */
static void owner_closed(void)
{
	uint8_t *p = km_pages(8 * page), *a, *b;
	int fd = dv_open(), own = dv_open();
	uint64_t plain = dv_create(fd, p, 4 * page, DV_RW);
	uint64_t stays = dv_create(fd, p + 4 * page, 4 * page, DV_RW | ONECOPY_REGION_LINGER);

	km_fill(p, 8 * page, 1);
	a = dv_map(own, plain, 0, 4 * page, BOTH);
	b = dv_map(own, stays, 0, 4 * page, BOTH);
	KM_OK(close(own));
	KM_EQ(km_differ(a, 4 * page, 1), 4 * page);
	KM_OK(close(fd));
	KM_EQ(km_touch(a, false), SIGBUS);
	KM_TRUE(!memcmp(b, p + 4 * page, 4 * page));
	b[1] ^= 1;
	KM_EQ(p[4 * page + 1], b[1]);
	/* Its cookie is gone all the same. */
	KM_ERR(dv_read(dv_open(), stays, 0, p, 8), ENOENT);
	KM_OK(munmap(b, page));
	KM_EQ(km_touch(b + page, true), 0);
}

static void unmapped_in_parts(void)
{
	uint8_t *p = km_pages(16 * page), *m, *to;
	int fd = dv_open();
	uint64_t cookie = dv_create(fd, p, 16 * page, DV_RW);

	km_fill(p, 16 * page, 1);
	m = dv_map(fd, cookie, 0, 16 * page, BOTH);
	KM_OK(munmap(m + 4 * page, 2 * page));
	KM_EQ(km_touch(m + 4 * page, false), SIGSEGV);
	KM_TRUE(!memcmp(m + 6 * page, p + 6 * page, 10 * page));
	to = mremap(m + 6 * page, 10 * page, 10 * page, MREMAP_MAYMOVE | MREMAP_FIXED,
		    km_pages(16 * page));
	KM_TRUE(to != MAP_FAILED);
	KM_TRUE(!memcmp(to, p + 6 * page, 10 * page));
	KM_TRUE((to = mremap(to, 10 * page, 8 * page, MREMAP_MAYMOVE)) != MAP_FAILED);
	KM_TRUE(!memcmp(to, p + 6 * page, 8 * page));
	KM_TRUE(mremap(to, 8 * page, 12 * page, MREMAP_MAYMOVE) == MAP_FAILED);
	KM_TRUE(mremap(m, 4 * page, 6 * page, 0) == MAP_FAILED);
	to[0] ^= 1;
	KM_EQ(p[6 * page], to[0]);
	KM_OK(dv_destroy(fd, cookie));
	KM_EQ(km_touch(to, false), SIGBUS);
	KM_EQ(km_touch(m, false), SIGBUS);
}

/* A child has none of it; pinning, and dumping into another region, are refused. */
static void not_passed_on(void)
{
	uint8_t *p = km_pages(8 * page), *m;
	struct onecopy_segment seg;
	int fd = dv_open();
	uint64_t cookie = dv_create(fd, p, 8 * page, DV_RW), other;
	pid_t pid;

	m = dv_map(fd, cookie, 0, 8 * page, BOTH);
	pid = km_fork();
	if (pid == 0) {
		KM_EQ(km_touch(m, false), SIGSEGV);
		_exit(0);
	}
	km_join(pid);
	KM_EQ(madvise(m, page, MADV_DOFORK), -1);
	seg = dv_seg(m, page);
	KM_ERR(dv_create_try(fd, &seg, 1, DV_RO, &other), EFAULT);
	pid = km_fork();
	if (pid == 0) {
		struct iovec to = {p, 64}, from = {m, 64};

		/* process_vm_readv() pins: it gets nothing of the parent's. */
		KM_ERR(process_vm_readv(getppid(), &to, 1, &from, 1, 0), EFAULT);
		_exit(0);
	}
	km_join(pid);
	/* But plain system calls may use it. */
	KM_EQ(dv_read(fd, cookie, 0, m + page, 100), 100);
}

struct big_map {
	uint64_t cookie;
	size_t bytes;
	int fd, zero;
};

static void touch_by_read(void *arg, int ready)
{
	const struct big_map *big = arg;

	for (;;) {
		uint8_t *m = dv_map(big->fd, big->cookie, 0, big->bytes, BOTH);

		KM_TRUE(m != MAP_FAILED);
		KM_EQ(write(ready, "", 1), 1);
		KM_EQ(read(big->zero, m + big->bytes - page, 1), 1);
		KM_OK(munmap(m, big->bytes));
	}
}

/*
 * Killed while the kernel writes to a mapping for the first time, and far into it: the
 * process ends. The same pages over and over make a mapping that takes long to fill.
 */
static void killed_in_fault(void)
{
	enum { TIMES = 32, TRIES = 8 };
	const size_t span = (size_t)16 << 20;
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	struct big_map big = {.bytes = TIMES * span};
	uint8_t *p = km_pages(span);
	struct onecopy_segment segs[TIMES];

	big.fd = km_open_unlimited(dv_open);
	big.zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	KM_OK(big.zero);
	KM_OK(setrlimit(RLIMIT_MEMLOCK, &unlimited));
	madvise(p, span, MADV_NOHUGEPAGE);
	for (int i = 0; i < TIMES; i++)
		segs[i] = dv_seg(p, span);
	KM_OK(dv_create_try(big.fd, segs, TIMES, DV_RW, &big.cookie));
	for (int try = 0; try < TRIES; try++)
		km_kill_in(touch_by_read, &big, try);
}

/*
 * A kernel that checks page tables would panic: it maps nothing, and all else is as
 * ever.
 */
static void checked(void)
{
	uint8_t *p = km_pages(page), local[64];
	char line[4096];
	int fd = dv_open();
	uint64_t cookie = dv_create(fd, p, page, DV_RW);
	struct onecopy_map map;

	if (!km_read_text("/proc/cmdline", line, sizeof(line)) ||
	    !strstr(line, "page_table_check=on"))
		km_skip("only with page_table_check=on");
	if (dv_info(fd).features & ONECOPY_FEATURE_MAP)
		km_skip("this kernel cannot check page tables");
	KM_EQ(dv_info(fd).features & ONECOPY_FEATURE_HUGE_MAP, 0);
	KM_ERR(dv_map_try(fd, cookie, 0, page, ONECOPY_MAP_READ, &map), EOPNOTSUPP);
	KM_EQ(dv_read(fd, cookie, 0, local, sizeof(local)), sizeof(local));
}

/* Whether the process is held up in the kernel for a while, before there is something to read. */
static bool held_up(pid_t pid, int fd)
{
	struct pollfd end = {.fd = fd, .events = POLLIN};
	bool before = false;

	do {
		bool now = km_state(pid) == 'D';

		if (now && before)
			return true;
		before = now;
	} while (!poll(&end, 1, before ? 200 : 0));
	return false;
}

/*
 * A process over its memory.high is held up where it allocates: page tables of a mapping, too, half
 * of 2 MiB. Its peer does not wait for that, and the rest of what it mapped is not there any more.
 */
static void tables_over_high(void)
{
	enum { TIMES = 64, SPAN = 16 << 20 };
	struct onecopy_segment segs[TIMES];
	int fd = km_open_unlimited(dv_open);
	uint8_t *p = km_pages(SPAN);
	int way[2], end[2], sig = 0;
	uint64_t cookie;
	bool held;
	pid_t pid;

	madvise(p, SPAN, MADV_NOHUGEPAGE);
	for (int i = 0; i < TIMES; i++)
		segs[i] = dv_seg(p, SPAN);
	KM_OK(dv_create_try(fd, segs, TIMES, DV_RO | ONECOPY_REGION_ANY_USER, &cookie));
	KM_OK(pipe(way));
	KM_OK(pipe(end));
	pid = km_fork();
	if (pid == 0) {
		uint8_t *q = dv_map(dv_open(), cookie, 0, (uint64_t)TIMES * SPAN, READ);

		KM_TRUE(q != MAP_FAILED);
		km_enter_cgroup("+memory", "memory.high", "1M");
		KM_EQ(write(way[1], &sig, sizeof(sig)), sizeof(sig));
		sig = km_touch(q, false);
		KM_EQ(write(way[1], &sig, sizeof(sig)), sizeof(sig));
		KM_EQ(read(end[0], &sig, sizeof(sig)), sizeof(sig));
		km_leave_cgroup();
		_exit(0);
	}
	KM_OK(close(way[1]));
	/* Else it has said why. */
	if (read(way[0], &sig, sizeof(sig)) != sizeof(sig)) {
		km_join(pid);
		return;
	}
	held = held_up(pid, way[0]);
	KM_OK(dv_destroy(fd, cookie));
	KM_EQ(read(way[0], &sig, sizeof(sig)), sizeof(sig));
	KM_EQ(write(end[1], &sig, sizeof(sig)), sizeof(sig));
	km_join(pid);
	if (!held)
		km_skip("this kernel does not hold up who allocates page tables");
	KM_EQ(sig, SIGBUS);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "same_memory", .run = same_memory},
		{.name = "joined_segments", .run = joined_segments},
		{.name = "errors", .run = errors},
		{.name = "mmap_errors", .run = mmap_errors},
		{.name = "revoked", .run = revoked},
		{.name = "owner_closed", .run = owner_closed},
		{.name = "unmapped_in_parts", .run = unmapped_in_parts},
		{.name = "not_passed_on", .run = not_passed_on},
		{.name = "killed_in_fault", .run = killed_in_fault},
		{.name = "tables_over_high", .run = tables_over_high},
		{.name = "checked", .run = checked},
		{0},
	};

	page = km_page();
	return km_main(cases, argc, argv);
}
