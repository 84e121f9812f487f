// SPDX-License-Identifier: BSD-3-Clause
/* /dev/knem: the module parameters KNEM's administrators know: defaults and effect. */
#include "knem.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>

#define BYTES 20000
#define BAD   ((void *)8)

static void path_of(const char *name, char *path, size_t size)
{
	snprintf(path, size, "/sys/module/onecopy/parameters/%s", name);
}

/* What is checked with the parameter set; it is set back whatever comes of it. */
static void with(const char *name, const char *value, void (*check)(void))
{
	char path[96], was[32];
	int status;
	pid_t pid;

	path_of(name, path, sizeof(path));
	if (!km_read_text(path, was, sizeof(was)) || !km_write_text(path, value))
		km_skip("module parameters are not to be set");
	pid = km_fork();
	if (pid == 0) {
		check();
		_exit(0);
	}
	KM_EQ(waitpid(pid, &status, 0), pid);
	KM_TRUE(km_write_text(path, was));
	KM_EQ(status, 0);
}

static void defaults(void)
{
	static const struct {
		const char *name, *value;
	} known[] = {
		{"debug", "N"},	     {"thread", "Y"},	   {"binding", "Y"},	  {"dma", "Y"},
		{"dmamin", "1024"},  {"pinlocal", "N"},	   {"pinlocalread", "Y"}, {"sync", "N"},
		{"forceflags", "0"}, {"ignoreflags", "0"}, {"statsverbose", "N"},
	};
	char path[96], text[32];

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		path_of(known[i].name, path, sizeof(path));
		/* Built without DMA engines there is nothing to set. */
		if (!strncmp(known[i].name, "dma", 3) && access(path, F_OK))
			continue;
		KM_TRUE(km_read_text(path, text, sizeof(text)));
		text[strcspn(text, "\n")] = 0;
		if (strcmp(text, known[i].value))
			km_fail(__FILE__, __LINE__, "%s is %s", known[i].name, text);
	}
	path_of("statslen", path, sizeof(path));
	KM_EQ(km_read_number(path), km_page());
}

static struct knem_cmd_info info(int fd)
{
	struct knem_cmd_info i;

	KM_OK(ioctl(fd, KNEM_CMD_GET_INFO, &i));
	return i;
}

static void forced_single_use(void)
{
	uint8_t local[8];
	int fd = kn_open();
	knem_cookie_t cookie = kn_create(fd, km_pages(BYTES), BYTES, KN_RW, 0);

	KM_EQ(info(fd).forced_flags, KNEM_FLAG_SINGLEUSE);
	kn_get(fd, cookie, 0, local, 8);
	KM_ERR(kn_inline(fd, cookie, 0, local, 8, false, 0), EINVAL);
}

static void ignored_single_use(void)
{
	uint8_t local[8];
	int fd = kn_open();
	knem_cookie_t cookie = kn_create(fd, km_pages(BYTES), BYTES, KN_RW, KNEM_FLAG_SINGLEUSE);

	KM_EQ(info(fd).ignored_flags, KNEM_FLAG_SINGLEUSE);
	for (int i = 0; i < 3; i++)
		kn_get(fd, cookie, 0, local, 8);
}

static void flags(void)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", KNEM_FLAG_SINGLEUSE);
	with("forceflags", text, forced_single_use);
	with("ignoreflags", text, ignored_single_use);
}

/* Unlike a thread's, the copy has ended when the call has; the slot tells where it is still asked
 * for. */
static void ends_in_call(void)
{
	uint8_t *p = km_pages(BYTES), local[BYTES];
	int fd = kn_open();
	volatile knem_status_t *slot = kn_array(fd, 100);
	knem_cookie_t cookie = kn_create(fd, p, BYTES, KN_RW, 0);

	km_fill(p, BYTES, 1);
	KM_EQ(kn_inline_async(fd, cookie, 0, local, BYTES, false, KNEM_FLAG_MEMCPYTHREAD, 3),
	      KNEM_STATUS_SUCCESS);
	KM_EQ(km_differ(local, BYTES, 1), BYTES);
	KM_EQ(slot[3], info(fd).ignored_flags & KNEM_FLAG_MEMCPYTHREAD ? KNEM_STATUS_PENDING
								       : KNEM_STATUS_SUCCESS);
}

static void no_threads(void)
{
	with("thread", "0", ends_in_call);
	with("sync", "1", ends_in_call);
}

static void reads_pinned(void)
{
	int fd = kn_open();
	knem_cookie_t cookie = kn_create(fd, km_pages(BYTES), BYTES, KN_RW, 0);

	KM_ERR(kn_inline(fd, cookie, 0, BAD, 64, false, 0), EFAULT);
	KM_ERR(kn_inline(fd, cookie, 0, BAD, 64, true, 0), EFAULT);
}

static void writes_unpinned(void)
{
	int fd = kn_open();
	knem_cookie_t cookie = kn_create(fd, km_pages(BYTES), BYTES, KN_RW, 0);

	KM_EQ(kn_inline(fd, cookie, 0, BAD, 64, true, 0), KNEM_STATUS_FAILED);
	KM_ERR(kn_inline(fd, cookie, 0, BAD, 64, true, KNEM_FLAG_PINLOCAL), EFAULT);
}

static void pinning(void)
{
	with("pinlocal", "1", reads_pinned);
	with("pinlocalread", "0", writes_unpinned);
}

static void short_statistics(void)
{
	char text[4096];
	int fd = kn_open_as(O_RDONLY);

	ssize_t n = read(fd, text, sizeof(text));

	KM_TRUE(n > 30 && n <= 40);
}

/* A line for each processor below each of the counters. */
static void verbose_statistics(void)
{
	char text[4096], *line, *rest = text;
	int fd = kn_open_as(O_RDONLY), lines = 0;
	ssize_t n = read(fd, text, sizeof(text) - 1);

	KM_TRUE(n > 0);
	text[n] = 0;
	while ((line = strsep(&rest, "\n")))
		lines += !strncmp(line, "    0: ", 7);
	KM_EQ(lines, 13);
}

static void statistics(void)
{
	with("statslen", "40", short_statistics);
	with("statsverbose", "1", verbose_statistics);
}

/* A refused request leaves a line in the kernel's log. */
static void logged(void)
{
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK), fd = kn_open();
	char record[4096];
	bool found = false;
	ssize_t n;

	if (log < 0)
		km_skip("no /dev/kmsg");
	KM_OK(lseek(log, 0, SEEK_END));
	KM_ERR(kn_destroy(fd, 0), EINVAL);
	while ((n = read(log, record, sizeof(record) - 1)) > 0) {
		record[n] = 0;
		found |= strstr(record, "onecopy") && strstr(record, "0x80084b22 refused: -22");
	}
	KM_TRUE(found);
}

static void debugging(void)
{
	with("debug", "1", logged);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "defaults", .run = defaults},
		{.name = "flags", .run = flags},
		{.name = "no_threads", .run = no_threads},
		{.name = "pinning", .run = pinning},
		{.name = "statistics", .run = statistics},
		{.name = "debugging", .run = debugging},
		{0},
	};

	return km_main(cases, argc, argv);
}
