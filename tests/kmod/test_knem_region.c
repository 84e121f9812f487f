// SPDX-License-Identifier: BSD-3-Clause
/* /dev/knem: regions, cookies, who may use them, and every error of CREATE and DESTROY. */
#include "knem.h"

#include <fcntl.h>
#include <stdlib.h>

#define BYTES 20000

static void info(void)
{
	struct knem_cmd_info info = {1, 2, 3, 4};
	int fd = kn_open();

	KM_OK(ioctl(fd, KNEM_CMD_GET_INFO, &info));
	KM_EQ(info.abi, KNEM_ABI_VERSION);
	KM_EQ(info.features & ~KNEM_FEATURE_DMA, 0);
	KM_EQ(info.ignored_flags, 0);
	KM_EQ(info.forced_flags, 0);
	KM_ERR(ioctl(fd, KNEM_CMD_GET_INFO, NULL), EFAULT);
}

/* The whole number counts: nr, size and direction. */
static void unknown_commands(void)
{
	const unsigned long bad[] = {
		_IO(KNEM_CMD_MAGIC, 0x10),
		_IOR(KNEM_CMD_MAGIC, 0x10, struct knem_cmd_info),
		_IOW(KNEM_CMD_MAGIC, 0x10, uint64_t),
		_IOWR(KNEM_CMD_MAGIC, 0x23, struct knem_cmd_create_region),
		_IOR(KNEM_CMD_MAGIC, 0x36, struct knem_cmd_copy),
		_IOW('J', 0x10, struct knem_cmd_info),
	};
	uint8_t space[64] = {0};
	int fd = kn_open();

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		KM_ERR(ioctl(fd, bad[i], space), ENOSYS);
}

static void create_errors(void)
{
	const size_t page = km_page();
	uint8_t *p = km_pages(4 * page);
	struct knem_cmd_param_iovec iov = kn_iov(p, 3 * page);
	knem_cookie_t cookie;
	int fd = kn_open();

	KM_OK(munmap(p + 3 * page, page));
	KM_ERR(ioctl(fd, KNEM_CMD_CREATE_REGION, NULL), EFAULT);
	KM_ERR(kn_create_try(fd, NULL, 1, PROT_READ, 0, &cookie), EFAULT);
	KM_ERR(kn_create_try(fd, (void *)(p + 3 * page - 8), 1, PROT_READ, 0, &cookie), EFAULT);
	KM_OK(munmap(p + page, page));
	KM_ERR(kn_create_try(fd, &iov, 1, PROT_READ, 0, &cookie), EFAULT);
	iov = kn_iov((void *)(uintptr_t)0xffff800000000000, page);
	KM_ERR(kn_create_try(fd, &iov, 1, PROT_READ, 0, &cookie), EFAULT);
	iov = kn_iov(p, SIZE_MAX - 10);
	KM_TRUE(kn_create_try(fd, &iov, 1, PROT_READ, 0, &cookie) == -1);
	KM_TRUE(errno == EFAULT || errno == EINVAL || errno == ENOMEM);
	/* A count no array of segments can have. */
	KM_TRUE(kn_create_try(fd, &iov, UINT32_MAX, PROT_READ, 0, &cookie) == -1);
	KM_TRUE(errno == EFAULT || errno == EINVAL || errno == ENOMEM);
}

static void read_only_memory(void)
{
	uint8_t *p = km_pages(BYTES), got[BYTES];
	struct knem_cmd_param_iovec iov = kn_iov(p, BYTES);
	knem_cookie_t cookie;
	int fd = kn_open();

	km_fill(p, BYTES, 1);
	KM_OK(mprotect(p, BYTES, PROT_READ));
	KM_ERR(kn_create_try(fd, &iov, 1, KN_RW, 0, &cookie), EFAULT);
	KM_ERR(kn_create_try(fd, &iov, 1, PROT_WRITE, 0, &cookie), EFAULT);
	KM_OK(kn_create_try(fd, &iov, 1, PROT_READ, 0, &cookie));
	kn_get(fd, cookie, 0, got, BYTES);
	KM_EQ(km_differ(got, BYTES, 1), BYTES);
	KM_OK(mprotect(p, BYTES, PROT_NONE));
	KM_ERR(kn_create_try(fd, &iov, 1, PROT_READ, 0, &cookie), EFAULT);
}

/* Empty segments are skipped, wherever they point; a region may be all empty. */
static void empty_segments(void)
{
	uint8_t *p = km_pages(BYTES), got[BYTES];
	struct knem_cmd_param_iovec iov[] = {
		{.base = 8, .len = 0},	kn_iov(p, 100), {.base = UINT64_MAX, .len = 0},
		kn_iov(p + 5000, 3000), kn_iov(p, 0),
	};
	knem_cookie_t cookie, nothing;
	int fd = kn_open();

	km_fill(p, BYTES, 2);
	KM_OK(kn_create_try(fd, iov, 5, PROT_READ, 0, &cookie));
	memset(got, 0x55, BYTES);
	kn_get(fd, cookie, 0, got, BYTES);
	KM_TRUE(!memcmp(got, p, 100) && !memcmp(got + 100, p + 5000, 3000));
	KM_EQ(got[3100], 0x55);

	KM_OK(kn_create_try(fd, iov, 1, PROT_READ, 0, &nothing));
	kn_get(fd, nothing, 0, got, BYTES);
	KM_EQ(got[3100], 0x55);
	KM_OK(kn_create_try(fd, NULL, 0, PROT_READ, 0, &nothing));
	kn_get(fd, nothing, 0, got, BYTES);
	KM_OK(kn_destroy(fd, nothing));
}

