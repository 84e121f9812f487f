// SPDX-License-Identifier: BSD-3-Clause
/*
 * Regions that peers on other CPUs read and write, by copies now and later, by
 * engines and through mappings, while their owner destroys them and uses the
 * memory, or its pages, for something else.
 *
 * Each word of a region is its tag, which no other region has, but for the lowest
 * byte, which says who wrote it. So a reader knows of each word, torn or not,
 * whether it was the region's; and an owner, who has given memory that was a
 * region's another tag, whether anything has landed since.
 */
#include "dev.h"
#include "place.h"
#include "softdma.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#define HUGE   ((size_t)2 << 20)
#define SMALL  ((size_t)64 * 4096)
#define LENGTH ((size_t)128 << 10) /* of a peer's buffer */
#define PLACES 3
#define PEERS  5
#define QUEUED 4

/* Parts of a tag: who wrote, and what peers need to know. */
#define WRITER	  0xffull
#define BY_COPY	  (1ull << 8)
#define BY_MAP	  (1ull << 9)
#define HUGE_SIZE (1ull << 10)
#define PARTS	  0xffffull

/* What becomes of the memory. */
enum { AT_ONCE, SETTLED, GIVEN_BACK, ENDS };

struct board {
	struct place place[PLACES];
	volatile unsigned long met[PLACES]; /* by peers */
	/* Moves on when a peer has nothing under way, and has entered the kernel. */
	volatile unsigned long turn[PEERS];
	volatile int stop;
	volatile unsigned long ended[ENDS], reads, writes, later, gone, maps, revoked;
};

static struct board *board;

static void count(volatile unsigned long *what)
{
	__atomic_add_fetch(what, 1, __ATOMIC_RELAXED);
}

static void fill(uint64_t *words, size_t bytes, uint64_t with)
{
	for (size_t i = 0; i < bytes / 8; i++)
		words[i] = with;
}

/* All words have this tag, of whichever writer. */
static void tagged(const volatile uint64_t *words, size_t bytes, uint64_t tag)
{
	for (size_t i = 0; i < bytes / 8; i++) {
		uint64_t word = words[i];

		if ((word & ~WRITER) != tag)
			KM_EQ(word, tag);
	}
}

/* Address space for a huge page. */
static uint8_t *reserve(void)
{
	const int how = MAP_PRIVATE | MAP_ANONYMOUS;
	uint8_t *p = mmap(NULL, 2 * HUGE, PROT_NONE, how, -1, 0);

	KM_TRUE(p != MAP_FAILED);
	return p + (-(uintptr_t)p & (HUGE - 1));
}

/* Nothing but the address space is left. */
static void unmap(void *at, size_t bytes)
{
	const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;

	KM_TRUE(mmap(at, bytes, PROT_NONE, how, -1, 0) == at);
}

/* ---- owners ---- */

