// SPDX-License-Identifier: BSD-3-Clause
/*
 * Regions created, destroyed, copied, mapped on several CPUs while their memory
 * is unmapped, moved, truncated, while processes fork, exec, end, are killed.
 *
 * The bytes of a region are constant for its life and follow from a seed
 * published with its cookie; its owner gives the memory back as soon as the
 * region is destroyed. So whoever sees other bytes through a cookie or a
 * mapping has seen memory that is no longer the region's.
 */
#include "dev.h"
#include "place.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#define BYTES  (64 * 4096)
#define PLACES 4

struct board {
	struct place place[PLACES];
	volatile int stop;
	volatile unsigned long regions, reads, gone, maps, revoked, killed;
};

static struct board *board;

static struct board *board_create(void)
{
	void *p = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	KM_TRUE(p != MAP_FAILED);
	return p;
}

/* Memory of a kind; the file, if it is of one. */
static uint8_t *some_memory(uint64_t kind, int *file)
{
	uint8_t *p;

	*file = -1;
	if (kind % 3 == 0)
		return km_pages(BYTES);
	*file = memfd_create("races", MFD_CLOEXEC);
	KM_TRUE(*file >= 0 && !ftruncate(*file, BYTES));
	p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, kind % 3 == 1 ? MAP_SHARED : MAP_PRIVATE,
		 *file, 0);
	KM_TRUE(p != MAP_FAILED);
	return p;
}

/* A region and its memory end, in some order. The owner's file afterwards. */
static int end(int fd, uint64_t cookie, uint8_t *p, int file, uint64_t how)
{
	switch (how) {
	case 0:
		/* The memory goes first: the region keeps its pages. */
		munmap(p, BYTES);
		KM_OK(dv_destroy(fd, cookie));
		break;
	case 1:
		if (file >= 0)
			KM_OK(ftruncate(file, 0));
		KM_OK(dv_destroy(fd, cookie));
		munmap(p, BYTES);
		break;
	case 2:
		p = mremap(p, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, km_pages(BYTES));
		KM_OK(dv_destroy(fd, cookie));
		munmap(p, BYTES);
		break;
	default:
		/* With the file: all its regions. */
		KM_OK(close(fd));
		munmap(p, BYTES);
		fd = dv_open();
	}
	if (file >= 0)
		close(file);
	/* Whatever page is free now gets other bytes. */
	p = km_pages(BYTES);
	memset(p, 0xee, BYTES);
	munmap(p, BYTES);
	return fd;
}

static void owner(uint64_t seed, struct place *place)
{
	int fd = dv_open();
	bool track = dv_info(fd).features & ONECOPY_FEATURE_TRACK;

	while (!board->stop) {
		uint64_t of = random_next(&seed), cookie;
		uint32_t flags = DV_RO | (of & 64 ? ONECOPY_REGION_LINGER : 0) |
				 (track && of & 128 ? ONECOPY_REGION_TRACK : 0);
		int file;
		uint8_t *p = some_memory(of >> 8, &file);

		km_fill(p, BYTES, of);
		cookie = dv_create(fd, p, BYTES, flags);
		place_publish(place, cookie, of);
		__atomic_add_fetch(&board->regions, 1, __ATOMIC_RELAXED);
		usleep(km_below(&seed, 3000));
		fd = end(fd, cookie, p, file, (of >> 16) % 4);
		place_publish(place, 0, 0);
	}
}

/* The region was found gone, or not what its owner's addresses show any more. */
static void expect_gone(void)
{
	KM_TRUE(errno == ENOENT || errno == ESTALE);
	__atomic_add_fetch(&board->gone, 1, __ATOMIC_RELAXED);
}

static void reader(uint64_t seed)
{
	uint8_t *q = km_pages(BYTES);
	int fd = dv_open();

	while (!board->stop) {
		uint64_t cookie, of;
		ssize_t n;

		if (!place_look(&board->place[km_below(&seed, PLACES)], &cookie, &of))
			continue;
		n = dv_read(fd, cookie, 0, q, BYTES);
		if (n == -1) {
			expect_gone();
			continue;
		}
		KM_EQ(n, BYTES);
		KM_EQ(km_differ(q, BYTES, of), BYTES);
		__atomic_add_fetch(&board->reads, 1, __ATOMIC_RELAXED);
	}
}

