// SPDX-License-Identifier: BSD-3-Clause
/*
 * The module's events in the kernel's trace: each comes once for what it is about, and
 * says which region that is, as docs/kernel.md has it.
 */
#include "dev.h"
#include "softdma.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define TRACING	 "/sys/kernel/tracing/instances/onecopy"
#define BYTES	 (2 * km_page())
#define TEXT_MAX (1u << 20)

/* Events go to a buffer of this program's own. */
static void start(void)
{
	int fd;

	if (access("/sys/kernel/tracing/instances", W_OK) && !access("/sys/kernel/tracing", F_OK))
		km_skip("no instances of traces");
	if (mkdir(TRACING, 0700) && errno != EEXIST)
		km_skip("no trace of the kernel here");
	fd = KM_OK(open(TRACING "/trace", O_WRONLY | O_TRUNC));
	close(fd);
	if (km_read_number(TRACING "/events/onecopy/enable") != 1)
		KM_TRUE(km_write_text(TRACING "/events/onecopy/enable", "1"));
}

/* How often the event came, with words that begin so. */
static int times(const char *event, const char *words)
{
	static char text[TEXT_MAX];
	char line[256];
	int n = 0;

	snprintf(line, sizeof(line), " %s: %s", event, words);
	KM_TRUE(km_read_text(TRACING "/trace", text, sizeof(text)));
	for (const char *p = text; (p = strstr(p, line)); p++)
		n++;
	return n;
}

/* The same, of a region. */
static int times_of(const char *event, uint64_t cookie)
{
	char words[32];

	snprintf(words, sizeof(words), "region=%08x", (uint32_t)cookie);
	return times(event, words);
}

static void regions(void)
{
	uint8_t *p = km_pages(BYTES), *map;
	char words[128];
	uint64_t cookie;
	int fd;

	start();
	fd = dv_open();
	cookie = dv_create(fd, p, BYTES, DV_RW);
	KM_EQ(times_of("onecopy_region_create", cookie), 1);
	snprintf(words, sizeof(words), "region=%08x length=%zu runs=", (uint32_t)cookie, BYTES);
	KM_EQ(times("onecopy_region_create", words), 1);
	if (dv_info(fd).features & ONECOPY_FEATURE_MAP) {
		map = dv_map(fd, cookie, 0, BYTES, ONECOPY_MAP_READ);
		KM_TRUE(map != MAP_FAILED);
		KM_EQ(times_of("onecopy_map", cookie), 1);
		KM_EQ(times_of("onecopy_map_fill", cookie), 0);
		KM_EQ(km_touch(map, false), 0);
		KM_EQ(km_touch(map + km_page(), false), 0);
		KM_EQ(times_of("onecopy_map_fill", cookie), 1);
	}
	KM_EQ(times("onecopy_region_revoke", ""), 0);
	KM_EQ(times("onecopy_region_destroy", ""), 0);
	KM_OK(dv_destroy(fd, cookie));
	if (dv_info(fd).features & ONECOPY_FEATURE_MAP)
		KM_EQ(times_of("onecopy_region_revoke", cookie), 1);
	KM_EQ(times_of("onecopy_region_destroy", cookie), 1);
	KM_EQ(times("onecopy_region_stale", ""), 0);
}

static void stale(void)
{
	uint8_t *p = km_pages(BYTES);
	uint64_t cookie;
	int fd;

	start();
	fd = dv_open();
	dv_need(fd, ONECOPY_FEATURE_TRACK, "tracking");
	cookie = dv_create(fd, p, BYTES, DV_RW | ONECOPY_REGION_TRACK);
	KM_OK(munmap(p, BYTES));
	KM_EQ(times_of("onecopy_region_stale", cookie), 1);
}