/* Irrelevant and unknown flags of CREATE, and protection bits, are dropped. */
static void create_flags(void)
{
	uint8_t *p = km_pages(BYTES), got[8];
	int fd = kn_open();
	knem_cookie_t cookie = kn_create(fd, p, BYTES, PROT_READ, 0xffffff00 | 0x5f);

	for (int i = 0; i < 3; i++)
		kn_get(fd, cookie, 0, got, 8);
}

static void protection(void)
{
	uint8_t *p = km_pages(BYTES), local[64] = {1};
	int fd = kn_open();
	knem_cookie_t none = kn_create(fd, p, BYTES, 0, 0);
	knem_cookie_t ro = kn_create(fd, p, BYTES, PROT_READ, 0);
	knem_cookie_t wo = kn_create(fd, p, BYTES, PROT_WRITE, 0);

	KM_ERR(kn_inline(fd, none, 0, local, 64, false, 0), EACCES);
	KM_ERR(kn_inline(fd, none, 0, local, 64, true, 0), EACCES);
	KM_ERR(kn_inline(fd, ro, 0, local, 64, true, 0), EACCES);
	KM_ERR(kn_inline(fd, wo, 0, local, 64, false, 0), EACCES);
	KM_ERR(kn_copy(fd, wo, 0, wo, 64, 0, 0), EACCES);
	KM_ERR(kn_copy(fd, ro, 0, ro, 64, 0, 0), EACCES);
	/* Also where nothing would move. */
	KM_ERR(kn_inline(fd, ro, BYTES, local, 0, true, 0), EACCES);
	KM_EQ(p[0], 0);
	kn_get(fd, ro, 0, local, 64);
	local[0] = 7;
	kn_put(fd, wo, 0, local, 64);
	KM_EQ(p[0], 7);
	KM_EQ(kn_copy_bounded(fd, ro, 0, wo, 64, 64, 0, 0), KNEM_STATUS_SUCCESS);
	KM_EQ(p[64], 7);
}

static void unknown_cookies(void)
{
	uint8_t *p = km_pages(BYTES), local[64];
	int fd = kn_open(), other = kn_open();
	knem_cookie_t cookie = kn_create(fd, p, BYTES, KN_RW, 0), bad[3 + 64];
	size_t n = 0;

	bad[n++] = 0;
	bad[n++] = UINT64_MAX;
	bad[n++] = KN_GARBAGE;
	for (int bit = 0; bit < 64; bit++)
		bad[n++] = cookie ^ 1ull << bit;
	for (size_t i = 0; i < n; i++) {
		KM_ERR(kn_inline(fd, bad[i], 0, local, 64, false, 0), EINVAL);
		KM_ERR(kn_copy(fd, bad[i], 0, cookie, 0, 0, 0), EINVAL);
		KM_ERR(kn_copy(fd, cookie, 0, bad[i], 0, 0, 0), EINVAL);
		KM_ERR(kn_destroy(fd, bad[i]), EINVAL);
	}
	/* Usable through any descriptor, destroyed through its own. */
	kn_get(other, cookie, 0, local, 64);
	KM_ERR(kn_destroy(other, cookie), EINVAL);
	KM_ERR(ioctl(fd, KNEM_CMD_DESTROY_REGION, NULL), EFAULT);
	KM_OK(kn_destroy(fd, cookie));
	KM_ERR(kn_destroy(fd, cookie), EINVAL);
	KM_ERR(kn_inline(other, cookie, 0, local, 64, false, 0), EINVAL);
}

/* Cookies of neighbours do not follow from each other, nor are they used again. */
static void cookies_differ(void)
{
	enum { N = 512 };
	static knem_cookie_t seen[2 * N];
	uint8_t *p = km_pages(km_page());
	int fd = kn_open();

	for (int i = 0; i < 2 * N; i++) {
		seen[i] = kn_create(fd, p, 1, PROT_READ, 0);
		for (int j = 0; j < i; j++)
			KM_TRUE(seen[i] != seen[j]);
		if (i < N)
			KM_OK(kn_destroy(fd, seen[i]));
	}
}

