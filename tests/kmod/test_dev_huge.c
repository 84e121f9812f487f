// SPDX-License-Identifier: BSD-3-Clause
/*
 * /dev/onecopy: huge pages mapped by huge entries, and all that the kernel and its
 * users do to such entries: they must stay memory of the region alone, that nobody
 * else can get a hold of, and be gone with it.
 */
#include "dev.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/uio.h>

#define HUGE  ((size_t)2 << 20)
#define BYTES (2 * HUGE)
#define BOTH  (ONECOPY_MAP_READ | ONECOPY_MAP_WRITE)

struct scene {
	int fd;
	uint64_t cookie;
	uint8_t *p, *m;
};

static size_t page;

/* Address space, at a place where huge entries fit. */
static uint8_t *reserve(size_t bytes)
{
	uint8_t *p = mmap(NULL, bytes + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	KM_TRUE(p != MAP_FAILED);
	return p + (-(uintptr_t)p & (HUGE - 1));
}

/* Two huge pages, and a mapping of them by two huge entries. */
static struct scene scene(void)
{
	struct scene s = {.fd = dv_open(), .p = reserve(BYTES), .m = reserve(BYTES)};
	struct onecopy_map map;

	dv_need(s.fd, ONECOPY_FEATURE_HUGE_MAP, "huge entries");
	KM_TRUE(mmap(s.p, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		     -1, 0) == s.p);
	if (madvise(s.p, BYTES, MADV_HUGEPAGE))
		km_skip("no transparent huge pages here");
	km_fill(s.p, BYTES, 1);
	s.cookie = dv_create(s.fd, s.p, BYTES, DV_RW);
	KM_OK(dv_map_try(s.fd, s.cookie, 0, BYTES, BOTH, &map));
	if (map.align != HUGE)
		km_skip("no huge page to be had");
	KM_EQ(map.align_offset, 0);
	KM_TRUE(mmap(s.m, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, s.fd,
		     map.map_offset) == s.m);
	KM_EQ(km_touch(s.m, true), 0);
	return s;
}

/* What the mapping shows from byte at on is the region's. */
static void same(const struct scene *s, const uint8_t *m, size_t at, size_t bytes)
{
	KM_TRUE(!memcmp(m, s->p + at, bytes));
}

static void gone(struct scene *s, uint8_t *m, size_t bytes)
{
	KM_OK(dv_destroy(s->fd, s->cookie));
	for (size_t at = 0; at < bytes; at += 64 * page) {
		KM_EQ(km_touch(m + at, false), SIGBUS);
		KM_EQ(km_touch(m + at, true), SIGBUS);
	}
}

static void protection(void)
{
	struct scene s = scene();

	KM_OK(mprotect(s.m, BYTES, PROT_READ));
	KM_EQ(km_touch(s.m, true), SIGSEGV);
	same(&s, s.m, 0, BYTES);
	KM_OK(mprotect(s.m, BYTES, PROT_NONE));
	KM_EQ(km_touch(s.m + HUGE, false), SIGSEGV);
	KM_OK(mprotect(s.m, BYTES, PROT_READ | PROT_WRITE));
	km_fill(s.m, BYTES, 2);
	KM_EQ(km_differ(s.p, BYTES, 2), BYTES);
	/* One page of it: the entry is split. */
	KM_OK(mprotect(s.m + 5 * page, page, PROT_READ));
	KM_EQ(km_touch(s.m + 5 * page, true), SIGSEGV);
	KM_EQ(km_touch(s.m + 6 * page, true), 0);
	KM_ERR(mprotect(s.m, page, PROT_READ | PROT_EXEC), EACCES);
	same(&s, s.m, 0, BYTES);
	gone(&s, s.m, BYTES);
}

static void parts(void)
{
	struct scene s = scene();

	KM_OK(munmap(s.m + 7 * page, page));
	KM_EQ(km_touch(s.m + 7 * page, false), SIGSEGV);
	same(&s, s.m, 0, 7 * page);
	same(&s, s.m + 8 * page, 8 * page, BYTES - 8 * page);
	gone(&s, s.m + 8 * page, BYTES - 8 * page);
}

static void moves(void)
{
	struct scene s = scene();
	uint8_t *fits = reserve(2 * BYTES), *odd = fits + BYTES + page;

	/* As one, by its parts, and to where no huge entry fits. */
	fits = mremap(s.m, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, fits);
	KM_TRUE(fits != MAP_FAILED);
	same(&s, fits, 0, BYTES);
	odd = mremap(fits + HUGE, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_FIXED, odd);
	KM_TRUE(odd != MAP_FAILED);
	same(&s, odd, HUGE, HUGE);
	km_fill(odd, HUGE, 3);
	KM_EQ(km_differ(s.p + HUGE, HUGE, 3), HUGE);
	same(&s, fits, 0, HUGE);
	KM_EQ(km_touch(odd, false), 0);
	gone(&s, fits, HUGE);
	KM_EQ(km_touch(odd, false), SIGBUS);
	KM_EQ(km_touch(odd + HUGE - page, true), SIGBUS);
}

/* Nobody can pin what a peer was shown: it would outlive the region. */
static void not_pinned(void)
{
	struct scene s = scene();
	struct onecopy_segment seg = dv_seg(s.m, HUGE);
	struct iovec iov = {s.m + page, page};
	uint64_t cookie;
	int ends[2];
	pid_t pid;

	KM_ERR(dv_create_try(s.fd, &seg, 1, DV_RO, &cookie), EFAULT);
	KM_ERR(dv_create_try(s.fd, &seg, 1, DV_RW, &cookie), EFAULT);
	KM_OK(pipe(ends));
	KM_ERR(vmsplice(ends[1], &iov, 1, 0), EFAULT);
	pid = km_fork();
	if (pid == 0) {
		struct iovec to = {km_pages(page), page};

		KM_ERR(process_vm_readv(getppid(), &to, 1, &iov, 1, 0), EFAULT);
		KM_EQ(km_touch(s.m, false), SIGSEGV);
		_exit(0);
	}
	km_join(pid);
	gone(&s, s.m, BYTES);
}

/* All that looks at a process's page tables. */
static void looked_at(void)
{
	static const char *const files[] = {"smaps", "smaps_rollup", "numa_maps", "maps", "status"};
	struct scene s = scene();
	static char text[1 << 16];
	unsigned char in[BYTES / 4096];
	uint64_t entries[4];
	char path[64];
	int fd;

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "/proc/self/%s", files[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		while (read(fd, text, sizeof(text)) > 0)
			;
		close(fd);
	}
	fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		KM_EQ(pread(fd, entries, sizeof(entries), (uintptr_t)s.m / page * 8),
		      sizeof(entries));
	km_write_text("/proc/self/clear_refs", "1");
	km_write_text("/proc/self/clear_refs", "4");
	fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	KM_OK(fd);
	KM_TRUE(pread(fd, text, 64, (uintptr_t)s.m) == -1);
	mincore(s.m, BYTES, in);
	/* Advice is for the owner to give. */
	for (int advice = 0; advice < 32; advice++)
		if (advice != MADV_DONTDUMP && advice != MADV_DONTFORK)
			madvise(s.m, HUGE, advice);
	mlock(s.m, BYTES);
	munlock(s.m, BYTES);
	same(&s, s.m, 0, BYTES);
	gone(&s, s.m, BYTES);
}

/* Soft-dirty tracking wants to hear of the first write: it is let through after that. */
static void soft_dirty(void)
{
	static const char again[] = "4";
	struct scene s = scene();
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct onecopy_map map;

	KM_OK(zero);
	if (!km_write_text("/proc/self/clear_refs", again))
		km_skip("no soft-dirty tracking");
	/* Mapped before, by huge entries. */
	KM_EQ(km_touch(s.m, true), 0);
	for (int by_kernel = 0; by_kernel < 2; by_kernel++) {
		KM_OK(munmap(s.m, BYTES));
		KM_OK(dv_map_try(s.fd, s.cookie, 0, BYTES, BOTH, &map));
		KM_TRUE(mmap(s.m, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, s.fd,
			     map.map_offset) == s.m);
		KM_TRUE(km_write_text("/proc/self/clear_refs", again));
		if (by_kernel)
			KM_EQ(read(zero, s.m + HUGE, 1), 1);
		else
			KM_EQ(km_touch(s.m + HUGE, true), 0);
		KM_EQ(km_touch(s.m, false), 0);
		KM_EQ(km_touch(s.m, true), 0);
		same(&s, s.m, 0, BYTES);
	}
	gone(&s, s.m, BYTES);
}

/* Memory of the huge page is used for other things at once. */
static void given_back(void)
{
	struct scene s = scene();

	KM_OK(dv_destroy(s.fd, s.cookie));
	KM_OK(munmap(s.p, BYTES));
	for (int i = 0; i < 16; i++) {
		uint8_t *p = km_pages(HUGE);

		memset(p, 0xee, HUGE);
		KM_EQ(km_touch(s.m + i * HUGE / 8, false), SIGBUS);
		KM_OK(munmap(p, HUGE));
	}
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "protection", .run = protection},
		{.name = "parts", .run = parts},
		{.name = "moves", .run = moves},
		{.name = "not_pinned", .run = not_pinned},
		{.name = "looked_at", .run = looked_at},
		{.name = "soft_dirty", .run = soft_dirty},
		{.name = "given_back", .run = given_back},
		{0},
	};

	page = km_page();
	return km_main(cases, argc, argv);
}
