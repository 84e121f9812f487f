// SPDX-License-Identifier: BSD-3-Clause
/* Copies by DMA engines, against one that goes wrong in every way there is (softdma.h). */
#include <stdio.h>

#include "dev.h"
#include "softdma.h"

#define BYTES SD_BYTES
#define DMA   KNEM_FLAG_DMA

/* Accepted, and so it ended. */
static int outcome(const struct sd_setup *s, size_t off, size_t bytes, bool write, uint32_t flags)
{
	int status =
		KM_OK(kn_inline_async(s->fd, s->cookie, off, s->local, bytes, write, flags, 7));

	return status == KNEM_STATUS_PENDING ? kn_wait(s->slot + 7) : status;
}

static const uint32_t ways[] = {
	DMA,
	DMA | KNEM_FLAG_ASYNCDMACOMPLETE,
	DMA | KNEM_FLAG_DMATHREAD,
	DMA | KNEM_FLAG_MEMCPYTHREAD,
	DMA | KNEM_FLAG_PINLOCAL,
	DMA | KNEM_FLAG_DMATHREAD | KNEM_FLAG_ASYNCDMACOMPLETE,
};
#define WAYS (sizeof(ways) / sizeof(*ways))

/* Copies of any place and size, all of which must succeed, and touch nothing else. */
static void copies(struct sd_setup *s, unsigned long n)
{
	uint64_t seed = km_seed();

	for (unsigned long i = 0; i < n; i++) {
		size_t off = km_below(&seed, BYTES / 2);
		size_t bytes = km_below(&seed, i % 3 ? 8192 : BYTES / 2);
		bool write = km_below(&seed, 2);
		uint8_t before;
		uint8_t after;
		uint8_t *from;
		uint8_t *to;

		if (i % 4 == 0) {
			off &= ~(km_page() - 1);
			bytes &= ~(km_page() - 1);
		}
		to = write ? s->remote + off : s->local;
		from = write ? s->local : s->remote + off;
		before = off && write ? to[-1] : 0;
		after = to[bytes];
		km_fill(from, bytes, i);
		KM_EQ(outcome(s, off, bytes, write, ways[i % WAYS]), KNEM_STATUS_SUCCESS);
		KM_EQ(km_differ(to, bytes, i), bytes);
		KM_EQ(off && write ? to[-1] : 0, before);
		KM_EQ(to[bytes], after);
	}
}

/* What the statistics of /dev/knem say of engines. */
static bool stats_say(const char *state)
{
	char text[4096];
	char line[64];

	KM_TRUE(km_read_text("/dev/knem", text, sizeof(text)));
	snprintf(line, sizeof(line), "DMAEngine: %s\n", state);
	return strstr(text, line) != NULL;
}

static void right(void)
{
	struct sd_setup s = sd_prepare();
	struct knem_cmd_info info;
	long long moved = sd_count("copied");

	KM_OK(ioctl(s.fd, KNEM_CMD_GET_INFO, &info));
	KM_EQ(info.features, KNEM_FEATURE_DMA);
	KM_TRUE(stats_say("Available"));
	copies(&s, km_scaled(300));
	KM_TRUE(sd_count("copied") > moved);
}

/* What is not worth a descriptor the CPU copies. */
static void short_ones(void)
{
	struct sd_setup s = sd_prepare();
	long long moved = sd_count("copied");

	KM_EQ(outcome(&s, 0, 1023, false, DMA), KNEM_STATUS_SUCCESS);
	KM_EQ(sd_count("copied"), moved);
	KM_EQ(outcome(&s, 0, 1024, false, DMA), KNEM_STATUS_SUCCESS);
	KM_EQ(sd_count("copied"), moved + 1024);
}

/* Channels are found and given back with the files that use them. */
static void comes_and_goes(void)
{
	struct sd_setup s = sd_prepare();

	KM_OK(munmap((void *)s.slot, 4096));
	KM_OK(close(s.fd));
	for (unsigned long i = 0; i < km_scaled(100); i++) {
		s.fd = kn_open();
		s.slot = kn_array(s.fd, 4096);
		s.cookie = kn_create(s.fd, s.remote, BYTES, KN_RW, 0);
		km_fill(s.remote, 65536, i);
		KM_EQ(outcome(&s, 0, 65536, false, ways[i % WAYS]), KNEM_STATUS_SUCCESS);
		KM_EQ(km_differ(s.local, 65536, i), 65536);
		KM_OK(munmap((void *)s.slot, 4096));
		KM_OK(close(s.fd));
	}
}

