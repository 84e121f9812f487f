// SPDX-License-Identifier: BSD-3-Clause
/* Copies by DMA engines that have fewer descriptors than pieces are to be moved, or fall silent:
 * who has to wait for them. */
#include "dev.h"
#include "softdma.h"

#include <unistd.h>

#define BYTES SD_BYTES
#define DMA   KNEM_FLAG_DMA

/* What a channel has descriptors for is on its way when the call returns, and what comes after
 * it too: nobody waits for the engine but it. */
static void returns_early(void)
{
	enum { MANY = 8 << 20 };
	struct sd_setup s = sd_prepare();
	uint8_t *from = km_pages(MANY);
	uint8_t *to = km_pages(MANY);
	knem_cookie_t cookie = kn_create(s.fd, from, MANY, KN_RW, 0);
	long long moved = sd_count("copied");

	sd_set("descriptors", "4");
	sd_set("hang_every", "1");
	km_fill(from, MANY, 1);
	for (int i = 0; i < 3; i++)
		KM_EQ(kn_inline_async(s.fd, cookie, 0, to, MANY, false,
				      DMA | KNEM_FLAG_ASYNCDMACOMPLETE, i),
		      KNEM_STATUS_PENDING);
	for (int i = 0; i < 3; i++)
		KM_EQ(s.slot[i], KNEM_STATUS_PENDING);
	sd_set("hang_every", "0");
	sd_set("resume", "1");
	for (int i = 0; i < 3; i++)
		KM_EQ(kn_wait(s.slot + i), KNEM_STATUS_SUCCESS);
	KM_EQ(km_differ(to, MANY, 1), MANY);
	KM_TRUE(sd_count("copied") > moved);
}

/* Bytes that follow each other in physical memory are one piece, whatever they were declared as. */
static void merged(void)
{
	enum { SEGMENTS = 32, SEGMENT = 4096, HUGE = 2 << 20 };
	struct sd_setup s = sd_prepare();
	struct knem_cmd_param_iovec iov[SEGMENTS];
	uint8_t *huge = km_pages(2 * HUGE);
	long long prepared;
	knem_cookie_t cookie;

	huge += -(uintptr_t)huge % HUGE;
	if (madvise(huge, HUGE, MADV_HUGEPAGE))
		km_skip("no transparent huge pages here");
	for (int i = 0; i < SEGMENTS; i++)
		iov[i] = kn_iov(huge + i * SEGMENT, SEGMENT);
	km_fill(huge, SEGMENTS * SEGMENT, 1);
	KM_OK(kn_create_try(s.fd, iov, SEGMENTS, KN_RW, 0, &cookie));
	prepared = sd_count("prepared");
	KM_EQ(kn_inline(s.fd, cookie, 0, huge + HUGE / 2, SEGMENTS * SEGMENT, false, DMA),
	      KNEM_STATUS_SUCCESS);
	KM_EQ(km_differ(huge + HUGE / 2, SEGMENTS * SEGMENT, 1), SEGMENTS * SEGMENT);
	KM_EQ(sd_count("prepared"), prepared + 1);
}

/* Lets a child copy, and says so once it is in the call. */
static pid_t copying(const struct sd_setup *s, uint32_t flags, uint32_t slot)
{
	long long copies = km_counter("live_copies");
	pid_t pid = km_fork();

	if (!pid) {
		uint8_t *local = km_pages(BYTES);

		kn_inline_async(s->fd, s->cookie, 0, local, BYTES, false, flags, slot);
		for (;;)
			pause();
	}
	while (km_counter("live_copies") == copies)
		km_pause();
	return pid;
}

/* A driver may let its callers sleep until the engine gives a descriptor back, which it may never
 * do: those who wait behind them can be killed all the same, and so can they. */
static void killed_in_line(void)
{
	struct sd_setup s = sd_prepare();
	pid_t pids[6];

	sd_set("descriptors", "1");
	sd_set("block", "1");
	sd_set("hang_every", "1");
	/* Two channels: some sleep in the driver, others wait for their turn. */
	for (int i = 0; i < 6; i++)
		pids[i] = copying(&s, DMA, 0);
	while (sd_count("blocked") < 2)
		km_pause();
	for (int i = 5; i >= 0; i--)
		km_kill(pids[i]);
	KM_EQ(sd_count("blocked"), 0);
	sd_set("hang_every", "0");
	sd_set("resume", "1");
}