static void single_use(void)
{
	uint8_t *p = km_pages(BYTES), local[64];
	int fd = kn_open();
	knem_cookie_t rw = kn_create(fd, km_pages(BYTES), BYTES, KN_RW, 0), once;
	const uint32_t flag = KNEM_FLAG_SINGLEUSE;

	once = kn_create(fd, p, BYTES, PROT_READ, flag);
	kn_get(fd, once, 0, local, 64);
	KM_ERR(kn_inline(fd, once, 0, local, 64, false, 0), EINVAL);
	KM_ERR(kn_destroy(fd, once), EINVAL);
	/* Nothing to move is a use. */
	once = kn_create(fd, p, BYTES, PROT_READ, flag);
	kn_get(fd, once, BYTES, local, 64);
	KM_ERR(kn_inline(fd, once, 0, local, 64, false, 0), EINVAL);
	/* A copy that fails is a use. */
	once = kn_create(fd, p, BYTES, PROT_READ, flag);
	KM_EQ(kn_inline(fd, once, 0, (void *)8, 64, false, 0), KNEM_STATUS_FAILED);
	KM_ERR(kn_inline(fd, once, 0, local, 64, false, 0), EINVAL);
	/* A refused lookup is none. */
	once = kn_create(fd, p, BYTES, PROT_READ, flag);
	KM_ERR(kn_inline(fd, once, 0, local, 64, true, 0), EACCES);
	kn_get(fd, once, 0, local, 64);
	/* The source is looked up first, so a bad destination uses it up. */
	once = kn_create(fd, p, BYTES, PROT_READ, flag);
	KM_ERR(kn_copy(fd, once, 0, 0, 0, 0, 0), EINVAL);
	KM_ERR(kn_inline(fd, once, 0, local, 64, false, 0), EINVAL);
	/* But a bad source leaves the destination. */
	once = kn_create(fd, p, BYTES, PROT_WRITE, flag);
	KM_ERR(kn_copy(fd, 0, 0, once, 0, 0, 0), EINVAL);
	KM_EQ(kn_copy(fd, rw, 0, once, 0, 0, 0), KNEM_STATUS_SUCCESS);
	KM_ERR(kn_copy(fd, rw, 0, once, 0, 0, 0), EINVAL);
	/* Destroyed unused. */
	once = kn_create(fd, p, BYTES, PROT_READ, flag);
	KM_OK(kn_destroy(fd, once));
}

/* Unknown, then user, then protection; the capability of root changes nothing. */
static void other_user(void)
{
	uint8_t *p = km_pages(BYTES), local[64];
	int fd = kn_open(), own = kn_open();
	knem_cookie_t ro = kn_create(fd, p, BYTES, PROT_READ, 0);
	knem_cookie_t any = kn_create(fd, p, BYTES, PROT_READ, KNEM_FLAG_ANY_USER_ACCESS);
	pid_t pid = km_fork();

	if (pid == 0) {
		if (setresuid(KM_OTHER_USER, 0, 0))
			km_skip("needs root to become another user");
		KM_ERR(kn_inline(own, ro, 0, local, 64, false, 0), EPERM);
		km_drop(KM_OTHER_USER);
		KM_ERR(kn_inline(own, 0, 0, local, 64, false, 0), EINVAL);
		KM_ERR(kn_inline(own, ro, 0, local, 64, false, 0), EPERM);
		KM_ERR(kn_inline(own, ro, 0, local, 64, true, 0), EPERM);
		KM_ERR(kn_inline(fd, ro, 0, local, 64, false, 0), EPERM);
		KM_ERR(kn_copy(own, ro, 0, any, 0, 0, 0), EPERM);
		KM_ERR(kn_inline(own, any, 0, local, 64, true, 0), EACCES);
		/* The flag acts at CREATE, not when a copy names it. */
		KM_ERR(kn_inline(own, ro, 0, local, 64, false, KNEM_FLAG_ANY_USER_ACCESS), EPERM);
		kn_get(own, any, 0, local, 64);
		/* What is made through root's descriptor is root's. */
		any = kn_create(own, p, BYTES, PROT_READ, 0);
		KM_ERR(kn_inline(own, any, 0, local, 64, false, 0), EPERM);
		_exit(0);
	}
	km_join(pid);
	kn_get(own, ro, 0, local, 64);
}

/* A refused user does not use up a region meant for another. */
static void other_user_single(void)
{
	uint8_t *p = km_pages(BYTES), local[64];
	int fd = kn_open();
	knem_cookie_t once = kn_create(fd, p, BYTES, PROT_READ, KNEM_FLAG_SINGLEUSE);
	pid_t pid = km_fork();

	if (pid == 0) {
		km_drop(KM_OTHER_USER);
		KM_ERR(kn_inline(fd, once, 0, local, 64, false, 0), EPERM);
		_exit(0);
	}
	km_join(pid);
	kn_get(fd, once, 0, local, 64);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "info", .run = info},
		{.name = "unknown_commands", .run = unknown_commands},
		{.name = "create_errors", .run = create_errors},
		{.name = "read_only_memory", .run = read_only_memory},
		{.name = "empty_segments", .run = empty_segments},
		{.name = "create_flags", .run = create_flags},
		{.name = "protection", .run = protection},
		{.name = "unknown_cookies", .run = unknown_cookies},
		{.name = "cookies_differ", .run = cookies_differ},
		{.name = "single_use", .run = single_use},
		{.name = "other_user", .run = other_user},
		{.name = "other_user_single", .run = other_user_single},
		{0},
	};

	return km_main(cases, argc, argv);
}