/* Who only asks keeps no channel from others; who has copied does until it closes. */
static void asked_for(void)
{
	const char *taken = "/sys/module/softdma/refcnt";
	struct sd_setup s = sd_prepare();
	struct knem_cmd_info info;
	int fd = dv_open();

	/* Of other cases' copies. */
	while (km_read_number(taken) > 0)
		km_pause();
	KM_OK(ioctl(s.fd, KNEM_CMD_GET_INFO, &info));
	KM_EQ(info.features, KNEM_FEATURE_DMA);
	KM_EQ(km_read_number(taken), 0);
	dv_async(fd, 8, -1);
	dv_need(fd, ONECOPY_FEATURE_DMA, "DMA");
	KM_EQ(km_read_number(taken), 0);
	KM_EQ(outcome(&s, 0, BYTES, false, DMA), KNEM_STATUS_SUCCESS);
	KM_TRUE(km_read_number(taken) > 0);
	KM_OK(munmap((void *)s.slot, 4096));
	KM_OK(close(s.fd));
	while (km_read_number(taken) > 0)
		km_pause();
}

static void no_descriptors(void)
{
	struct sd_setup s = sd_prepare();

	sd_set("full_every", "2");
	copies(&s, km_scaled(200));
}

static void aligned(void)
{
	struct sd_setup s = sd_prepare();
	long long misaligned = sd_count("misaligned");

	sd_set("align", "6");
	copies(&s, km_scaled(200));
	KM_EQ(sd_count("misaligned"), misaligned);
	sd_set("align", "0");
}

static void out_of_order(void)
{
	struct sd_setup s = sd_prepare();

	sd_set("reorder", "1");
	sd_set("delay_ms", "2");
	copies(&s, km_scaled(100));
}

/* Slots are a ring to clients: none may be done before the one before. */
static void reported_in_order(void)
{
	enum { N = 500 };
	struct sd_setup s = sd_prepare();
	int done = 0;

	sd_set("reorder", "1");
	sd_set("delay_ms", "1");
	for (int i = 0; i < N; i++)
		KM_OK(kn_inline_async(s.fd, s.cookie, 0, s.local, 8192, false,
				      DMA | KNEM_FLAG_ASYNCDMACOMPLETE, i));
	while (done < N) {
		/* From the back, so that what ends meanwhile is not taken amiss. */
		for (int i = N - 1; i > 0; i--)
			KM_TRUE(!s.slot[i] || s.slot[i - 1]);
		for (done = 0; done < N && s.slot[done]; done++)
			KM_EQ(s.slot[done], KNEM_STATUS_SUCCESS);
	}
}

/* Events of copies that a thread waits for come in the order of the calls. */
static void notified(void)
{
	enum { N = 50 };
	struct sd_setup s = sd_prepare();
	uint32_t index[N];

	sd_set("reorder", "1");
	sd_set("delay_ms", "1");
	for (int i = 0; i < N; i++)
		KM_OK(kn_inline_async(s.fd, s.cookie, 0, s.local, 2 * km_page(), false,
				      DMA | KNEM_FLAG_DMATHREAD | KNEM_FLAG_NOTIFY_FD, i));
	KM_EQ(read(s.fd, index, sizeof(index)), sizeof(index));
	for (int i = 0; i < N; i++) {
		KM_EQ(index[i], i);
		KM_EQ(s.slot[i], KNEM_STATUS_SUCCESS);
	}
}

/* A failed transfer fails its copy, and no other. */
static void failing(void)
{
	struct sd_setup s = sd_prepare();
	int failed = 0;
	int good = 0;

	sd_set("fail_every", "5");
	for (unsigned long i = 0; i < 100; i++) {
		size_t bytes = i % 2 ? 2 * km_page() : km_page();
		int status;

		km_fill(s.remote, bytes, i);
		status = outcome(&s, 0, bytes, false, ways[i % WAYS]);
		failed += status == KNEM_STATUS_FAILED;
		if (status == KNEM_STATUS_SUCCESS) {
			KM_EQ(km_differ(s.local, bytes, i), bytes);
			good++;
		}
	}
	KM_EQ(failed + good, 100);
	KM_TRUE(failed);
	KM_TRUE(good);
	sd_set("fail_every", "0");
	copies(&s, 20);
}

/* A silent channel is terminated: its copies fail, their pages are given back. */
static void silent(void)
{
	struct sd_setup s = sd_prepare();
	long long pages = km_counter("live_pages");

	KM_TRUE(km_write_text(SD_ONECOPY "dmatimeout", "200"));
	sd_set("hang_every", "1");
	for (unsigned long i = 0; i < WAYS; i++)
		KM_EQ(outcome(&s, 0, BYTES, i % 2, ways[i]), KNEM_STATUS_FAILED);
	KM_EQ(km_counter("live_pages"), pages);
	sd_set("hang_every", "0");
	KM_TRUE(km_write_text(SD_ONECOPY "dmatimeout", SD_TIMEOUT_MS));
	copies(&s, 20);
}