static void copies(void)
{
	uint8_t *p = km_pages(BYTES), *local = km_pages(BYTES);
	volatile struct onecopy_completion *words;
	uint64_t source, destination;
	char is[160];
	int fd;

	start();
	fd = dv_open();
	words = dv_async(fd, 16, -1);
	source = dv_create(fd, p, BYTES, DV_RW);
	destination = dv_create(fd, local, BYTES, DV_RW);
	KM_EQ(dv_copy(fd, source, 0, destination, 0, BYTES), BYTES);
	snprintf(is, sizeof(is), "source=%08x destination=%08x bytes=%zu copied=%zu err=0",
		 (uint32_t)source, (uint32_t)destination, BYTES, BYTES);
	KM_EQ(times("onecopy_copy", is), 1);
	KM_EQ(dv_read(fd, source, 0, local, 5), 5);
	snprintf(is, sizeof(is), "source=%08x destination=00000000 bytes=5 copied=5 err=0",
		 (uint32_t)source);
	KM_EQ(times("onecopy_copy", is), 1);
	KM_EQ(times("onecopy_queue", ""), 0);
	KM_OK(dv_write_async(fd, destination, 0, p, 7, 3, 0));
	snprintf(is, sizeof(is), "source=00000000 destination=%08x bytes=7 slot=3 how=thread",
		 (uint32_t)destination);
	KM_EQ(times("onecopy_queue", is), 1);
	KM_EQ(dv_wait(words + 3), 0);
	snprintf(is, sizeof(is), "source=00000000 destination=%08x bytes=7 copied=7 err=0",
		 (uint32_t)destination);
	KM_EQ(times("onecopy_copy", is), 1);
	KM_ERR(dv_cancel(fd, 3), ENOENT);
	KM_EQ(times("onecopy_cancel", "slot=3 err=-2"), 1);
	KM_EQ(times("onecopy_cancel", ""), 1);
	KM_EQ(times("onecopy_knem", ""), 0);
}

static void knem(void)
{
	uint8_t *p = km_pages(BYTES), *local = km_pages(BYTES);
	struct knem_cmd_info info;
	knem_cookie_t cookie;
	char is[160];
	int fd;

	start();
	fd = kn_open();
	KM_OK(ioctl(fd, KNEM_CMD_GET_INFO, &info));
	snprintf(is, sizeof(is), "request=%#x err=0\n", (uint32_t)KNEM_CMD_GET_INFO);
	KM_EQ(times("onecopy_knem", is), 1);
	cookie = kn_create(fd, p, BYTES, KN_RW, 0);
	KM_EQ(times_of("onecopy_region_create", cookie), 1);
	KM_EQ(kn_inline(fd, cookie, 0, local, BYTES, false, 0), KNEM_STATUS_SUCCESS);
	KM_ERR(kn_inline(fd, cookie + 1, 0, local, BYTES, false, 0), EINVAL);
	snprintf(is, sizeof(is), "request=%#x err=-22\n", (uint32_t)KNEM_CMD_INLINE_COPY);
	KM_EQ(times("onecopy_knem", is), 1);
	KM_EQ(times("onecopy_knem", ""), 4);
	KM_EQ(times("onecopy_copy", ""), 1);
}

static void dma(void)
{
	struct sd_setup s = sd_prepare();
	char is[160];

	start();
	KM_EQ(kn_inline(s.fd, s.cookie, 0, s.local, SD_BYTES, false, KNEM_FLAG_DMA),
	      KNEM_STATUS_SUCCESS);
	snprintf(is, sizeof(is), "source=%08x destination=00000000 bytes=%u copied=%u err=0",
		 (uint32_t)s.cookie, SD_BYTES, SD_BYTES);
	KM_EQ(times("onecopy_dma", is), 1);
	KM_EQ(times("onecopy_dma", ""), 1);
	KM_EQ(times("onecopy_copy", ""), 0);
}

static const struct km_case cases[] = {
	{"regions", regions}, {"stale", stale}, {"copies", copies},
	{"knem", knem},	      {"dma", dma},	{NULL},
};

int main(int argc, char **argv)
{
	int status = sd_main(cases, argc, argv);

	km_write_text(TRACING "/events/onecopy/enable", "0");
	rmdir(TRACING);
	return status;
}
