// SPDX-License-Identifier: BSD-3-Clause
/* /dev/knem: what a descriptor is: modes, statistics, close, fork, and pages that were pinned. */
#include "knem.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#define BYTES 65536

static void modes(void)
{
	struct knem_cmd_info info;
	int ro = kn_open_as(O_RDONLY), wo = kn_open_as(O_WRONLY);
	struct pollfd p = {.fd = ro, .events = POLLIN};
	char text[4096];
	ssize_t n = read(ro, text, sizeof(text) - 1);

	KM_TRUE(n > 0);
	text[n] = 0;
	/* Version, ABI and flags, counters: text of several lines. */
	KM_TRUE(strchr(text, '\n') != NULL);
	KM_TRUE(strcasestr(text, "abi") != NULL);
	KM_TRUE(strstr(text, "0xd") || strstr(text, "0x0000000d") || strstr(text, "0x000000d"));
	KM_EQ(read(ro, text, sizeof(text)), 0);
	KM_ERR(ioctl(ro, KNEM_CMD_GET_INFO, &info), EBADF);
	KM_TRUE(mmap(NULL, 4096, PROT_READ, MAP_SHARED, ro, 0) == MAP_FAILED);
	KM_EQ(errno, EBADF);
	/* Once more: the original followed a null pointer here. */
	KM_OK(poll(&p, 1, 0));
	KM_OK(ioctl(wo, KNEM_CMD_GET_INFO, &info));
	KM_EQ(info.abi, KNEM_ABI_VERSION);
}

/* What a counter of the statistics says; they are thirteen. */
static long long statistic(const char *name)
{
	char text[4096], *line, *rest = text;
	int ro = kn_open_as(O_RDONLY), found = 0;
	ssize_t n = read(ro, text, sizeof(text) - 1);
	long long value = -1;

	KM_TRUE(n > 0);
	text[n] = 0;
	while ((line = strsep(&rest, "\n"))) {
		char *colon = strstr(line, ": ");

		if (!strncmp(line, " Re", 3) && colon)
			found++;
		if (colon && !strncmp(line + 1, name, strlen(name)))
			value = strtoll(colon + 2, NULL, 10);
	}
	KM_EQ(found, 13);
	KM_OK(close(ro));
	return value;
}

static void counters(void)
{
	static const char *const moved[] = {
		"Regions Created",
		"Regions Destroyed",
		"Requests Submitted",
		"Requests Processed/Thread",
		"Requests Processed/PinLocal",
		"Requests Rejected/BadAddress",
		"Requests Rejected/Invalid",
		"Requests Rejected/Protection",
		"Requests Rejected/Busy",
		"Requests Failed",
	};
	enum { N = sizeof(moved) / sizeof(*moved) };
	uint8_t *p = km_pages(BYTES), local[64];
	long long before[N];
	int fd = kn_open();
	volatile knem_status_t *slot = kn_array(fd, 1);
	knem_cookie_t cookie;

	for (int i = 0; i < N; i++) {
		before[i] = statistic(moved[i]);
		KM_TRUE(before[i] >= 0);
	}
	cookie = kn_create(fd, p, BYTES, PROT_READ, 0);
	KM_OK(kn_inline_async(fd, cookie, 0, local, 64, false, KNEM_FLAG_MEMCPYTHREAD, 0));
	KM_EQ(kn_wait(slot), KNEM_STATUS_SUCCESS);
	KM_ERR(kn_inline(fd, cookie, 0, (void *)8, 64, false, KNEM_FLAG_PINLOCAL), EFAULT);
	KM_ERR(kn_inline(fd, 0, 0, local, 64, false, 0), EINVAL);
	KM_ERR(kn_inline(fd, cookie, 0, local, 64, true, 0), EACCES);
	KM_ERR((intptr_t)mmap(NULL, 1, KN_RW, MAP_SHARED, fd, 0), EBUSY);
	KM_ERR(ioctl(fd, KNEM_CMD_BIND_OFFLOAD,
		     &(struct knem_cmd_bind_offload){.flags = KNEM_BIND_FLAG_CURRENT}),
	       EBUSY);
	KM_EQ(kn_inline(fd, cookie, 0, (void *)8, 64, false, 0), KNEM_STATUS_FAILED);
	KM_OK(kn_destroy(fd, cookie));
	for (int i = 0; i < N; i++)
		if (statistic(moved[i]) <= before[i])
			km_fail(__FILE__, __LINE__, "%s did not move", moved[i]);
}

/* Reading in small pieces gives the text in order. */
static void statistics_in_pieces(void)
{
	int a = kn_open_as(O_RDONLY), b = kn_open_as(O_RDONLY);
	char whole[4096], pieces[4096];
	ssize_t n = read(a, whole, sizeof(whole)), have = 0, got;

	while ((got = read(b, pieces + have, 7)) > 0)
		have += got;
	KM_EQ(have, n);
	KM_TRUE(!memcmp(whole, pieces, strcspn(whole, "\n")));
}

static void writing(void)
{
	int rw = kn_open();
	pid_t pid;

	if (geteuid())
		km_skip("needs root");
	KM_ERR(write(rw, "1\n", 2), EBUSY);
	pid = km_fork();
	if (pid == 0) {
		km_drop(KM_OTHER_USER);
		KM_ERR(write(rw, "1\n", 2), EPERM);
		_exit(0);
	}
	km_join(pid);
}

