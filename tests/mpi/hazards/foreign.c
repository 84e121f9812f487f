// SPDX-License-Identifier: BSD-3-Clause
/*
 * foreign stack|static|mapped|shared [nomap|restless]: every collective from and to memory
 * the shared heap does not hold, over and over, rewritten at once and now and then
 * replaced or shared with a child. Buffers begin off page boundaries, and what
 * lies around them must not change. nomap: rank 1 has no address space left to
 * map anything after the first calls. restless: a thread of each rank makes the
 * kernel unmap a page of each buffer, which stays what it is, during the calls:
 * regions become stale in the middle. Shared memory only.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pattern.h"

#define BLOCK ((size_t)3 << 15) /* words: 384 KiB */
#define RANKS ((size_t)4)
#define GUARD ((size_t)9) /* words before and behind a buffer */
#define WORDS (2 * GUARD + RANKS * BLOCK)
#define TURNS 30u

static int rank, size;
static int blocks; /* words of a call */

struct pair {
	unsigned int *send, *recv; /* inside their guards */
	bool replaceable;	   /* both are mappings of their own */
	bool forks;		   /* private memory, which a child may write */
};

static void guard_fill(unsigned int *data)
{
	memset(data - GUARD, 0x5a, GUARD * 4);
	memset(data + RANKS * BLOCK, 0x5a, GUARD * 4);
}

static void guard_check(const unsigned int *data)
{
	for (size_t i = 0; i < GUARD; i++)
		if (data[-1 - (ptrdiff_t)i] != 0x5a5a5a5au ||
		    data[RANKS * BLOCK + i] != 0x5a5a5a5au)
			pattern_fail("written outside the buffer");
}

/* Rank @r's data of this turn for everybody. */
static unsigned int seed_of(unsigned int turn, int r)
{
	return turn * 64 + (unsigned int)r;
}

static void check_blocks(const struct pair *it, unsigned int turn, const char *what)
{
	for (int r = 0; r < size; r++)
		pattern_check(it->recv + (size_t)r * (size_t)blocks, (size_t)blocks,
			      seed_of(turn, r), what);
}

static void ready(const struct pair *it, unsigned int turn)
{
	memset(it->recv, 0xcc, RANKS * BLOCK * 4);
	pattern_fill(it->send, (size_t)blocks, seed_of(turn, rank));
}

static void spoil(const struct pair *it)
{
	memset(it->send, 0xee, RANKS * BLOCK * 4);
}

static void move(const struct pair *it, unsigned int turn)
{
	int root = (int)(turn % (unsigned int)size);
	unsigned int *bcast = rank == root ? it->send : it->recv;

	ready(it, turn);
	MPI_Bcast(bcast, blocks, MPI_UNSIGNED, root, MPI_COMM_WORLD);
	pattern_check(bcast, (size_t)blocks, seed_of(turn, root), "bcast");
	spoil(it);
	ready(it, turn);
	MPI_Gather(it->send, blocks, MPI_UNSIGNED, it->recv, blocks, MPI_UNSIGNED, root,
		   MPI_COMM_WORLD);
	spoil(it);
	if (rank == root)
		check_blocks(it, turn, "gather");
	ready(it, turn);
	MPI_Allgather(it->send, blocks, MPI_UNSIGNED, it->recv, blocks, MPI_UNSIGNED,
		      MPI_COMM_WORLD);
	spoil(it);
	check_blocks(it, turn, "allgather");
	for (int r = 0; r < size; r++)
		pattern_fill(it->send + (size_t)r * (size_t)blocks, (size_t)blocks,
			     seed_of(turn, rank));
	memset(it->recv, 0xcc, RANKS * BLOCK * 4);
	MPI_Alltoall(it->send, blocks, MPI_UNSIGNED, it->recv, blocks, MPI_UNSIGNED,
		     MPI_COMM_WORLD);
	check_blocks(it, turn, "alltoall");
	MPI_Scatter(it->send, blocks, MPI_UNSIGNED, it->recv, blocks, MPI_UNSIGNED, root,
		    MPI_COMM_WORLD);
	spoil(it);
	pattern_check(it->recv, (size_t)blocks, seed_of(turn, root), "scatter");
}

static void sum_check(const unsigned int *data, unsigned int turn, const char *what)
{
	for (size_t i = 0; i < (size_t)blocks; i++) {
		unsigned int sum = 0;

		for (int r = 0; r < size; r++)
			sum += pattern_at(seed_of(turn, r), i);
		if (data[i] != sum)
			pattern_fail(what);
	}
}

