// SPDX-License-Identifier: BSD-3-Clause
/* /dev/onecopy: copies that end later: completion words, events, cancel, every error. */
#include "dev.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/uio.h>

#define BYTES (1 << 20)

static int setup(int fd, uint32_t slots, int eventfd)
{
	struct onecopy_async_setup s = {.size = sizeof(s), .nr_slots = slots, .eventfd = eventfd};

	return ioctl(fd, ONECOPY_IOC_ASYNC_SETUP, &s);
}

static void *words(int fd, size_t bytes, uint64_t offset)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
}

static void setup_errors(void)
{
	const size_t page = km_page();
	int fd = dv_open(), full[2];
	uint32_t max = dv_info(fd).max_slots;
	uint64_t count;

	KM_ERR((intptr_t)words(fd, page, 0), ENXIO);
	KM_ERR(read(fd, &count, 8), ENXIO);
	KM_ERR(dv_cancel(fd, 0), ENXIO);
	KM_ERR(setup(fd, 0, -1), EINVAL);
	KM_ERR(setup(fd, max + 1, -1), ERANGE);
	KM_ERR(setup(fd, UINT32_MAX, -1), ERANGE);
	KM_OK(pipe(full));
	KM_ERR(setup(fd, 8, full[0]), EBADF);
	KM_ERR(setup(fd, 8, 999), EBADF);
	KM_ERR(setup(fd, 8, -2), EBADF);
	/* A refused one may be tried again, an accepted one not. */
	KM_OK(setup(fd, max, -1));
	KM_ERR(setup(fd, 8, -1), EBUSY);
	KM_ERR((intptr_t)mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0), EINVAL);
	KM_ERR((intptr_t)words(fd, (size_t)max * 16 + page, 0), EINVAL);
	KM_ERR((intptr_t)words(fd, page, page), EINVAL);
	/* Often, and from parts. */
	KM_TRUE(words(fd, page, 0) != MAP_FAILED);
	KM_TRUE(words(fd, (size_t)max * 16, 0) != MAP_FAILED);
}

/* All kinds; what is done is in place, and what was used may be reused. */
static void copies(void)
{
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int fd = dv_open();
	volatile struct onecopy_completion *word = dv_async(fd, 64, -1);
	uint64_t src = dv_create(fd, p, BYTES, DV_RW), dst = dv_create(fd, q, BYTES, DV_RW);
	struct onecopy_copy c = {.size = sizeof(c),
				 .flags = ONECOPY_COPY_ASYNC,
				 .source = src,
				 .source_offset = 5,
				 .destination = dst,
				 .destination_offset = 70,
				 .length = 100000};

	for (int i = 0; i < 30; i++) {
		km_fill(p, BYTES, i);
		memset(q, 0, BYTES);
		c.slot = i;
		if (i % 3 == 0)
			KM_OK(dv_read_async(fd, src, 0, q, BYTES, i, 0));
		else if (i % 3 == 1)
			KM_OK(dv_write_async(fd, dst, 0, p, BYTES, i, 0));
		else
			KM_OK(ioctl(fd, ONECOPY_IOC_COPY, &c));
		KM_EQ(dv_wait(word + i), 0);
		KM_EQ(word[i].copied, i % 3 == 2 ? 100000 : BYTES);
		KM_EQ(word[i].error, 0);
		if (i % 3 == 2)
			KM_TRUE(!memcmp(q + 70, p + 5, 100000) && !q[69] && !q[100070]);
		else
			KM_EQ(km_differ(q, BYTES, i), BYTES);
	}
	/* Nothing to move. */
	KM_OK(dv_read_async(fd, src, BYTES, q, 64, 40, 0));
	KM_EQ(dv_wait(word + 40), 0);
	KM_EQ(word[40].copied, 0);
}

