// SPDX-License-Identifier: BSD-3-Clause
/*
 * /dev/onecopy: copies whose local memory is not there until somebody provides it,
 * with userfaultfd, at a time of its choice. What a region was before it was
 * destroyed may be seen, but not what its memory was used for afterwards.
 */
#include "dev.h"
#include "knem.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/syscall.h>

#define PAGES 4

static size_t page;

/* A copy in a thread of its own. */
struct waiter {
	pthread_t thread;
	int fd;
	enum how {
		NOW,
		LATER,
		PINNED
	} how; /* LATER, and PINNED of /dev/knem, pin local memory first */
	bool write;
	uint64_t cookie;
	uint8_t *local;
	ssize_t result;
	int err;
};

struct scene {
	int fd, uffd;
	uint8_t *p; /* the region's */
	struct waiter waiter;
};

static void add_faults(int uffd, void *p, size_t bytes)
{
	struct uffdio_register what = {
		.range = {.start = (uintptr_t)p, .len = bytes},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	KM_OK(ioctl(uffd, UFFDIO_REGISTER, &what));
}

static int user_faults(void *p, size_t bytes)
{
	struct uffdio_api api = {.api = UFFD_API};
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api))
		km_skip("no userfaultfd here: %s", strerror(errno));
	add_faults(uffd, p, bytes);
	return uffd;
}

static void expect_fault(int uffd, const void *at)
{
	struct uffd_msg message;

	KM_EQ(read(uffd, &message, sizeof(message)), sizeof(message));
	KM_EQ(message.event, UFFD_EVENT_PAGEFAULT);
	KM_EQ(message.arg.pagefault.address & -page, (uintptr_t)at);
}

static void provide(int uffd, uint8_t *at, uint8_t *bytes, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct uffdio_copy copy = {
			.dst = (uintptr_t)at + i * page,
			.src = (uintptr_t)bytes + i * page,
			.len = page,
		};

		KM_OK(ioctl(uffd, UFFDIO_COPY, &copy));
	}
}

static void *wait_copy(void *arg)
{
	struct waiter *w = arg;
	size_t bytes = PAGES * page;

	if (w->how == PINNED)
		w->result = kn_inline(w->fd, w->cookie, 0, w->local, bytes, w->write,
				      KNEM_FLAG_PINLOCAL);
	else if (w->how == LATER)
		w->result = (w->write ? dv_write_async(w->fd, w->cookie, 0, w->local, bytes, 0, 0)
				      : dv_read_async(w->fd, w->cookie, 0, w->local, bytes, 0, 0));
	else
		w->result = (w->write ? dv_write(w->fd, w->cookie, 0, w->local, bytes)
				      : dv_read(w->fd, w->cookie, 0, w->local, bytes));
	w->err = errno;
	return NULL;
}

/* Begins a copy, of whose local pages @there are, and comes back when it waits for the next. */
static void begin_how(struct scene *s, enum how how, uint32_t flags, bool write, int there)
{
	uint8_t *bytes = km_pages(PAGES * page);
	struct waiter *w = &s->waiter;

	s->fd = dv_open();
	s->p = km_pages(PAGES * page);
	km_fill(s->p, PAGES * page, 1);
	w->fd = how == PINNED ? kn_open() : dv_open();
	w->how = how;
	w->write = write;
	w->cookie = dv_create(s->fd, s->p, PAGES * page, DV_RW | flags);
	w->local = km_pages(PAGES * page);
	s->uffd = user_faults(w->local, PAGES * page);
	km_fill(bytes, PAGES * page, 7);
	provide(s->uffd, w->local, bytes, there);
	if (how == LATER)
		dv_async(w->fd, 1, -1);
	KM_EQ(pthread_create(&w->thread, NULL, wait_copy, w), 0);
	expect_fault(s->uffd, w->local + there * page);
}

static void begin_on(struct scene *s, uint32_t flags, bool write, int there)
{
	begin_how(s, NOW, flags, write, there);
}

static void begin(struct scene *s, bool write, int there)
{
	begin_on(s, 0, write, there);
}

/* The pages that are missing, and the copy's end. */
static void finish(struct scene *s, int there)
{
	uint8_t *bytes = km_pages(PAGES * page);
	struct waiter *w = &s->waiter;

	km_fill(bytes, PAGES * page, 7);
	provide(s->uffd, w->local + there * page, bytes + there * page, PAGES - there);
	KM_EQ(pthread_join(w->thread, NULL), 0);
	KM_OK(close(s->uffd));
}

/* A page that comes late is no error. */
static void comes_late(void)
{
	for (int there = 0; there < PAGES; there++) {
		for (int write = 0; write < 2; write++) {
			struct scene s;

			begin(&s, write, there);
			finish(&s, there);
			KM_EQ(s.waiter.result, PAGES * page);
			KM_EQ(km_differ(write ? s.p : s.waiter.local, PAGES * page, write ? 7 : 1),
			      PAGES * page);
		}
	}
}

static void end_region(struct scene *s, bool by_close)
{
	if (by_close)
		KM_OK(close(s->fd));
	else
		KM_OK(dv_destroy(s->fd, s->waiter.cookie));
	/* The owner goes on, with the same pages. */
	km_fill(s->p, PAGES * page, 2);
}

