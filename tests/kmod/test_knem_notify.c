// SPDX-License-Identifier: BSD-3-Clause
/* /dev/knem: NOTIFY_FD events, read() and poll() of a context. */
#include "knem.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/uio.h>

#define BYTES  65536
#define THREAD (KNEM_FLAG_MEMCPYTHREAD | KNEM_FLAG_NOTIFY_FD)

struct setup {
	int fd;
	volatile knem_status_t *slot;
	knem_cookie_t cookie;
	uint8_t *local;
};

static struct setup prepare(int flags, size_t slots)
{
	struct setup s = {.fd = kn_open_as(O_RDWR | flags), .local = km_pages(BYTES)};

	s.slot = kn_array(s.fd, slots);
	s.cookie = kn_create(s.fd, km_pages(BYTES), BYTES, KN_RW, 0);
	return s;
}

static void start(struct setup *s, size_t bytes, uint32_t slot)
{
	KM_OK(kn_inline_async(s->fd, s->cookie, 0, s->local, bytes, false, THREAD, slot));
}

/* Indexes come in the order of the calls, each after its slot; read waits for the whole count. */
static void order(void)
{
	enum { N = 200 };
	struct setup s = prepare(0, 4096);
	uint32_t index[N];
	uint64_t seed = km_seed();

	for (int i = 0; i < N; i++)
		start(&s, i % 5 ? km_below(&seed, 300) : BYTES, N - i);
	KM_EQ(read(s.fd, index, sizeof(index)), sizeof(index));
	for (int i = 0; i < N; i++) {
		KM_EQ(index[i], N - i);
		KM_EQ(s.slot[N - i], KNEM_STATUS_SUCCESS);
	}
}

static void counts(void)
{
	struct setup s = prepare(O_NONBLOCK, 4096);
	uint32_t index[8] = {77, 77};

	KM_ERR(read(s.fd, index, 3), EINVAL);
	KM_ERR(read(s.fd, index, 7), EINVAL);
	KM_ERR(read(s.fd, index, 4), EAGAIN);
	start(&s, 100, 5);
	start(&s, 100, 6);
	KM_EQ(kn_wait(s.slot + 6), KNEM_STATUS_SUCCESS);
	/* What is there, without waiting for more. */
	while (km_pause(), poll(&(struct pollfd){s.fd, POLLIN, 0}, 1, 10000) != 1)
		;
	KM_EQ(read(s.fd, index, 4), 4);
	KM_EQ(index[0], 5);
	KM_EQ(poll(&(struct pollfd){s.fd, POLLIN, 0}, 1, 10000), 1);
	KM_EQ(read(s.fd, index, sizeof(index)), 4);
	KM_EQ(index[0], 6);
	KM_ERR(read(s.fd, index, 4), EAGAIN);
	start(&s, 100, 7);
	KM_EQ(kn_wait(s.slot + 7), KNEM_STATUS_SUCCESS);
	KM_EQ(poll(&(struct pollfd){s.fd, POLLIN, 0}, 1, 10000), 1);
	KM_ERR(readv(s.fd, &(struct iovec){(void *)8, 4}, 1), EFAULT);
}

/* As many events as slots: then EBUSY, until one is read. Zero bytes take a place, and give it
 * back. */
static void full(void)
{
	const size_t slots = km_page();
	struct setup s = prepare(0, 1);
	uint32_t index;

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < slots; i++)
			start(&s, round ? 0 : 8, i);
		KM_ERR(kn_inline_async(s.fd, s.cookie, 0, s.local, 8, false, THREAD, 0), EBUSY);
		/* A refused copy takes no place, and those without event need none. */
		KM_ERR(kn_inline_async(s.fd, s.cookie, 0, s.local, 8, false, THREAD, 0), EBUSY);
		KM_OK(kn_inline_async(s.fd, s.cookie, 0, s.local, 8, false, KNEM_FLAG_MEMCPYTHREAD,
				      0));
		KM_EQ(read(s.fd, &index, 4), 4);
		KM_EQ(index, 0);
		start(&s, 8, 99);
		KM_ERR(kn_inline_async(s.fd, s.cookie, 0, s.local, 8, false, THREAD, 0), EBUSY);
		for (size_t i = 1; i <= slots; i++) {
			KM_EQ(read(s.fd, &index, 4), 4);
			KM_EQ(index, i == slots ? 99 : i);
		}
	}
}

/* Refused copies leave their place in the queue free. */
static void refused(void)
{
	struct setup s = prepare(O_NONBLOCK, 1);
	uint32_t index;

	for (size_t i = 0; i < km_page() + 10; i++) {
		KM_ERR(kn_inline_async(s.fd, 0, 0, s.local, 8, false, THREAD, 0), EINVAL);
		KM_ERR(kn_inline_async(s.fd, s.cookie, 0, (void *)8, 8, false, THREAD, 0), EFAULT);
	}
	KM_ERR(read(s.fd, &index, 4), EAGAIN);
	start(&s, 8, 3);
	KM_EQ(poll(&(struct pollfd){s.fd, POLLIN, 0}, 1, 10000), 1);
	KM_EQ(read(s.fd, &index, 4), 4);
	KM_EQ(index, 3);
}