static void reduce(const struct pair *it, unsigned int turn)
{
	int root = (int)(turn % (unsigned int)size);

	ready(it, turn);
	MPI_Reduce(it->send, it->recv, blocks, MPI_UNSIGNED, MPI_SUM, root, MPI_COMM_WORLD);
	spoil(it);
	if (rank == root)
		sum_check(it->recv, turn, "reduce");
	ready(it, turn);
	MPI_Allreduce(it->send, it->recv, blocks, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
	spoil(it);
	sum_check(it->recv, turn, "allreduce");
	pattern_fill(it->recv, (size_t)blocks, seed_of(turn, rank));
	MPI_Allreduce(MPI_IN_PLACE, it->recv, blocks, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
	sum_check(it->recv, turn, "allreduce in place");
}

/* A child shares the pages until somebody writes them: it does. */
static void share(const struct pair *it)
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		spoil(it);
		memset(it->recv, 0x77, RANKS * BLOCK * 4);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		pattern_fail("fork");
}

static void *map(void *at, int flags)
{
	void *p = mmap(at, WORDS * 4, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		pattern_fail("mmap");
	return p;
}

static void replace(const struct pair *it)
{
	map(it->send - GUARD, MAP_PRIVATE | MAP_FIXED);
	madvise(it->recv - GUARD, WORDS * 4, MADV_DONTNEED);
	guard_fill(it->send);
	guard_fill(it->recv);
}

/* The first turn has made what the library and the MPI keep. */
static void no_more_mappings(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = 1 << 20;
	/* Past the library, which would leave room for what it has. */
	if (syscall(SYS_prlimit64, 0, RLIMIT_AS, &limit, NULL))
		pattern_fail("prlimit64");
}

static void run(const struct pair *it, bool nomap)
{
	struct rlimit old;

	getrlimit(RLIMIT_AS, &old);
	guard_fill(it->send);
	guard_fill(it->recv);
	for (unsigned int turn = 0; turn < TURNS; turn++) {
		blocks = (int)(turn % 3 == 2 ? BLOCK / 9 : BLOCK);
		if (turn % 8 == 5 && it->forks && !nomap)
			share(it);
		if (turn % 8 == 3 && it->replaceable)
			replace(it);
		if (turn == 1 && nomap && rank == 1)
			no_more_mappings();
		move(it, turn);
		reduce(it, turn);
		guard_check(it->send);
		guard_check(it->recv);
	}
	setrlimit(RLIMIT_AS, &old);
}

static atomic_bool resting;

static void *stir(void *arg)
{
	const struct pair *it = arg;
	struct timespec nap = {.tv_nsec = 20000};

	while (!resting) {
		madvise(it->send - GUARD, 1, MADV_DONTNEED);
		madvise(it->recv - GUARD, 1, MADV_DONTNEED);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

static void run_restless(struct pair *it)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, stir, it))
		pattern_fail("pthread_create");
	run(it, false);
	resting = true;
	pthread_join(thread, NULL);
}

static void on_stack(bool nomap)
{
	unsigned int send[WORDS], recv[WORDS];
	struct pair it = {.send = send + GUARD, .recv = recv + GUARD, .forks = true};

	run(&it, nomap);
}

static void in_mappings(bool nomap, bool restless, int flags)
{
	unsigned int *send = map(NULL, flags), *recv = map(NULL, flags);
	struct pair it = {
		.send = send + GUARD, .recv = recv + GUARD, .replaceable = flags == MAP_PRIVATE};

	if (restless)
		run_restless(&it);
	else
		run(&it, nomap);
	munmap(send, WORDS * 4);
	munmap(recv, WORDS * 4);
}

int main(int argc, char **argv)
{
	static unsigned int fixed[2][WORDS + 1];
	const char *kind = argc > 1 ? argv[1] : "";
	bool nomap = argc > 2 && !strcmp(argv[2], "nomap");
	bool restless = argc > 2 && !strcmp(argv[2], "restless");
	struct pair it = {.send = fixed[0] + GUARD, .recv = fixed[1] + GUARD, .forks = true};

	/* Memory for small things, so that nomap takes none from them. */
	mallopt(M_MMAP_THRESHOLD, 64 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	free(malloc(32 << 20));
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if ((size_t)size > RANKS)
		pattern_fail("too many ranks");
	if (!strcmp(kind, "stack"))
		on_stack(nomap);
	else if (!strcmp(kind, "mapped"))
		in_mappings(nomap, false, MAP_PRIVATE);
	else if (!strcmp(kind, "shared"))
		in_mappings(nomap, restless, MAP_SHARED);
	else
		run(&it, nomap);
	MPI_Finalize();
	return 0;
}
