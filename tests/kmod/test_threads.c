// SPDX-License-Identifier: BSD-3-Clause
/*
 * Threads of one process that pull everything away from each other: the local
 * memory of a copy, the descriptor of a call, the region of a mapping, the file
 * of copies under way. Any errno of the table will do; the kernel must stay
 * whole, and memory that was never given away must stay as it is.
 */
#include "dev.h"
#include "knem.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#define BYTES (128 * 4096)
#define FILES 4

struct scene {
	volatile int stop;
	volatile int fd[FILES], knem[FILES];
	volatile uint64_t cookie[FILES];
	volatile knem_cookie_t knem_cookie[FILES];
	uint8_t *space; /* two halves: local memory of copies, memory of regions */
	volatile unsigned long calls;
};

struct actor {
	struct scene *scene;
	uint64_t seed;
	void (*act)(struct scene *s, uint64_t *seed);
};

static uint8_t *place(struct scene *s, uint64_t *seed, size_t *bytes, int half)
{
	*bytes = 4096 * (1 + km_below(seed, 40));
	return s->space + half * BYTES + 4096 * km_below(seed, (BYTES - *bytes) / 4096 + 1);
}

static void copies(struct scene *s, uint64_t *seed)
{
	size_t bytes;
	uint8_t *p = place(s, seed, &bytes, 0);
	int i = km_below(seed, FILES), fd = s->fd[km_below(seed, FILES)];

	switch (km_below(seed, 6)) {
	case 0:
		dv_read(fd, s->cookie[i], km_below(seed, 9000), p, bytes);
		break;
	case 1:
		dv_write(fd, s->cookie[i], km_below(seed, 9000), p, bytes);
		break;
	case 2:
		dv_read_async(fd, s->cookie[i], 0, p, bytes, km_below(seed, 64), 0);
		break;
	case 3:
		dv_cancel(fd, km_below(seed, 64));
		break;
	case 4:
		kn_inline_async(s->knem[km_below(seed, FILES)], s->knem_cookie[i], 0, p, bytes,
				false, KNEM_FLAG_MEMCPYTHREAD | KNEM_FLAG_NOTIFY_FD,
				km_below(seed, 4096));
		break;
	default:
		kn_inline(s->knem[km_below(seed, FILES)], s->knem_cookie[i], 0, p, bytes,
			  km_below(seed, 2), 0);
	}
}

static void memory(struct scene *s, uint64_t *seed)
{
	size_t bytes;
	uint8_t *p = place(s, seed, &bytes, km_below(seed, 2));

	switch (km_below(seed, 4)) {
	case 0:
		mprotect(p, bytes, PROT_NONE);
		mprotect(p, bytes, KN_RW);
		break;
	case 1:
		KM_TRUE(mmap(p, bytes, KN_RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
		break;
	case 2:
		mprotect(p, bytes, PROT_READ);
		mprotect(p, bytes, KN_RW);
		break;
	default:
		madvise(p, bytes, MADV_DONTNEED);
	}
}

static void regions(struct scene *s, uint64_t *seed)
{
	static const uint32_t kinds[] = {DV_RW, DV_RW | ONECOPY_REGION_TRACK,
					 DV_RW | ONECOPY_REGION_LINGER,
					 DV_RW | ONECOPY_REGION_SINGLE_USE};
	size_t bytes;
	uint8_t *p = place(s, seed, &bytes, 1);
	struct onecopy_segment seg = dv_seg(p, bytes);
	struct knem_cmd_param_iovec iov = kn_iov(p, bytes);
	int i = km_below(seed, FILES);
	uint64_t cookie;

	dv_destroy(s->fd[km_below(seed, FILES)], s->cookie[i]);
	if (!dv_create_try(s->fd[i], &seg, 1, kinds[km_below(seed, 4)], &cookie))
		s->cookie[i] = cookie;
	kn_destroy(s->knem[km_below(seed, FILES)], s->knem_cookie[i]);
	if (!kn_create_try(s->knem[i], &iov, 1, KN_RW, 0, &cookie))
		s->knem_cookie[i] = cookie;
}

static void maps(struct scene *s, uint64_t *seed)
{
	uint8_t *m = dv_map(s->fd[km_below(seed, FILES)], s->cookie[km_below(seed, FILES)], 0, 4096,
			    ONECOPY_MAP_READ | ONECOPY_MAP_WRITE);

	if (m == MAP_FAILED)
		return;
	for (int i = 0; i < 50; i++) {
		int sig = km_touch(m, i & 1);

		KM_TRUE(!sig || sig == SIGBUS);
	}
	KM_OK(munmap(m, 4096));
}

/* Words of a file, then the file itself, under those who use it. */
static void files(struct scene *s, uint64_t *seed)
{
	struct onecopy_async_setup setup = {.size = sizeof(setup), .nr_slots = 64, .eventfd = -1};
	int i = km_below(seed, FILES), fd = s->fd[i], knem = s->knem[i];
	uint32_t index;

	s->fd[i] = dv_open_as(O_RDWR | O_NONBLOCK);
	s->knem[i] = kn_open_as(O_RDWR | O_NONBLOCK);
	ioctl(s->fd[i], ONECOPY_IOC_ASYNC_SETUP, &setup);
	munmap((void *)kn_array(s->knem[i], 4096), 4096);
	if (read(s->knem[km_below(seed, FILES)], &index, 4) == 4)
		KM_TRUE(index < 4096);
	close(fd);
	close(knem);
	usleep(km_below(seed, 500));
}

static void *perform(void *arg)
{
	struct actor *a = arg;

	while (!a->scene->stop) {
		a->act(a->scene, &a->seed);
		__atomic_add_fetch(&a->scene->calls, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void threads(void)
{
	static void (*const acts[])(struct scene *, uint64_t *) = {copies,  copies, memory,
								   regions, maps,   files};
	enum { N = sizeof(acts) / sizeof(*acts) };
	unsigned long millis = km_scaled(6000);
	struct scene s = {.space = km_pages(2 * BYTES)};
	uint8_t *canary = km_pages(4096);
	struct actor actors[N];
	pthread_t thread[N];

	km_fill(canary, 4096, 1);
	for (int i = 0; i < FILES; i++) {
		s.fd[i] = dv_open();
		s.knem[i] = kn_open();
	}
	for (int i = 0; i < N; i++) {
		actors[i] = (struct actor){&s, km_seed() + i, acts[i]};
		KM_EQ(pthread_create(&thread[i], NULL, perform, &actors[i]), 0);
	}
	usleep((millis < 2000 ? 2000 : millis) * 1000);
	s.stop = 1;
	for (int i = 0; i < N; i++)
		KM_EQ(pthread_join(thread[i], NULL), 0);
	KM_EQ(km_differ(canary, 4096, 1), 4096);
	km_note("%lu steps", s.calls);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "threads", .run = threads, .limit = 3600},
		{0},
	};

	return km_main(cases, argc, argv);
}