static void copy_errors(void)
{
	uint8_t *p = km_pages(BYTES), local[64];
	int fd = dv_open(), bare = dv_open();
	uint64_t ro = dv_create(fd, p, BYTES, DV_RO);

	KM_ERR(dv_read_async(bare, ro, 0, local, 64, 0, 0), ENXIO);
	dv_async(fd, 16, -1);
	KM_ERR(dv_read_async(fd, ro, 0, local, 64, 16, 0), ERANGE);
	KM_ERR(dv_read_async(fd, ro, 0, local, 64, UINT32_MAX, 0), ERANGE);
	KM_ERR(dv_read_async(fd, 1, 0, local, 64, 0, 0), ENOENT);
	KM_ERR(dv_write_async(fd, ro, 0, local, 64, 0, 0), EACCES);
	KM_ERR(dv_read_async(fd, ro, 0, (void *)8, 64, 0, 0), EFAULT);
	if (!(dv_info(fd).features & ONECOPY_FEATURE_DMA))
		KM_ERR(dv_read_async(fd, ro, 0, local, 64, 0, ONECOPY_COPY_DMA), ENODEV);
	KM_ERR(dv_cancel(fd, 16), ERANGE);
	KM_ERR(dv_cancel(fd, 3), ENOENT);
}

/* Local memory of copies under way is charged as regions are. */
static void memlock(void)
{
	const struct rlimit limit = {64 << 10, 64 << 10};
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int fd = dv_open();
	uint64_t src = dv_create(fd, p, 16 << 10, DV_RO | ONECOPY_REGION_ANY_USER);

	dv_async(fd, 16, -1);
	KM_OK(setrlimit(RLIMIT_MEMLOCK, &limit));
	km_drop(KM_OTHER_USER);
	KM_ERR(dv_read_async(fd, src, 0, q, 68 << 10, 0, 0), ENOMEM);
	KM_OK(dv_read_async(fd, src, 0, q, 64 << 10, 0, 0));
}

/* And counts against the limit of the file's opening. */
static void user_limit(void)
{
	static const char pages[] = "/sys/module/onecopy/parameters/max_user_pages";
	uint8_t *p = km_pages(64 << 10), *q = km_pages(128 << 10);
	char was[32];
	uint64_t src;
	int fd;

	if (!km_read_text(pages, was, sizeof(was)) || !km_write_text(pages, "36"))
		km_skip("module parameters are not to be set");
	fd = dv_open();
	KM_TRUE(km_write_text(pages, was));
	src = dv_create(fd, p, 64 << 10, DV_RO);
	dv_async(fd, 16, -1);
	KM_ERR(dv_read_async(fd, src, 0, q, 128 << 10, 0, 0), EDQUOT);
	KM_OK(dv_read_async(fd, src, 0, q, 64 << 10, 0, 0));
	/* A 32-bit address and length do not wrap around in 64 bits, but nothing is there. */
	KM_ERR(dv_read_async(fd, src, 0, (void *)(UINTPTR_MAX - 8), 64, 1, 0),
	       sizeof(void *) == 8 ? EOVERFLOW : EFAULT);
}

static int copy_between(int fd, uint64_t source, uint64_t destination, uint32_t slot)
{
	struct onecopy_copy c = {
		.size = sizeof(c),
		.flags = ONECOPY_COPY_ASYNC,
		.source = source,
		.destination = destination,
		.slot = slot,
		.length = UINT64_MAX,
	};

	return ioctl(fd, ONECOPY_IOC_COPY, &c);
}