static void read_after_destruction(void)
{
	uint8_t *was = km_pages(PAGES * page), *new = km_pages(PAGES * page);

	km_fill(was, PAGES * page, 7);
	for (int there = 0; there < PAGES; there++) {
		for (int by_close = 0; by_close < 2; by_close++) {
			struct scene s;
			uint8_t *got;

			begin(&s, false, there);
			end_region(&s, by_close);
			finish(&s, there);
			KM_EQ(s.waiter.result, -1);
			KM_EQ(s.waiter.err, ENOENT);
			/* Pages of before, then one byte at most, read before as well. */
			got = s.waiter.local;
			km_fill(new, PAGES * page, 1);
			KM_TRUE(!memcmp(got, new, there * page));
			KM_TRUE(got[there * page] == new[there * page] ||
				got[there * page] == was[there * page]);
			KM_TRUE(!memcmp(got + there * page + 1, was + there * page + 1,
					(PAGES - there) * page - 1));
		}
	}
}

static void write_after_destruction(void)
{
	for (int there = 0; there < PAGES; there++) {
		for (int by_close = 0; by_close < 2; by_close++) {
			struct scene s;

			begin(&s, true, there);
			end_region(&s, by_close);
			finish(&s, there);
			KM_EQ(s.waiter.result, -1);
			KM_EQ(s.waiter.err, ENOENT);
			KM_EQ(km_differ(s.p, PAGES * page, 2), PAGES * page);
		}
	}
}

/* Who makes a copy wait does not make the region's owner pay for as long. */
static void given_back(void)
{
	for (int hot = 0; hot < 2; hot++) {
		for (int write = 0; write < 2; write++) {
			double until = km_now() + (km_slow() ? 60 : 10);
			struct scene s;

			begin_on(&s, ONECOPY_REGION_ANY_USER, write, 1);
			KM_EQ(dv_info(s.waiter.fd).pinned_bytes, PAGES * page);
			for (int i = 0; hot && i < 200; i++) {
				uint8_t byte;

				KM_EQ(dv_read(s.fd, s.waiter.cookie, 0, &byte, 1), 1);
			}
			end_region(&s, false);
			/* With many users it takes a moment. */
			while (hot && dv_info(s.waiter.fd).pinned_bytes && km_now() < until)
				km_pause();
			KM_EQ(dv_info(s.waiter.fd).pinned_bytes, 0);
			finish(&s, 1);
			KM_EQ(s.waiter.result, -1);
			KM_EQ(s.waiter.err, ENOENT);
		}
	}
}

/* Nor where the memory that is waited for is to be pinned. */
static void pinned_given_back(void)
{
	for (enum how how = LATER; how <= PINNED; how++) {
		for (int write = 0; write < 2; write++) {
			struct scene s;
			uint64_t pinned;

			begin_how(&s, how, ONECOPY_REGION_ANY_USER, write, 1);
			/* The charge of what is being pinned comes and goes. */
			pinned = dv_info(s.fd).pinned_bytes;
			KM_OK(dv_destroy(s.fd, s.waiter.cookie));
			KM_EQ(pinned - dv_info(s.fd).pinned_bytes, PAGES * page);
			finish(&s, 1);
			KM_EQ(s.waiter.result, -1);
			KM_EQ(s.waiter.err, how == PINNED ? EINVAL : ENOENT);
		}
	}
}

static void *ask_copy(void *arg)
{
	struct onecopy_copy *copy = arg;

	/* The descriptor is where the answer will be. */
	return (void *)(intptr_t)ioctl(copy->copied, ONECOPY_IOC_COPY, copy);
}

/* The argument's page is taken away while the copy waits: then the answer waits for it. */
static void answered_late(void)
{
	struct onecopy_copy *copy = km_pages(page), *again = km_pages(page);
	uint8_t *p = km_pages(page), *local = km_pages(page), *bytes = km_pages(page);
	struct onecopy_segment segment = dv_seg(local, page);
	int fd = dv_open(), uffd = user_faults(local, page);
	pthread_t thread;
	void *result;

	km_fill(p, page, 1);
	*again = *copy = (struct onecopy_copy){
		.size = sizeof(*copy),
		.source = dv_create(fd, p, page, DV_RO | ONECOPY_REGION_ANY_USER),
		.local = (uintptr_t)&segment,
		.nr_local = 1,
		.length = page,
		.copied = dv_open(),
	};
	add_faults(uffd, copy, page);
	KM_EQ(pthread_create(&thread, NULL, ask_copy, copy), 0);
	expect_fault(uffd, local);
	KM_OK(madvise(copy, page, MADV_DONTNEED));
	provide(uffd, local, bytes, 1);
	expect_fault(uffd, copy);
	KM_OK(dv_destroy(fd, again->source));
	KM_EQ(dv_info(fd).pinned_bytes, 0);
	provide(uffd, (uint8_t *)copy, (uint8_t *)again, 1);
	KM_EQ(pthread_join(thread, &result), 0);
	KM_EQ((intptr_t)result, 0);
	KM_EQ(copy->copied, page);
	KM_EQ(km_differ(local, page, 1), page);
}

/* A copy that has used up its region is all that keeps it: it goes on. */
static void used_up(void)
{
	for (int write = 0; write < 2; write++) {
		struct scene s;

		begin_on(&s, ONECOPY_REGION_SINGLE_USE, write, 1);
		KM_OK(close(s.fd));
		finish(&s, 1);
		KM_EQ(s.waiter.result, PAGES * page);
		KM_EQ(km_differ(write ? s.p : s.waiter.local, PAGES * page, write ? 7 : 1),
		      PAGES * page);
	}
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "comes_late", .run = comes_late},
		{.name = "read_after_destruction", .run = read_after_destruction},
		{.name = "write_after_destruction", .run = write_after_destruction},
		{.name = "given_back", .run = given_back},
		{.name = "pinned_given_back", .run = pinned_given_back},
		{.name = "answered_late", .run = answered_late},
		{.name = "used_up", .run = used_up},
		{0},
	};

	page = km_page();
	return km_main(cases, argc, argv);
}
