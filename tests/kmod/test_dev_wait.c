// SPDX-License-Identifier: BSD-3-Clause
/*
 * /dev/onecopy: copies whose local memory is not there until somebody provides it,
 * with userfaultfd, at a time of its choice. What a region was before it was
 * destroyed may be seen, but not what its memory was used for afterwards.
 */
#include "dev.h"

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

static int user_faults(void *p, size_t bytes)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register what = {
		.range = {.start = (uintptr_t)p, .len = bytes},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api))
		km_skip("no userfaultfd here: %s", strerror(errno));
	KM_OK(ioctl(uffd, UFFDIO_REGISTER, &what));
	return uffd;
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

	w->result = (w->write ? dv_write(w->fd, w->cookie, 0, w->local, PAGES * page)
			      : dv_read(w->fd, w->cookie, 0, w->local, PAGES * page));
	w->err = errno;
	return NULL;
}

/* Begins a copy, of whose local pages @there are, and comes back when it waits for the next. */
static void begin_on(struct scene *s, uint32_t flags, bool write, int there)
{
	uint8_t *bytes = km_pages(PAGES * page);
	struct waiter *w = &s->waiter;
	struct uffd_msg message;

	s->fd = dv_open();
	s->p = km_pages(PAGES * page);
	km_fill(s->p, PAGES * page, 1);
	w->fd = dv_open();
	w->write = write;
	w->cookie = dv_create(s->fd, s->p, PAGES * page, DV_RW | flags);
	w->local = km_pages(PAGES * page);
	s->uffd = user_faults(w->local, PAGES * page);
	km_fill(bytes, PAGES * page, 7);
	provide(s->uffd, w->local, bytes, there);
	KM_EQ(pthread_create(&w->thread, NULL, wait_copy, w), 0);
	KM_EQ(read(s->uffd, &message, sizeof(message)), sizeof(message));
	KM_EQ(message.event, UFFD_EVENT_PAGEFAULT);
	KM_EQ(message.arg.pagefault.address & -page, (uintptr_t)w->local + there * page);
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
		{.name = "used_up", .run = used_up},
		{0},
	};

	page = km_page();
	return km_main(cases, argc, argv);
}