/* A slot is one copy at a time; the kernel does not believe what we write there. */
static void busy_and_cancel(void)
{
	enum { N = 64, LONG = 32 << 20 };
	int fd = dv_open(), cancelled = 0;
	volatile struct onecopy_completion *word = dv_async(fd, N, -1);
	uint8_t *p = km_pages(LONG), *q = km_pages(LONG);
	uint64_t src = dv_create(fd, p, LONG, DV_RO), dst = dv_create(fd, q, LONG, DV_RW);

	memset(p, 1, LONG);
	/* Two gigabytes are not copied in the time of some calls that copy nothing. */
	for (int i = 0; i < N; i++)
		KM_OK(copy_between(fd, src, dst, i));
	word[N - 1].state = ONECOPY_STATE_DONE;
	KM_ERR(copy_between(fd, src, dst, N - 1), EBUSY);
	word[N - 1].state = ONECOPY_STATE_PENDING;
	for (int i = N - 1; i >= 0; i--) {
		if (dv_cancel(fd, i) == 0) {
			KM_EQ(word[i].state, ONECOPY_STATE_FAILED);
			KM_EQ(word[i].error, ECANCELED);
			cancelled++;
			KM_ERR(dv_cancel(fd, i), ENOENT);
		} else {
			KM_TRUE(errno == EBUSY || errno == ENOENT);
			KM_EQ(dv_wait(word + i), 0);
			KM_EQ(word[i].copied, LONG);
		}
	}
	km_note("%d of %d cancelled", cancelled, N);
	KM_TRUE(cancelled > 0);
	/* What was taken back had not begun. */
	for (size_t i = 0; i < LONG; i++)
		KM_EQ(q[i], cancelled < N);
	/* Free again. */
	KM_OK(copy_between(fd, src, dst, N - 1));
	KM_EQ(dv_wait(word + N - 1), 0);
}

static void events(void)
{
	const int event = eventfd(0, EFD_NONBLOCK);
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int fd = dv_open_as(O_RDWR | O_NONBLOCK);
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	uint64_t src = dv_create(fd, p, BYTES, DV_RO), count, seen = 0;
	volatile struct onecopy_completion *word;

	KM_EQ(poll(&polled, 1, 0), 1);
	KM_TRUE(polled.revents & POLLERR);
	word = dv_async(fd, 64, event);
	KM_EQ(poll(&polled, 1, 0), 0);
	KM_ERR(read(fd, &count, 8), EAGAIN);
	KM_ERR(read(fd, &count, 7), EINVAL);
	/* Without the flag none. */
	KM_OK(dv_read_async(fd, src, 0, q, 8, 63, 0));
	KM_EQ(dv_wait(word + 63), 0);
	KM_EQ(poll(&polled, 1, 30), 0);
	for (int i = 0; i < 20; i++)
		KM_OK(dv_read_async(fd, src, 0, q, 4096 * i, i, ONECOPY_COPY_EVENT));
	while (seen < 20) {
		KM_EQ(poll(&polled, 1, 20000), 1);
		KM_EQ(polled.revents, POLLIN);
		KM_EQ(read(fd, &count, 8), 8);
		KM_TRUE(count > 0);
		seen += count;
	}
	KM_EQ(seen, 20);
	KM_EQ(poll(&polled, 1, 30), 0);
	for (int i = 0; i < 20; i++)
		KM_EQ(word[i].state, ONECOPY_STATE_DONE);
	KM_EQ(read(event, &count, 8), 8);
	KM_EQ(count, 20);
	/* The eventfd may be closed by its owner while we use it. */
	KM_OK(close(event));
	KM_OK(dv_read_async(fd, src, 0, q, 8, 0, ONECOPY_COPY_EVENT));
	KM_EQ(dv_wait(word), 0);
}

/* Who waits by epoll from before ASYNC_SETUP on hears of events after it. */
static void waiter_before_setup(void)
{
	static const uint32_t how[] = {EPOLLIN, EPOLLIN | EPOLLET};

	for (int i = 0; i < 2; i++) {
		uint8_t *p = km_pages(BYTES), local[8];
		int fd = dv_open(), epoll = epoll_create1(EPOLL_CLOEXEC);
		struct epoll_event event = {.events = how[i]};
		uint64_t src = dv_create(fd, p, BYTES, DV_RO), count;
		volatile struct onecopy_completion *word;

		KM_OK(epoll);
		KM_OK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
		KM_EQ(epoll_wait(epoll, &event, 1, 0), 1);
		KM_EQ(event.events, EPOLLERR);
		word = dv_async(fd, 8, eventfd(0, 0));
		KM_EQ(epoll_wait(epoll, &event, 1, 0), 0);
		KM_OK(dv_read_async(fd, src, 0, local, 8, 0, ONECOPY_COPY_EVENT));
		KM_EQ(dv_wait(word), 0);
		KM_EQ(epoll_wait(epoll, &event, 1, 20000), 1);
		KM_EQ(event.events, EPOLLIN);
		KM_EQ(read(fd, &count, 8), 8);
		KM_EQ(count, 1);
	}
}