/* The last close ends the cookies; a duplicate keeps them. */
static void closing(void)
{
	uint8_t *p = km_pages(BYTES), local[64];
	int fd = kn_open(), own = kn_open(), twin = dup(fd), pair[2];
	knem_cookie_t cookie = kn_create(fd, p, BYTES, PROT_READ, 0);
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS}};
	struct iovec io = {local, 1};
	struct msghdr msg = {.msg_iov = &io,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};

	KM_OK(close(fd));
	kn_get(own, cookie, 0, local, 64);
	/* In a message under way, too. */
	KM_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	memcpy(CMSG_DATA(&control.head), &twin, sizeof(twin));
	KM_OK(sendmsg(pair[0], &msg, 0));
	KM_OK(close(twin));
	kn_get(own, cookie, 0, local, 64);
	KM_OK(close(pair[1]));
	KM_OK(close(pair[0]));
	while (kn_inline(own, cookie, 0, local, 64, false, 0) >= 0)
		km_pause();
	KM_EQ(errno, EINVAL);
	/* The number used again is another context. */
	fd = kn_open();
	KM_ERR(kn_inline(fd, cookie, 0, local, 64, false, 0), EINVAL);
	KM_ERR(kn_destroy(fd, cookie), EINVAL);
}

/* A mapping of the array keeps the file open. */
static void array_keeps_open(void)
{
	uint8_t *p = km_pages(BYTES), local[64];
	int fd = kn_open(), own = kn_open();
	knem_cookie_t cookie = kn_create(fd, p, BYTES, PROT_READ, 0);
	volatile knem_status_t *slot = kn_array(fd, 100);

	KM_OK(close(fd));
	kn_get(own, cookie, 0, local, 64);
	KM_OK(munmap((void *)slot, km_page()));
	KM_ERR(kn_inline(own, cookie, 0, local, 64, false, 0), EINVAL);
}

/* Queued copies are dropped by the last close; nothing hangs, nothing stays. */
static void close_with_copies(void)
{
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int own = kn_open();
	knem_cookie_t cookie = kn_create(own, p, BYTES, PROT_READ, 0);

	for (int i = 0; i < 20; i++) {
		int fd = kn_open();
		volatile knem_status_t *slot = kn_array(fd, 4096);

		for (int j = 0; j < 100; j++)
			KM_OK(kn_inline_async(
				fd, cookie, 0, q, BYTES, false,
				KNEM_FLAG_MEMCPYTHREAD | (j & 1 ? KNEM_FLAG_NOTIFY_FD : 0), j));
		KM_OK(munmap((void *)slot, 4096));
		KM_OK(close(fd));
	}
}

/* The child shares the context; what it makes belongs to the file's user and outlives it. */
static void forked(void)
{
	uint8_t *p = mmap(NULL, BYTES, KN_RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0), local[64];
	knem_cookie_t *made = (void *)p, cookie;
	int fd = kn_open(), own = kn_open();
	pid_t pid;

	cookie = kn_create(fd, p, BYTES, PROT_READ, 0);
	pid = km_fork();
	if (pid == 0) {
		kn_get(fd, cookie, 0, local, 64);
		*made = kn_create(fd, p, BYTES, PROT_READ, 0);
		KM_OK(kn_destroy(fd, cookie));
		_exit(0);
	}
	km_join(pid);
	KM_ERR(kn_inline(own, cookie, 0, local, 64, false, 0), EINVAL);
	kn_get(own, *made, 0, local, 64);
	KM_OK(kn_destroy(fd, *made));
}

/*
 * Pages are those of CREATE. After a fork the pinned ones stay with the owner
 * (the child copies), so its later writes are seen.
 */
static void pages_after_fork(void)
{
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int fd = kn_open(), go[2];
	knem_cookie_t cookie;
	pid_t pid;

	km_fill(p, BYTES, 1);
	cookie = kn_create(fd, p, BYTES, KN_RW, 0);
	KM_OK(pipe(go));
	pid = km_fork();
	if (pid == 0) {
		KM_EQ(read(go[0], q, 1), 1);
		KM_EQ(km_differ(p, BYTES, 1), BYTES);
		memset(p, 0xcc, BYTES);
		_exit(0);
	}
	km_fill(p, BYTES, 2);
	KM_EQ(write(go[1], "", 1), 1);
	km_join(pid);
	kn_get(fd, cookie, 0, q, BYTES);
	KM_EQ(km_differ(q, BYTES, 2), BYTES);
	km_fill(q, BYTES, 3);
	kn_put(fd, cookie, 0, q, BYTES);
	KM_EQ(km_differ(p, BYTES, 3), BYTES);
}

/* The owner unmaps: the region keeps its pages and the new ones are not touched. */
static void pages_after_unmap(void)
{
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int fd = kn_open();
	knem_cookie_t cookie;

	km_fill(p, BYTES, 1);
	cookie = kn_create(fd, p, BYTES, KN_RW, 0);
	KM_TRUE(mmap(p, BYTES, KN_RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
	km_fill(p, BYTES, 2);
	kn_get(fd, cookie, 0, q, BYTES);
	KM_EQ(km_differ(q, BYTES, 1), BYTES);
	kn_put(fd, cookie, 0, q, BYTES);
	KM_EQ(km_differ(p, BYTES, 2), BYTES);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "modes", .run = modes},
		{.name = "counters", .run = counters},
		{.name = "statistics_in_pieces", .run = statistics_in_pieces},
		{.name = "writing", .run = writing},
		{.name = "closing", .run = closing},
		{.name = "array_keeps_open", .run = array_keeps_open},
		{.name = "close_with_copies", .run = close_with_copies},
		{.name = "forked", .run = forked},
		{.name = "pages_after_fork", .run = pages_after_fork},
		{.name = "pages_after_unmap", .run = pages_after_unmap},
		{0},
	};

	return km_main(cases, argc, argv);
}
