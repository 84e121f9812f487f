// SPDX-License-Identifier: BSD-3-Clause
/*
 * The cache of pinned buffers (lib/access/pin_cache.c) over a device of our own: what is
 * pinned when, what makes room for what, and that nothing stays pinned.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access/kdev.h"
#include "access/pin_cache.h"

#define PAGE	4096
#define REGIONS 4096

/* The device: cookies are indices from 1 on. */
static struct {
	size_t bytes;
	bool stale;
} region[REGIONS];
static uint64_t last;
static size_t pinned, limit = SIZE_MAX;
static bool tracks = true;

bool oc_kdev_tracks(void)
{
	return tracks;
}

int oc_kdev_region_create(const struct iovec *iov, size_t count, uint32_t flags,
			  struct oc_kdev_region *out)
{
	size_t bytes = count == 1 ? iov->iov_len : 0;

	if (!bytes || last + 1 == REGIONS)
		abort();
	if (bytes > limit || pinned > limit - bytes)
		return -ENOMEM;
	pinned += bytes;
	region[++last].bytes = bytes;
	*out = (struct oc_kdev_region){.cookie = last};
	return 0;
}

void oc_kdev_region_destroy(uint64_t cookie)
{
	if (!region[cookie].bytes)
		abort();
	pinned -= region[cookie].bytes;
	region[cookie].bytes = 0;
}

bool oc_kdev_region_fresh(const struct oc_kdev_region *it)
{
	return tracks && !region[it->cookie].stale;
}

static struct oc_node *node;
static int failures;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("%s:%d: %s\n", __func__, __LINE__, #condition);                     \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

static void begin(void)
{
	static struct oc_segment *segment;

	free(segment);
	segment = calloc(1, sizeof(*segment) + OC_AREA_BYTES);
	node = calloc(1, sizeof(*node));
	if (!segment || !node)
		abort();
	segment->area_off = sizeof(*segment);
	segment->area_bytes = OC_AREA_BYTES;
	node->segment = segment;
	node->nranks = 1;
	node->pid = (uint32_t)getpid();
	last = 0;
	limit = SIZE_MAX;
	tracks = true;
	memset(region, 0, sizeof(region));
	if (oc_pin_cache_create(node))
		abort();
}

static void end(void)
{
	oc_pin_cache_destroy(node);
	CHECK(pinned == 0);
	free(node);
}

static const void *at(size_t page)
{
	return (const void *)((page + 16) * PAGE);
}

/* Asks for pages [page, page + n) as an operation does. True if they are pinned. */
static bool use(size_t page, size_t n, bool write)
{
	uint32_t place;

	if (oc_pin_cache_get_reused(node, at(page), n * PAGE, write, &place))
		return false;
	oc_pin_cache_put(node, place);
	return true;
}

static bool use_once(size_t page, size_t n, bool *again)
{
	uint32_t place;

	if (oc_pin_cache_get(node, at(page), n * PAGE, false, &place, again))
		return false;
	oc_pin_cache_put(node, place);
	return true;
}

static void test_reuse(void)
{
	bool again;

	begin();
	CHECK(!use(0, 4, false));
	CHECK(pinned == 0);
	CHECK(use(0, 4, false));
	CHECK(pinned == 4 * PAGE);
	CHECK(use(1, 2, false)); /* part of it */
	CHECK(last == 1);
	CHECK(use_once(100, 4, &again) && !again);
	CHECK(use_once(100, 4, &again) && again);
	CHECK(last == 2);
	end();
}

/* Writing needs a region of its own, which then serves reading too. */
static void test_write(void)
{
	begin();
	use(0, 4, false);
	CHECK(use(0, 4, false));
	CHECK(use(0, 4, true));
	CHECK(last == 2);
	CHECK(pinned == 4 * PAGE);
	CHECK(use(0, 4, false));
	CHECK(last == 2);
	end();
}

/* What was replaced is let go by whoever looks next, and pinned ever more rarely
 * the oftener it happens. */
static void test_stale(void)
{
	unsigned int gap = 0, before;

	begin();
	use(0, 4, false);
	CHECK(use(0, 4, false));
	region[last].stale = true;
	CHECK(!use(500, 1, false));
	CHECK(pinned == 0);
	for (int turn = 0; turn < 6; turn++) {
		before = gap;
		gap = 0;
		while (!use(0, 4, false))
			gap++;
		region[last].stale = true;
		CHECK(gap >= before);
	}
	CHECK(gap > 32);
	end();
}

/* More than there are places for, in turns: some of it stays. */
static void test_turns(void)
{
	size_t n = OC_PIN_CACHE_PLACES + 8, served = 0;
	uint64_t made;

	begin();
	for (int turn = 0; turn < 4; turn++)
		for (size_t i = 0; i < n; i++)
			use(2 * i, 1, false);
	made = last;
	for (size_t i = 0; i < n; i++)
		served += use(2 * i, 1, false);
	CHECK(served > 0);
	CHECK(last - made < 8);
	end();
}

/* The same against what the kernel lets pin; then what is used no more gives way. */
static void test_limit(void)
{
	bool again;

	begin();
	limit = 12 * PAGE;
	for (int turn = 0; turn < 4; turn++)
		for (size_t i = 0; i < 4; i++)
			use(8 * i, 4, false);
	CHECK(pinned == 12 * PAGE);
	CHECK(last == 3);
	CHECK(!use_once(400, 20, &again)); /* never */
	CHECK(!use_once(400, 20, &again));
	for (int turn = 0; turn < 300; turn++)
		use(800, 4, false);
	CHECK(use(800, 4, false));
	CHECK(pinned <= limit);
	end();
}

/* Nothing goes while it is held. */
static void test_holds(void)
{
	uint32_t place;
	bool again;

	begin();
	limit = 4 * PAGE;
	CHECK(!oc_pin_cache_get(node, at(0), 4 * PAGE, true, &place, &again));
	CHECK(oc_pin_cache_area(node, 0)->entry[place].cookie == 1);
	CHECK(oc_pin_cache_area(node, 0)->entry[place].bytes == 4 * PAGE);
	region[1].stale = true;
	CHECK(!use_once(100, 4, &again));
	CHECK(pinned == 4 * PAGE);
	oc_pin_cache_put(node, place);
	CHECK(!use(600, 1, false)); /* looks, and finds it stale */
	CHECK(pinned == 0);
	end();
}

/* A region that peers cannot use is not offered again soon. */
static void test_blame(void)
{
	uint32_t place;
	bool again;

	begin();
	CHECK(!oc_pin_cache_get(node, at(0), 4 * PAGE, false, &place, &again));
	oc_pin_cache_blame(node, place);
	CHECK(pinned == 4 * PAGE);
	oc_pin_cache_put(node, place);
	CHECK(pinned == 0);
	for (int turn = 0; turn < 20; turn++) {
		CHECK(!use(0, 4, false));
		CHECK(!use_once(0, 4, &again));
	}
	for (int turn = 0; turn < 100; turn++)
		use(0, 4, false);
	CHECK(use(0, 4, false));
	end();
}

/* Without MMU notifiers a region lasts one operation. */
static void test_untracked(void)
{
	bool again;

	begin();
	tracks = false;
	CHECK(use_once(0, 4, &again) && !again);
	CHECK(pinned == 0);
	CHECK(use_once(0, 4, &again) && !again);
	end();
}

int main(void)
{
	test_reuse();
	test_write();
	test_stale();
	test_turns();
	test_limit();
	test_holds();
	test_blame();
	test_untracked();
	printf("%d failures\n", failures);
	return failures != 0;
}