/* Events that cannot be told are not lost. */
static void events_not_told(void)
{
	uint8_t *p = km_pages(BYTES), local[8];
	int fd = dv_open_as(O_RDWR | O_NONBLOCK);
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	uint64_t src = dv_create(fd, p, BYTES, DV_RO), count = 0;
	volatile struct onecopy_completion *word = dv_async(fd, 8, eventfd(0, 0));

	for (uint64_t round = 1; round < 4; round++) {
		for (uint64_t i = 0; i < round; i++) {
			KM_OK(dv_read_async(fd, src, 0, local, 8, 0, ONECOPY_COPY_EVENT));
			KM_EQ(dv_wait(word), 0);
			KM_EQ(poll(&polled, 1, 20000), 1);
			KM_ERR(readv(fd, &(struct iovec){(void *)8, 8}, 1), EFAULT);
			KM_EQ(poll(&polled, 1, 0), 1);
			KM_EQ(polled.revents, POLLIN);
		}
		/* The last one's end may be seen before its event is there. */
		for (uint64_t seen = 0; seen < round; seen += count) {
			KM_EQ(poll(&polled, 1, 20000), 1);
			KM_EQ(read(fd, &count, 8), 8);
		}
		KM_ERR(read(fd, &count, 8), EAGAIN);
	}
}

#define SPAN ((size_t)16 << 20)
#define LONG 8 /* slots of copies that take long: more than there are threads */

/* The same memory many times over, so that a copy of it takes long. */
static uint64_t long_region(int fd, uint32_t flags)
{
	const uint32_t times = km_slow() ? 16 : 128;
	struct onecopy_segment segs[128];
	uint8_t *p = km_pages(SPAN);
	uint64_t cookie;

	for (uint32_t i = 0; i < times; i++)
		segs[i] = dv_seg(p, SPAN);
	KM_OK(dv_create_try(fd, segs, times, flags, &cookie));
	return cookie;
}

/*
 * Copies that wait for their turn do not keep a peer's pages: its region is gone when
 * it says so, and they fail. One's own regions last until the copy is done.
 */
static void destroyed_while_queued(void)
{
	enum { PAGES = 37 };
	const size_t bytes = PAGES * km_page();
	uint8_t *p = km_pages(bytes), *q = km_pages(bytes), *mine = km_pages(bytes);
	int fd = km_open_unlimited(dv_open), owner = km_open_unlimited(dv_open);
	volatile struct onecopy_completion *word = dv_async(fd, 64, -1);
	uint64_t from = long_region(fd, DV_RO), to = long_region(fd, DV_RW);
	uint64_t theirs = dv_create(owner, p, bytes, DV_RW),
		 own = dv_create(fd, mine, bytes, DV_RO);
	uint64_t once = dv_create(owner, p, bytes, DV_RO | ONECOPY_REGION_SINGLE_USE);
	long long live;

	km_fill(p, bytes, 1);
	km_fill(mine, bytes, 2);
	for (int i = 0; i < LONG; i++)
		KM_OK(copy_between(fd, from, to, i));
	KM_OK(copy_between(fd, own, theirs, LONG));
	KM_OK(dv_read_async(fd, theirs, 0, q, bytes, LONG + 1, 0));
	KM_OK(dv_write_async(fd, theirs, 0, q, bytes, LONG + 2, 0));
	KM_OK(dv_read_async(fd, own, 0, q, bytes, LONG + 3, 0));
	KM_OK(dv_read_async(fd, once, 0, q, bytes, LONG + 4, 0));
	live = km_counter("live_pages");
	KM_OK(dv_destroy(owner, theirs));
	KM_OK(dv_destroy(fd, own));
	if (word[LONG].state != ONECOPY_STATE_PENDING ||
	    word[LONG - 1].state != ONECOPY_STATE_PENDING)
		km_skip("the machine was busy elsewhere");
	if (live >= 0)
		KM_EQ(km_counter("live_pages"), live - PAGES);
	for (int i = 0; i < LONG; i++)
		dv_cancel(fd, i);
	for (int i = LONG; i < LONG + 3; i++)
		KM_EQ(dv_wait(word + i), ENOENT);
	KM_EQ(word[LONG].copied, 0);
	KM_EQ(dv_wait(word + LONG + 3), 0);
	KM_EQ(dv_wait(word + LONG + 4), 0);
	KM_EQ(km_differ(p, bytes, 1), bytes);
}