static __thread sigjmp_buf bus;

static void on_bus(int sig)
{
	siglongjmp(bus, sig);
}

static void mapper(uint64_t seed)
{
	struct sigaction act = {.sa_handler = on_bus};
	int fd = dv_open();

	KM_OK(sigaction(SIGBUS, &act, NULL));
	while (!board->stop) {
		volatile size_t bytes = BYTES;
		uint64_t cookie, of;
		uint8_t *volatile m;

		if (!place_look(&board->place[km_below(&seed, PLACES)], &cookie, &of))
			continue;
		m = dv_map(fd, cookie, 0, BYTES, ONECOPY_MAP_READ);
		if (m == MAP_FAILED) {
			expect_gone();
			continue;
		}
		if (km_below(&seed, 4) == 0) {
			KM_OK(munmap(m + 4096, BYTES - 4096));
			bytes = 4096;
			m = mremap(m, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, km_pages(4096));
			KM_TRUE(m != MAP_FAILED);
		}
		for (volatile int i = 0; i < 20; i++) {
			if (sigsetjmp(bus, 1)) {
				__atomic_add_fetch(&board->revoked, 1, __ATOMIC_RELAXED);
				break;
			}
			if (km_differ(m, 4096, of) == 4096)
				continue;
			/* There the revocation may take until the next entry of the kernel. */
			KM_TRUE(km_uml());
			getppid();
			KM_EQ(km_differ(m, 4096, of), 4096);
		}
		munmap(m, bytes);
		__atomic_add_fetch(&board->maps, 1, __ATOMIC_RELAXED);
	}
}

/* Children that end at once, execute something else, or are killed, with all we have open. */
static void forker(uint64_t seed)
{
	int fd = dv_open();

	while (!board->stop) {
		uint8_t *p = km_pages(BYTES);
		uint64_t cookie = dv_create(fd, p, BYTES, DV_RW);
		uint8_t *m = dv_map(fd, cookie, 0, BYTES, ONECOPY_MAP_READ | ONECOPY_MAP_WRITE);
		pid_t pid = km_fork();

		KM_TRUE(m != MAP_FAILED);
		if (pid == 0) {
			switch (km_below(&seed, 3)) {
			case 0:
				execl("/bin/true", "true", NULL);
				_exit(0);
			case 1:
				p[1] = 1;
				dv_destroy(fd, cookie);
				_exit(0);
			default:
				for (;;)
					dv_read(fd, cookie, 0, p, BYTES);
			}
		}
		/* The child may have destroyed it. */
		km_touch(m, true);
		usleep(km_below(&seed, 2000));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		dv_destroy(fd, cookie);
		munmap(m, BYTES);
		munmap(p, BYTES);
		__atomic_add_fetch(&board->killed, 1, __ATOMIC_RELAXED);
	}
}

static pid_t start(void (*work)(uint64_t), uint64_t seed)
{
	pid_t pid = km_fork();

	if (pid == 0) {
		work(seed);
		_exit(0);
	}
	return pid;
}

static void storm(void)
{
	unsigned long millis = km_share(8000);
	uint64_t seed = km_seed();
	pid_t pid[PLACES + 5];
	int n = 0;

	board = board_create();
	if (millis < 3000)
		millis = 3000;
	for (int i = 0; i < PLACES; i++) {
		pid[n] = km_fork();
		if (pid[n++] == 0) {
			owner(seed + i, &board->place[i]);
			_exit(0);
		}
	}
	pid[n++] = start(reader, seed + 100);
	pid[n++] = start(reader, seed + 101);
	pid[n++] = start(mapper, seed + 102);
	pid[n++] = start(mapper, seed + 103);
	pid[n++] = start(forker, seed + 104);
	usleep(millis * 1000);
	board->stop = 1;
	while (n--)
		km_join(pid[n]);
	km_note("%lu regions, %lu reads, %lu too late, %lu maps, %lu revoked, %lu children",
		board->regions, board->reads, board->gone, board->maps, board->revoked,
		board->killed);
	KM_TRUE(board->reads && board->maps && board->killed);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "storm", .run = storm, .limit = 3600},
		{0},
	};

	return km_main(cases, argc, argv);
}