/* One that cannot be terminated may still write: its pages stay until it answers. */
static void unstoppable(void)
{
	struct sd_setup s = sd_prepare();
	long long pages = km_counter("live_pages");

	KM_TRUE(km_write_text(SD_ONECOPY "dmatimeout", "200"));
	sd_set("terminate", "0");
	sd_set("hang_every", "1");
	KM_EQ(outcome(&s, 0, BYTES, false, DMA), KNEM_STATUS_FAILED);
	KM_EQ(outcome(&s, 0, BYTES, false, DMA | KNEM_FLAG_ASYNCDMACOMPLETE), KNEM_STATUS_FAILED);
	KM_TRUE(km_counter("live_pages") > pages);
	/* All channels are out of use by now. */
	KM_ERR(kn_inline(s.fd, s.cookie, 0, s.local, BYTES, false, DMA), EINVAL);
	KM_EQ(kn_inline(s.fd, s.cookie, 0, s.local, BYTES, false, 0), KNEM_STATUS_SUCCESS);
	sd_set("hang_every", "0");
	sd_set("resume", "1");
	while (km_counter("live_pages") != pages)
		km_pause();
}

/* Who waits for a silent channel can be killed. */
static void killed(void)
{
	struct sd_setup s = sd_prepare();
	double start;
	pid_t pid;

	KM_TRUE(km_write_text(SD_ONECOPY "dmatimeout", "2000"));
	sd_set("hang_every", "1");
	pid = km_fork();
	if (!pid) {
		kn_inline(s.fd, s.cookie, 0, s.local, BYTES, false, DMA);
		_exit(1);
	}
	while (!sd_count("hung"))
		km_pause();
	start = km_now();
	km_kill(pid);
	km_note("killed in %.3f s", km_now() - start);
	sd_set("hang_every", "0");
}

/* The file is closed with copies under way: nobody is told, nothing is left. */
static void closed(void)
{
	struct sd_setup s = sd_prepare();

	sd_set("delay_ms", "100");
	for (int i = 0; i < 50; i++)
		KM_OK(kn_inline_async(s.fd, s.cookie, 0, s.local, 3 * km_page(), false,
				      ways[1 + i % 2], i));
	KM_OK(munmap((void *)s.slot, 4096));
	close(s.fd);
	sd_set("delay_ms", "0");
}

static void dev(void)
{
	struct sd_setup s = sd_prepare();
	int fd = dv_open();
	volatile struct onecopy_completion *word;
	uint64_t cookie;

	dv_need(fd, ONECOPY_FEATURE_DMA, "DMA");
	word = dv_async(fd, 64, -1);
	cookie = dv_create(fd, s.remote, BYTES, DV_RW);
	for (unsigned int i = 0; i < 64 && i < km_share(64); i++) {
		km_fill(s.remote, BYTES, i);
		KM_OK(dv_read_async(fd, cookie, 3 * i, s.local, BYTES, i, ONECOPY_COPY_DMA));
		KM_EQ(dv_wait(word + i), 0);
		KM_EQ(word[i].copied, BYTES - 3 * i);
		KM_TRUE(!memcmp(s.local, s.remote + 3 * i, BYTES - 3 * i));
	}
	sd_set("fail_every", "1");
	KM_OK(dv_write_async(fd, cookie, 0, s.local, BYTES, 0, ONECOPY_COPY_DMA));
	KM_EQ(dv_wait(word), EIO);
	KM_EQ(word[0].state, ONECOPY_STATE_FAILED);
	sd_set("fail_every", "0");
}

/* Without its parameter there is no channel. */
static void turned_off(void)
{
	struct sd_setup s = sd_prepare();
	struct knem_cmd_info info;

	KM_TRUE(km_write_text(SD_ONECOPY "dma", "0"));
	KM_OK(ioctl(s.fd, KNEM_CMD_GET_INFO, &info));
	KM_EQ(info.features, 0);
	KM_TRUE(stats_say("NoChannelAvailable"));
	KM_ERR(kn_inline(s.fd, s.cookie, 0, s.local, BYTES, false, DMA), EINVAL);
	KM_TRUE(km_write_text(SD_ONECOPY "dma", "1"));
	KM_EQ(kn_inline(s.fd, s.cookie, 0, s.local, BYTES, false, DMA), KNEM_STATUS_SUCCESS);
}

static const struct km_case cases[] = {
	{"right", right},
	{"short_ones", short_ones},
	{"comes_and_goes", comes_and_goes},
	{"asked_for", asked_for},
	{"no_descriptors", no_descriptors},
	{"aligned", aligned},
	{"out_of_order", out_of_order},
	{"reported_in_order", reported_in_order},
	{"notified", notified},
	{"failing", failing},
	{"silent", silent},
	{"unstoppable", unstoppable},
	{"killed", killed},
	{"closed", closed},
	{"dev", dev},
	{"turned_off", turned_off},
	{NULL},
};

int main(int argc, char **argv)
{
	return sd_main(cases, argc, argv);
}