static void *some_memory(uint8_t *at, size_t bytes, bool shared)
{
	const int how = (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_FIXED;

	KM_TRUE(mmap(at, bytes, PROT_READ | PROT_WRITE, how, -1, 0) == at);
	if (bytes == HUGE)
		madvise(at, bytes, MADV_HUGEPAGE);
	return at;
}

/* What peers had begun has ended. False: the storm is over. */
static bool settle(void)
{
	unsigned long turn[PEERS];

	for (int i = 0; i < PEERS; i++)
		turn[i] = board->turn[i];
	for (int i = 0; i < PEERS; i++)
		while (__atomic_load_n(&board->turn[i], __ATOMIC_ACQUIRE) == turn[i]) {
			if (board->stop)
				return false;
			usleep(20);
		}
	return true;
}

/* Nothing lands, for a while. */
static void watch(volatile uint64_t *words, size_t bytes, uint64_t tag, uint64_t *seed)
{
	fill((uint64_t *)words, bytes, tag);
	for (int i = 0; i < 3; i++) {
		usleep(km_below(seed, 400));
		for (size_t k = 0; k < bytes / 8; k++)
			if (words[k] != tag)
				KM_EQ(words[k], tag);
	}
}

/* Until peers are at it: most of them are in the midst of something then. */
static void await_peers(const volatile unsigned long *met, uint64_t *seed)
{
	unsigned long before = *met;

	while (*met == before && !board->stop)
		usleep(50);
	usleep(km_below(seed, 500));
}

/* Ways in which peers may reach a region that ends so. Copies that have begun go on: they may land
 * in memory that is kept. Where mappings are taken back only soon, they may in memory that is not.
 */
static uint64_t ways(int end)
{
	if (end == AT_ONCE)
		return BY_MAP;
	return end == GIVEN_BACK && km_uml() ? BY_COPY : BY_COPY | BY_MAP;
}

static void owner(uint64_t seed, struct place *place)
{
	int fd = dv_open();
	uint8_t *at = reserve(), *next = reserve();

	while (!board->stop) {
		uint64_t of = random_next(&seed), cookie;
		int end = km_below(&seed, ENDS);
		size_t bytes = km_below(&seed, 4) ? SMALL : HUGE;
		uint64_t tag = (of & ~PARTS) | ways(end) | (bytes == HUGE ? HUGE_SIZE : 0);
		uint64_t *words = some_memory(at, bytes, of & 1);

		fill(words, bytes, tag);
		cookie = dv_create(fd, words, bytes, DV_RW | (of & 2 ? ONECOPY_REGION_LINGER : 0));
		place_publish(place, cookie, tag);
		await_peers(&board->met[place - board->place], &seed);
		if (of & 12 || of & 2) {
			KM_OK(dv_destroy(fd, cookie));
		} else {
			KM_OK(close(fd));
			fd = dv_open();
		}
		if (end == GIVEN_BACK) {
			unmap(words, bytes);
			words = some_memory(next, bytes, of & 1);
		} else if ((end == SETTLED || km_uml()) && !settle()) {
			break;
		}
		place_publish(place, 0, 0);
		watch(words, bytes, random_next(&seed) & ~PARTS, &seed);
		unmap(words, bytes);
		count(&board->ended[end]);
	}
}

/* ---- peers ---- */

struct peer {
	uint64_t seed, id;
	int fd;
	volatile struct onecopy_completion *done;
	uint64_t *buffer[QUEUED];
	uint8_t *at; /* of mappings */
};

/* Whether a request was taken; if not, the region must have gone. */
static bool taken(const struct peer *peer, long long result, uint32_t err)
{
	if (!result)
		return true;
	if (err != ENOENT)
		km_fail(__FILE__, __LINE__, "peer %d: %s", (int)peer->id, strerror(err));
	count(&board->gone);
	sched_yield();
	return false;
}

static size_t some_offset(struct peer *peer, uint64_t tag)
{
	return km_below(&peer->seed, (tag & HUGE_SIZE ? HUGE : SMALL) - LENGTH + 1) & ~7ull;
}

static void copy_now(struct peer *peer, uint64_t cookie, uint64_t tag)
{
	size_t off = some_offset(peer, tag);
	uint64_t *words = peer->buffer[0];
	bool write = km_below(&peer->seed, 2);
	ssize_t n;

	fill(words, LENGTH, tag | peer->id);
	n = write ? dv_write(peer->fd, cookie, off, words, LENGTH)
		  : dv_read(peer->fd, cookie, off, words, LENGTH);
	if (!taken(peer, n == -1 ? -1 : 0, errno))
		return;
	KM_EQ(n, LENGTH);
	tagged(words, LENGTH, tag);
	count(write ? &board->writes : &board->reads);
}

static void copy_later(struct peer *peer, uint64_t cookie, uint64_t tag)
{
	bool dma = km_below(&peer->seed, 2) && dv_info(peer->fd).features & ONECOPY_FEATURE_DMA;
	const uint32_t flags = dma ? ONECOPY_COPY_DMA : 0;
	bool pending[QUEUED];

	for (unsigned int i = 0; i < QUEUED; i++) {
		size_t off = some_offset(peer, tag);
		uint64_t *words = peer->buffer[i];
		int ret;

		fill(words, LENGTH, tag | peer->id);
		ret = i % 2 ? dv_write_async(peer->fd, cookie, off, words, LENGTH, i, flags)
			    : dv_read_async(peer->fd, cookie, off, words, LENGTH, i, flags);
		pending[i] = taken(peer, ret, errno);
	}
	for (unsigned int i = 0; i < QUEUED; i++) {
		uint32_t err;

		if (!pending[i])
			continue;
		err = dv_wait(peer->done + i);
		if (!taken(peer, err, err))
			continue;
		KM_EQ(peer->done[i].copied, LENGTH);
		tagged(peer->buffer[i], LENGTH, tag);
		count(&board->later);
	}
}

static __thread sigjmp_buf bus;

static void on_bus(int sig)
{
	siglongjmp(bus, sig);
}

/* Between two looks at a mapping there is nothing under way. */
static void turn(struct peer *peer)
{
	getppid();
	__atomic_add_fetch(&board->turn[peer->id - 1], 1, __ATOMIC_SEQ_CST);
}

static void by_mapping(struct peer *peer, uint64_t cookie, uint64_t tag)
{
	const size_t bytes = tag & HUGE_SIZE ? HUGE : SMALL;
	volatile uint64_t *words = (volatile uint64_t *)peer->at;
	struct onecopy_map map;

	if (!taken(peer,
		   dv_map_try(peer->fd, cookie, 0, bytes, ONECOPY_MAP_READ | ONECOPY_MAP_WRITE,
			      &map),
		   errno))
		return;
	if (mmap(peer->at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, peer->fd,
		 map.map_offset) == MAP_FAILED) {
		taken(peer, -1, errno);
		return;
	}
	for (volatile int i = 0; i < 40; i++) {
		volatile uint64_t *some = words + some_offset(peer, tag) / 8;

		if (sigsetjmp(bus, 1)) {
			count(&board->revoked);
			break;
		}
		tagged(some, 512, tag);
		for (int k = 0; k < 64; k++)
			some[k] = tag | peer->id;
		if (i % 8 == 7)
			turn(peer);
	}
	unmap(peer->at, bytes);
	count(&board->maps);
}

static void work(struct peer *peer)
{
	struct sigaction act = {.sa_handler = on_bus};

	KM_OK(sigaction(SIGBUS, &act, NULL));
	peer->fd = dv_open();
	peer->done = dv_async(peer->fd, QUEUED, -1);
	peer->at = reserve();
	for (int i = 0; i < QUEUED; i++)
		peer->buffer[i] = (uint64_t *)km_pages(LENGTH);
	while (!board->stop) {
		int i = km_below(&peer->seed, PLACES);
		uint64_t cookie, tag;

		turn(peer);
		if (!place_look(&board->place[i], &cookie, &tag)) {
			sched_yield();
			continue;
		}
		count(&board->met[i]);
		if (tag & BY_MAP && (!(tag & BY_COPY) || km_below(&peer->seed, 3) == 0))
			by_mapping(peer, cookie, tag);
		else if (km_below(&peer->seed, 2))
			copy_now(peer, cookie, tag);
		else
			copy_later(peer, cookie, tag);
	}
}

/* Of everything at least something. */
static bool all_seen(void)
{
	for (int i = 0; i < ENDS; i++)
		if (!board->ended[i])
			return false;
	return board->reads && board->writes && board->later && board->gone && board->revoked;
}

/* Before its time: a check of it has failed. */
static bool one_ended(void)
{
	siginfo_t info = {0};

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

static void storm(void)
{
	double until = km_now() + (km_share(8000) > 3000 ? km_share(8000) / 1000.0 : 3);
	uint64_t seed = km_seed();
	pid_t pid[PLACES + PEERS];
	int n = 0;

	/* Other tests make it so short that a busy machine takes a slow engine for a silent one. */
	km_write_text(SD_ONECOPY "dmatimeout", SD_TIMEOUT_MS);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	KM_TRUE(board != MAP_FAILED);
	for (int i = 0; i < PLACES; i++) {
		pid[n] = km_fork();
		if (pid[n++] == 0) {
			owner(seed + i, &board->place[i]);
			_exit(0);
		}
	}
	for (int i = 0; i < PEERS; i++) {
		struct peer peer = {.seed = seed + 100 + i, .id = i + 1};

		pid[n] = km_fork();
		if (pid[n++] == 0) {
			work(&peer);
			_exit(0);
		}
	}
	while ((km_now() < until || !all_seen()) && !one_ended())
		km_pause();
	board->stop = 1;
	while (n--)
		km_join(pid[n]);
	km_note("regions ended: %lu at once, %lu settled, %lu given back; peers: %lu reads, %lu "
		"writes, %lu later, %lu too late, %lu maps, %lu revoked",
		board->ended[AT_ONCE], board->ended[SETTLED], board->ended[GIVEN_BACK],
		board->reads, board->writes, board->later, board->gone, board->maps,
		board->revoked);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "storm", .run = storm, .limit = 3600},
		{0},
	};

	return sd_main(cases, argc, argv);
}