/* The watchdog does not wait for them either: their copies fail, other channels are used. */
static void silent_in_line(void)
{
	struct sd_setup s = sd_prepare();
	long long pages = km_counter("live_pages");
	pid_t pids[3];

	/* Longer than it takes all three to get in: the last would find no channel. */
	KM_TRUE(km_write_text(SD_ONECOPY "dmatimeout", km_slow() ? "5000" : "200"));
	sd_set("descriptors", "1");
	sd_set("block", "1");
	sd_set("hang_every", "1");
	for (int i = 0; i < 3; i++)
		pids[i] = copying(&s, DMA | KNEM_FLAG_ASYNCDMACOMPLETE, i);
	while (sd_count("blocked") < 2)
		km_pause();
	for (int i = 0; i < 3; i++)
		KM_EQ(kn_wait(s.slot + i), KNEM_STATUS_FAILED);
	KM_EQ(sd_count("blocked"), 2);
	/* All channels are out of use by now. */
	KM_ERR(kn_inline(s.fd, s.cookie, 0, s.local, BYTES, false, DMA), EINVAL);
	for (int i = 0; i < 3; i++)
		km_kill(pids[i]);
	sd_set("hang_every", "0");
	sd_set("resume", "1");
	while (km_counter("live_pages") != pages)
		km_pause();
}

/* A child that closes its file with a copy on the engine. *cookie: its region's. */
static pid_t closing(bool knem, uint64_t *cookie)
{
	int way[2];
	pid_t pid;

	KM_OK(pipe(way));
	pid = km_fork();
	if (!pid) {
		uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
		int fd = knem ? kn_open() : dv_open();
		volatile void *words;

		if (knem) {
			*cookie = kn_create(fd, p, BYTES, KN_RW, 0);
			words = kn_array(fd, 4096);
			KM_EQ(kn_inline_async(fd, *cookie, 0, q, BYTES, false,
					      DMA | KNEM_FLAG_ASYNCDMACOMPLETE, 0),
			      KNEM_STATUS_PENDING);
		} else {
			*cookie = dv_create(fd, p, BYTES, DV_RW);
			words = dv_async(fd, 1, -1);
			KM_OK(dv_read_async(fd, *cookie, 0, q, BYTES, 0, ONECOPY_COPY_DMA));
		}
		KM_EQ(write(way[1], cookie, sizeof(*cookie)), sizeof(*cookie));
		KM_OK(munmap((void *)words, 4096));
		KM_OK(close(fd));
		_exit(0);
	}
	KM_OK(close(way[1]));
	KM_EQ(read(way[0], cookie, sizeof(*cookie)), sizeof(*cookie));
	KM_OK(close(way[0]));
	return pid;
}

/* Who closes a file waits for the engine; peers do not: they find none of its regions any more. */
static void gone_while_closing(void)
{
	for (int knem = 0; knem < 2; knem++) {
		double until = km_now() + (km_slow() ? 60 : 10);
		int peer = dv_open();
		uint64_t cookie;
		uint8_t byte;
		pid_t pid;

		sd_prepare();
		/* Its silence lasts longer than we wait. */
		KM_TRUE(km_write_text(SD_ONECOPY "dmatimeout", "120000"));
		sd_set("hang_every", "1");
		pid = closing(knem, &cookie);
		while (dv_read(peer, cookie, 0, &byte, 1) == 1) {
			KM_TRUE(km_now() < until);
			km_pause();
		}
		KM_EQ(errno, ENOENT);
		KM_TRUE(km_becomes(pid, 'D'));
		sd_set("hang_every", "0");
		sd_set("resume", "1");
		km_join(pid);
		KM_OK(close(peer));
	}
}

static const struct km_case cases[] = {
	{.name = "returns_early", .run = returns_early},
	{.name = "merged", .run = merged},
	{.name = "killed_in_line", .run = killed_in_line},
	{.name = "silent_in_line", .run = silent_in_line},
	{.name = "gone_while_closing", .run = gone_while_closing},
	{0},
};

int main(int argc, char **argv)
{
	return sd_main(cases, argc, argv);
}
