// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.h"

#include <fcntl.h>

/* Private, shared, read-only and missing memory, a quarter each. */
#define QUARTER (256u << 10)
#define ARENA	(4 * QUARTER)
/* Segments that run over the end of the arena meet nothing but holes. */
#define BESIDE (64u << 20)
#define CANARY 0x6b
#define HUGE   (FUZZ_HUGE / 2)

/* Address space at a place where huge pages fit. */
static uint8_t *reserve(size_t bytes)
{
	const int how = MAP_PRIVATE | MAP_ANONYMOUS;
	uint8_t *p = mmap(NULL, bytes + HUGE, PROT_NONE, how, -1, 0);
	size_t before = -(uintptr_t)p & (HUGE - 1);

	KM_TRUE(p != MAP_FAILED);
	if (before)
		munmap(p, before);
	p += before;
	if (before < HUGE)
		munmap(p + bytes, HUGE - before);
	return p;
}

void fuzz_init(struct fuzz *f, uint64_t seed, struct fuzz_shared *shared)
{
	const int fixed = MAP_FIXED | MAP_ANONYMOUS;
	const size_t page = km_page();
	uint8_t *space =
		mmap(NULL, ARENA + 2 * BESIDE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	KM_TRUE(space != MAP_FAILED);
	*f = (struct fuzz){.seed = seed, .shared = shared, .arena = space + BESIDE};
	KM_TRUE(mmap(f->arena - page, page + QUARTER, KN_RW, MAP_PRIVATE | fixed, -1, 0) !=
		MAP_FAILED);
	KM_TRUE(mmap(f->arena + QUARTER, QUARTER, KN_RW, MAP_SHARED | fixed, -1, 0) != MAP_FAILED);
	KM_TRUE(mmap(f->arena + 2 * QUARTER, QUARTER, PROT_READ, MAP_PRIVATE | fixed, -1, 0) !=
		MAP_FAILED);
	memset(f->arena - page, CANARY, page);
	f->huge = reserve(FUZZ_HUGE);
	KM_OK(mprotect(f->huge, FUZZ_HUGE, KN_RW));
	if (madvise(f->huge, FUZZ_HUGE, MADV_HUGEPAGE))
		f->huge = NULL;
	for (int i = 0; i < FUZZ_FILES; i++) {
		f->fd[FUZZ_ONECOPY][i] = dv_open_as(O_RDWR | O_NONBLOCK);
		f->fd[FUZZ_KNEM][i] = kn_open_as(O_RDWR | O_NONBLOCK);
	}
}

void fuzz_close(struct fuzz *f)
{
	for (int i = 0; i < FUZZ_FILES; i++) {
		close(f->fd[FUZZ_ONECOPY][i]);
		close(f->fd[FUZZ_KNEM][i]);
	}
}

void fuzz_check(const struct fuzz *f)
{
	const size_t page = km_page();

	for (size_t i = 1; i <= page; i++)
		KM_EQ(f->arena[-i], CANARY);
	for (size_t i = 0; i < QUARTER; i++)
		KM_EQ(f->arena[2 * QUARTER + i], 0);
}

uint64_t fuzz_below(struct fuzz *f, uint64_t n)
{
	return km_below(&f->seed, n);
}

bool fuzz_one_in(struct fuzz *f, uint64_t n)
{
	return !fuzz_below(f, n);
}

int fuzz_fd(struct fuzz *f, enum fuzz_device device)
{
	/* A file of the wrong kind, or none. */
	if (fuzz_one_in(f, 300))
		return f->fd[!device][0];
	if (fuzz_one_in(f, 300))
		return -1;
	return f->fd[device][fuzz_below(f, FUZZ_FILES)];
}

uint64_t fuzz_cookie(struct fuzz *f, enum fuzz_device device)
{
	uint64_t cookie = f->shared->cookie[device][fuzz_below(f, FUZZ_COOKIES)];

	if (fuzz_one_in(f, 20))
		return cookie ^ 1ull << fuzz_below(f, 64);
	/* Of the other device: the same table of regions. */
	if (fuzz_one_in(f, 20))
		return f->shared->cookie[!device][fuzz_below(f, FUZZ_COOKIES)];
	return fuzz_one_in(f, 30) ? random_next(&f->seed) : cookie;
}

void fuzz_keep(struct fuzz *f, enum fuzz_device device, uint64_t cookie)
{
	f->shared->cookie[device][fuzz_below(f, FUZZ_COOKIES)] = cookie;
}

uint64_t fuzz_offset(struct fuzz *f)
{
	switch (fuzz_below(f, 8)) {
	case 0:
		return random_next(&f->seed);
	case 1:
		return UINT64_MAX - fuzz_below(f, 9000);
	case 2:
		return fuzz_below(f, 64) * 4096;
	case 3:
		return fuzz_one_in(f, 4) ? HUGE : fuzz_below(f, 2 * QUARTER);
	default:
		return fuzz_below(f, 5000);
	}
}

/* Huge pages in whole, or some of one. */
static struct onecopy_segment huge_segment(struct fuzz *f)
{
	size_t from = fuzz_one_in(f, 2) ? 0 : fuzz_below(f, HUGE);
	size_t bytes = fuzz_one_in(f, 2) ? FUZZ_HUGE - from : fuzz_below(f, 20000);

	return dv_seg(f->huge + from, bytes);
}

static struct onecopy_segment segment(struct fuzz *f)
{
	/* Mostly in the half that may be written. */
	size_t at = fuzz_below(f, fuzz_one_in(f, 20) ? ARENA : 2 * QUARTER - 20000);
	size_t bytes = fuzz_one_in(f, 3) ? fuzz_below(f, 20000) : fuzz_below(f, 300);

	if (f->huge && fuzz_one_in(f, 30))
		return huge_segment(f);
	if (fuzz_one_in(f, 3))
		at &= ~(size_t)4095;
	if (fuzz_one_in(f, 4))
		bytes = (bytes + 4095) & ~(size_t)4095;
	if (fuzz_one_in(f, 100))
		bytes = fuzz_below(f, BESIDE);
	if (fuzz_one_in(f, 200))
		return (struct onecopy_segment){.addr = UINT64_MAX - fuzz_below(f, 5000),
						.length = bytes};
	return dv_seg(f->arena + at, bytes);
}

uint64_t fuzz_segments(struct fuzz *f, uint32_t *nr)
{
	*nr = 1 + (fuzz_one_in(f, 3) ? fuzz_below(f, FUZZ_SEGMENTS) : 0);
	for (uint32_t i = 0; i < *nr && i < FUZZ_SEGMENTS; i++)
		f->segs[i] = segment(f);
	if (*nr > FUZZ_SEGMENTS)
		*nr = FUZZ_SEGMENTS;
	if (fuzz_one_in(f, 300)) {
		/* No memory is there for so many: the kernel must see the end. */
		*nr = 1u << (17 + fuzz_below(f, 15));
		return (uintptr_t)f->arena + 3 * QUARTER - 16;
	}
	return fuzz_one_in(f, 200) ? fuzz_offset(f) % 4096 : (uintptr_t)f->segs;
}

uint8_t *fuzz_pages(struct fuzz *f, size_t *bytes)
{
	*bytes = (1 + fuzz_below(f, 4)) * 4096;
	if (f->huge && fuzz_one_in(f, 4))
		return f->huge + fuzz_below(f, FUZZ_HUGE - *bytes) / 4096 * 4096;
	return f->arena + fuzz_below(f, 120) * 4096;
}

uint32_t fuzz_flags(struct fuzz *f, uint32_t mask)
{
	uint32_t flags = random_next(&f->seed) & mask;

	return fuzz_one_in(f, 40) ? flags ^ 1u << fuzz_below(f, 32) : flags;
}

void fuzz_mutate(struct fuzz *f, void *arg, size_t bytes)
{
	uint32_t *word = arg;
	size_t at = fuzz_below(f, bytes / 4);

	if (!fuzz_one_in(f, 30))
		return;
	switch (fuzz_below(f, 4)) {
	case 0:
		word[at] = 0;
		break;
	case 1:
		/* As upper half of an address this is none of a process. */
		word[at] = UINT32_MAX - fuzz_below(f, 3);
		break;
	case 2:
		word[at] = fuzz_below(f, 4096);
		if (at & 1)
			word[at] |= 0x80000000;
		else
			word[at ^ 1] |= 0x80000000;
		break;
	default:
		word[0] += fuzz_below(f, 64) - 32;
	}
}

int fuzz_call(struct fuzz *f, int fd, unsigned long command, void *arg, const int *errnos)
{
	int ret, err;

	f->calls++;
	ret = ioctl(fd, command, arg);
	if (ret != -1) {
		f->done++;
		return ret;
	}
	err = errno;
	/* A closed descriptor, or one of the other device. */
	if (err == EBADF || err == ENOTTY || err == ENOSYS)
		return -1;
	while (*errnos && *errnos != err)
		errnos++;
	if (!*errnos)
		km_fail(__FILE__, __LINE__, "request %#lx: %s is no errno of it", command,
			strerror(err));
	errno = err;
	return -1;
}

void fuzz_map(struct fuzz *f, int fd, size_t bytes, uint64_t offset)
{
	int prot = fuzz_one_in(f, 3) ? PROT_READ : KN_RW;
	int how = fuzz_one_in(f, 50) ? MAP_PRIVATE : MAP_SHARED;
	size_t slot = fuzz_below(f, FUZZ_MAPPINGS);
	void *p, *at = NULL;

	f->calls++;
	if (fuzz_one_in(f, 30))
		bytes += km_page();
	if (bytes >= HUGE && bytes <= 2 * FUZZ_HUGE) {
		at = reserve(bytes);
		how |= MAP_FIXED;
	}
	p = mmap(at, bytes, prot, how, fd, offset);
	if (p == MAP_FAILED) {
		if (at)
			munmap(at, bytes);
		return;
	}
	f->done++;
	if (f->mapping[slot].at)
		munmap(f->mapping[slot].at, f->mapping[slot].bytes);
	f->mapping[slot].at = p;
	f->mapping[slot].bytes = bytes;
}

void fuzz_unmap(struct fuzz *f)
{
	size_t slot = fuzz_below(f, FUZZ_MAPPINGS);
	uint8_t *at = f->mapping[slot].at;
	size_t bytes = f->mapping[slot].bytes;

	if (!at)
		return;
	km_touch(at + fuzz_below(f, bytes), fuzz_one_in(f, 2));
	if (fuzz_one_in(f, 3)) {
		munmap(at, bytes);
		f->mapping[slot].at = NULL;
	} else if (fuzz_one_in(f, 3)) {
		/* The rest stays; a hole may be unmapped again. */
		munmap(at + fuzz_below(f, bytes) / km_page() * km_page(), km_page());
	} else if (fuzz_one_in(f, 4)) {
		mprotect(at, bytes, fuzz_one_in(f, 2) ? PROT_READ : KN_RW);
	}
}

void fuzz_reopen(struct fuzz *f, enum fuzz_device device)
{
	size_t i = fuzz_below(f, FUZZ_FILES);
	const char *path = device == FUZZ_KNEM ? KNEM_DEVICE_FILENAME : ONECOPY_DEVICE;
	int fd = open(path, (fuzz_one_in(f, 50) ? O_RDONLY : O_RDWR) | O_NONBLOCK | O_CLOEXEC);

	/* Too many are open. */
	if (fd < 0)
		return;
	close(f->fd[device][i]);
	f->fd[device][i] = fd;
}