static void polling(void)
{
	struct setup s = prepare(0, 4096);
	struct pollfd p = {.fd = s.fd, .events = POLLIN},
		      bare = {.fd = kn_open(), .events = POLLIN};
	uint32_t index;

	KM_EQ(poll(&bare, 1, 0), 1);
	KM_TRUE(bare.revents & POLLERR);
	KM_TRUE(!(bare.revents & POLLIN));
	KM_EQ(poll(&p, 1, 0), 0);
	/* Without the flag no event. */
	KM_OK(kn_inline_async(s.fd, s.cookie, 0, s.local, 8, false, KNEM_FLAG_MEMCPYTHREAD, 0));
	KM_EQ(kn_wait(s.slot), KNEM_STATUS_SUCCESS);
	KM_EQ(poll(&p, 1, 20), 0);
	start(&s, BYTES, 1);
	KM_EQ(poll(&p, 1, 10000), 1);
	KM_EQ(p.revents, POLLIN);
	KM_EQ(read(s.fd, &index, 4), 4);
	KM_EQ(poll(&p, 1, 0), 0);
}

/* Who waits by epoll from before the array's mmap() on hears of events after it. */
static void waiter_before_array(void)
{
	struct setup s = {.fd = kn_open_as(O_RDWR), .local = km_pages(BYTES)};
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	uint32_t index;

	KM_OK(epoll);
	KM_OK(epoll_ctl(epoll, EPOLL_CTL_ADD, s.fd, &event));
	KM_EQ(epoll_wait(epoll, &event, 1, 0), 1);
	KM_EQ(event.events, EPOLLERR);
	s.slot = kn_array(s.fd, 4096);
	s.cookie = kn_create(s.fd, km_pages(BYTES), BYTES, KN_RW, 0);
	KM_EQ(epoll_wait(epoll, &event, 1, 0), 0);
	start(&s, BYTES, 3);
	KM_EQ(epoll_wait(epoll, &event, 1, 10000), 1);
	KM_EQ(event.events, EPOLLIN);
	KM_EQ(read(s.fd, &index, 4), 4);
	KM_EQ(index, 3);
}

/* A copy of no bytes, which needs no thread, does not get ahead of an event that is due. */
static void nothing_overtakes(void)
{
	struct setup s = prepare(0, 4096);
	uint32_t index[2];

	for (unsigned long i = 0; i < km_scaled(3000); i++) {
		s.slot[1] = KNEM_STATUS_PENDING;
		start(&s, 1 + i % 64, 1);
		KM_EQ(kn_wait(s.slot + 1), KNEM_STATUS_SUCCESS);
		start(&s, 0, 2);
		KM_EQ(read(s.fd, index, sizeof(index)), sizeof(index));
		KM_EQ(index[0], 1);
		KM_EQ(index[1], 2);
	}
}

/* A reader asleep wakes by the event another process causes. */
static void wakes(void)
{
	struct setup s = prepare(0, 4096);
	uint32_t index[2] = {0};
	pid_t pid = km_fork();

	if (pid == 0) {
		KM_EQ(read(s.fd, index, 8), 8);
		KM_EQ(index[0], 11);
		KM_EQ(index[1], 12);
		_exit(0);
	}
	for (int i = 0; i < 20; i++)
		km_pause();
	start(&s, 8, 11);
	for (int i = 0; i < 20; i++)
		km_pause();
	start(&s, 8, 12);
	km_join(pid);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* A signal: what was there, else EINTR. */
static void interrupted(void)
{
	struct sigaction act = {.sa_handler = on_alarm};
	const struct itimerval soon = {.it_value.tv_usec = 50000, .it_interval.tv_usec = 50000};
	struct setup s = prepare(0, 4096);
	uint32_t index[3];

	KM_OK(sigaction(SIGALRM, &act, NULL));
	start(&s, 8, 1);
	start(&s, 8, 2);
	KM_EQ(kn_wait(s.slot + 2), KNEM_STATUS_SUCCESS);
	KM_OK(setitimer(ITIMER_REAL, &soon, NULL));
	KM_EQ(read(s.fd, index, 12), 8);
	KM_EQ(index[1], 2);
	KM_ERR(read(s.fd, index, 12), EINTR);
}

/* Nothing to read without an array, and no trap either. */
static void without_array(void)
{
	int fd = kn_open_as(O_RDWR | O_NONBLOCK);
	uint32_t index;

	KM_TRUE(read(fd, &index, 4) == -1);
	KM_TRUE(errno == EINVAL || errno == EAGAIN);
}

/* Several readers of one open file: every event goes to one of them. */
static void many_readers(void)
{
	enum { READERS = 3, EACH = 100 };
	struct setup s = prepare(0, 4096);
	uint32_t index;
	pid_t pid[READERS];

	for (int i = 0; i < READERS; i++) {
		pid[i] = km_fork();
		if (pid[i])
			continue;
		for (int j = 0; j < EACH; j++) {
			KM_EQ(read(s.fd, &index, 4), 4);
			KM_EQ(s.slot[index], KNEM_STATUS_SUCCESS);
			/* Each index goes to one reader. */
			s.slot[index] = 100 + i;
		}
		_exit(0);
	}
	for (int i = 0; i < READERS * EACH; i++)
		start(&s, 64, i);
	for (int i = 0; i < READERS; i++)
		km_join(pid[i]);
	for (int i = 0; i < READERS * EACH; i++)
		KM_TRUE(s.slot[i] >= 100);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "order", .run = order},
		{.name = "counts", .run = counts},
		{.name = "full", .run = full},
		{.name = "refused", .run = refused},
		{.name = "polling", .run = polling},
		{.name = "waiter_before_array", .run = waiter_before_array},
		{.name = "nothing_overtakes", .run = nothing_overtakes},
		{.name = "wakes", .run = wakes},
		{.name = "interrupted", .run = interrupted},
		{.name = "without_array", .run = without_array},
		{.name = "many_readers", .run = many_readers},
		{0},
	};

	return km_main(cases, argc, argv);
}