/* Memory that the owner takes away is as good as destroyed. */
static void stale_while_queued(void)
{
	const size_t bytes = 16 * km_page();
	uint8_t *p = km_pages(bytes), *q = km_pages(bytes);
	int fd = km_open_unlimited(dv_open), owner = km_open_unlimited(dv_open);
	volatile struct onecopy_completion *word = dv_async(fd, 64, -1);
	uint64_t from, to, theirs;

	dv_need(fd, ONECOPY_FEATURE_TRACK, "MMU notifiers");
	from = long_region(fd, DV_RO);
	to = long_region(fd, DV_RW);
	theirs = dv_create(owner, p, bytes, DV_RO | ONECOPY_REGION_TRACK);
	for (int i = 0; i < LONG; i++)
		KM_OK(copy_between(fd, from, to, i));
	KM_OK(dv_read_async(fd, theirs, 0, q, bytes, LONG, 0));
	KM_OK(munmap(p, bytes));
	if (word[LONG - 1].state != ONECOPY_STATE_PENDING)
		km_skip("the machine was busy elsewhere");
	for (int i = 0; i < LONG; i++)
		dv_cancel(fd, i);
	KM_EQ(dv_wait(word + LONG), ESTALE);
}

/* poll() and read() tell of events by themselves. */
static void event_without_eventfd(void)
{
	uint8_t *p = km_pages(4096), local[8];
	int fd = dv_open_as(O_RDWR | O_NONBLOCK);
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	uint64_t src = dv_create(fd, p, 4096, DV_RO), count;
	volatile struct onecopy_completion *word = dv_async(fd, 8, -1);

	KM_OK(dv_read_async(fd, src, 0, local, 8, 0, ONECOPY_COPY_EVENT));
	KM_EQ(poll(&polled, 1, 20000), 1);
	KM_EQ(polled.revents, POLLIN);
	KM_EQ(word->state, ONECOPY_STATE_DONE);
	KM_EQ(read(fd, &count, 8), 8);
	KM_EQ(count, 1);
	KM_ERR(read(fd, &count, 8), EAGAIN);
}

/* The word of a mapping that outlives all descriptors; pages of memory that was unmapped. */
static void ends_early(void)
{
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int owner = dv_open();
	uint64_t src = dv_create(owner, p, BYTES, DV_RO);

	for (int i = 0; i < 20; i++) {
		int fd = dv_open();
		volatile struct onecopy_completion *word = dv_async(fd, 256, -1);

		for (int j = 0; j < 100; j++)
			KM_OK(dv_read_async(fd, src, 0, q, BYTES, j, 0));
		if (i & 1)
			KM_OK(munmap((void *)word, 4096));
		KM_OK(close(fd));
		if (i == 19)
			KM_OK(dv_destroy(owner, src));
	}
	KM_OK(munmap(q, BYTES));
	KM_OK(munmap(p, BYTES));
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "setup_errors", .run = setup_errors},
		{.name = "copies", .run = copies},
		{.name = "copy_errors", .run = copy_errors},
		{.name = "memlock", .run = memlock},
		{.name = "user_limit", .run = user_limit},
		{.name = "busy_and_cancel", .run = busy_and_cancel},
		{.name = "events", .run = events},
		{.name = "waiter_before_setup", .run = waiter_before_setup},
		{.name = "events_not_told", .run = events_not_told},
		{.name = "destroyed_while_queued", .run = destroyed_while_queued, .limit = 60},
		{.name = "stale_while_queued", .run = stale_while_queued, .limit = 60},
		{.name = "event_without_eventfd", .run = event_without_eventfd},
		{.name = "ends_early", .run = ends_early},
		{0},
	};

	return km_main(cases, argc, argv);
}
