// SPDX-License-Identifier: BSD-3-Clause
/*
 * windows WAY: one-sided communication as programs synchronize it, with data that would be wrong
 * if a transfer were made too early or too late. gets.c has random ones.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../mpi/hazards/pattern.h"

#define WORDS  40000
#define ROUNDS 40
#define MANY   70 /* windows: more than are served */

static int rank, size;

static MPI_Win window_of(unsigned int *base, size_t words, MPI_Comm comm)
{
	MPI_Win win;

	MPI_Win_create(base, (MPI_Aint)(words * sizeof(*base)), sizeof(*base), MPI_INFO_NULL, comm,
		       &win);
	return win;
}

static void put(const unsigned int *from, size_t words, int to, size_t at, MPI_Win win)
{
	MPI_Put(from, (int)words, MPI_UNSIGNED, to, (MPI_Aint)at, (int)words, MPI_UNSIGNED, win);
}

static void get(unsigned int *to, size_t words, int from, size_t at, MPI_Win win)
{
	MPI_Get(to, (int)words, MPI_UNSIGNED, from, (MPI_Aint)at, (int)words, MPI_UNSIGNED, win);
}

/* Ranks reach a fence at times of their own. */
static void be_late(unsigned int round)
{
	if ((round + (unsigned int)rank) % 3 == 0)
		usleep(300 * (1 + (unsigned int)rank));
}

/* What is put must not come before the target has left what is its own of the epoch before, nor
 * be got before its owner has written it. */
static void fences(void)
{
	unsigned int *base = pattern_alloc(2 * WORDS * sizeof(*base));
	unsigned int *other = pattern_alloc(WORDS * sizeof(*other));
	MPI_Win win = window_of(base, 2 * WORDS, MPI_COMM_WORLD);
	int right = (rank + 1) % size, left = (rank + size - 1) % size;

	MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
	for (unsigned int round = 1; round <= ROUNDS; round++) {
		pattern_fill(base, WORDS, round * 8 + (unsigned int)rank);
		be_late(round);
		MPI_Win_fence(0, win);
		get(other, WORDS, left, 0, win);
		MPI_Win_fence(0, win);
		pattern_check(other, WORDS, round * 8 + (unsigned int)left, "got");
		put(other, WORDS, right, WORDS, win);
		be_late(round + 1);
		MPI_Win_fence(round == ROUNDS ? MPI_MODE_NOSUCCEED : 0, win);
		pattern_check(base + WORDS, WORDS,
			      round * 8 + (unsigned int)((left + size - 1) % size), "put");
	}
	MPI_Win_free(&win);
	free(base);
	free(other);
}

/* A block that each adds to: read and written by one at a time. */
static void locks(void)
{
	unsigned int *base = pattern_alloc(WORDS * sizeof(*base));
	unsigned int *mine = pattern_alloc(WORDS * sizeof(*mine));
	MPI_Win win;

	memset(base, 0, WORDS * sizeof(*base));
	win = window_of(base, WORDS, MPI_COMM_WORLD);
	for (int round = 0; round < ROUNDS; round++) {
		int owner = round % size;

		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, owner, 0, win);
		get(mine, WORDS, owner, 0, win);
		MPI_Win_flush(owner, win);
		for (size_t i = 1; i < WORDS; i++)
			if (mine[i] != mine[0])
				pattern_fail("another rank was there");
		for (size_t i = 0; i < WORDS; i++)
			mine[i]++;
		put(mine, WORDS, owner, 0, win);
		MPI_Win_unlock(owner, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	for (size_t i = 0; i < WORDS; i++)
		if (base[i] != (unsigned int)(size * ((ROUNDS - rank + size - 1) / size)))
			pattern_fail("a sum");
	MPI_Win_unlock(rank, win);
	MPI_Win_free(&win);
	free(base);
	free(mine);
}

/* One epoch for all, flushed; by requests, too. */
static void flushes(void)
{
	unsigned int *base = pattern_alloc((size_t)size * WORDS * sizeof(*base));
	unsigned int *data = pattern_alloc(WORDS * sizeof(*data));
	MPI_Win win = window_of(base, (size_t)size * WORDS, MPI_COMM_WORLD);
	MPI_Request request;

	MPI_Win_lock_all(0, win);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		pattern_fill(data, WORDS, round * 8 + (unsigned int)rank);
		for (int to = 0; to < size; to++) {
			size_t at = (size_t)rank * WORDS;

			if (round % 2) {
				MPI_Rput(data, WORDS, MPI_UNSIGNED, to, (MPI_Aint)at, WORDS,
					 MPI_UNSIGNED, win, &request);
				MPI_Wait(&request, MPI_STATUS_IGNORE);
			} else {
				put(data, WORDS, to, at, win);
			}
		}
		MPI_Win_flush_all(win);
		MPI_Barrier(MPI_COMM_WORLD);
		for (int from = 0; from < size; from++) {
			memset(data, 0, WORDS * sizeof(*data));
			MPI_Rget(data, WORDS, MPI_UNSIGNED, from,
				 (MPI_Aint)((size_t)((rank + 1) % size) * WORDS), WORDS,
				 MPI_UNSIGNED, win, &request);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
			pattern_check(data, WORDS, round * 8 + (unsigned int)((rank + 1) % size),
				      "got by a request");
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	free(base);
	free(data);
}

/* With one rank each, then with all others. MPICH and Intel MPI count posts, whoever they are from:
 * one that is early, of a rank that the epoch before has not, hangs them. */
static void starts(void)
{
	unsigned int *base = pattern_alloc(WORDS * sizeof(*base));
	unsigned int *data = pattern_alloc(WORDS * sizeof(*data));
	MPI_Win win = window_of(base, WORDS, MPI_COMM_WORLD);
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	MPI_Group all, to, from, others;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_excl(all, 1, &rank, &others);
	MPI_Group_incl(all, 1, &right, &to);
	MPI_Group_incl(all, 1, &left, &from);
	/* One of fences before, which is over. */
	MPI_Win_fence(0, win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	for (unsigned int round = 1; round <= ROUNDS; round++) {
		bool all_others = round > ROUNDS / 2;

		if (round == ROUNDS / 2 + 1)
			MPI_Barrier(MPI_COMM_WORLD);
		pattern_fill(data, WORDS, round * 8 + (unsigned int)rank);
		pattern_fill(base, WORDS, 1000 + round);
		be_late(round);
		pattern_check(base, WORDS, 1000 + round, "not posted yet");
		MPI_Win_post(all_others ? others : from, 0, win);
		MPI_Win_start(all_others ? others : to, 0, win);
		put(data, WORDS, right, 0, win);
		MPI_Win_complete(win);
		MPI_Win_wait(win);
		pattern_check(base, WORDS, round * 8 + (unsigned int)left, "put");
	}
	MPI_Group_free(&all);
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	MPI_Group_free(&others);
	MPI_Win_free(&win);
	free(base);
	free(data);
}

static unsigned int fixed[WORDS];

/* Windows over memory of all kinds, of communicators of all kinds, more than there are places
 * for, freed and made again in another order. */
static void many(void)
{
	static MPI_Win wins[MANY];
	static unsigned int *bases[MANY];
	unsigned int *data = pattern_alloc(WORDS * sizeof(*data));
	unsigned int *stack, *mapped;
	MPI_Comm comms[3];

	mapped = mmap(NULL, WORDS * sizeof(*mapped), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack = __builtin_alloca(WORDS * sizeof(*stack));
	MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
	MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &comms[1]);
	/* Not of one rank alone: Open MPI 4 makes no windows of such. */
	MPI_Comm_split(MPI_COMM_WORLD, rank ? 0 : MPI_UNDEFINED, rank, &comms[2]);
	for (int turn = 0; turn < 2 * MANY; turn++) {
		int i = turn * 11 % MANY, self, ranks, to;
		MPI_Comm comm = comms[turn % 3];

		if (bases[i]) {
			MPI_Win_free(&wins[i]);
			if (bases[i] != stack && bases[i] != mapped && bases[i] != fixed)
				free(bases[i]);
			bases[i] = NULL;
		}
		if (comm == MPI_COMM_NULL)
			continue;
		MPI_Comm_rank(comm, &self);
		MPI_Comm_size(comm, &ranks);
		bases[i] = turn % 11 == 1   ? stack
			   : turn % 11 == 2 ? mapped
			   : turn % 11 == 3 ? fixed
					    : pattern_alloc(WORDS * sizeof(*data));
		/* Not every rank has memory in each. */
		wins[i] = window_of(bases[i], turn % 5 == 4 && self == 0 ? 0 : WORDS, comm);
		MPI_Win_fence(0, wins[i]);
		to = (self + 1) % ranks;
		pattern_fill(data, WORDS, (unsigned int)(turn * 8 + self));
		if (turn % 5 != 4 || to != 0)
			put(data, WORDS, to, 0, wins[i]);
		MPI_Win_fence(0, wins[i]);
		if (turn % 5 != 4 || self != 0)
			pattern_check(bases[i], WORDS,
				      (unsigned int)(turn * 8 + (self + ranks - 1) % ranks),
				      "put into one of many");
	}
	for (int i = 0; i < MANY; i++)
		if (bases[i])
			MPI_Win_free(&wins[i]);
	for (int i = 0; i < 3; i++)
		if (comms[i] != MPI_COMM_NULL)
			MPI_Comm_free(&comms[i]);
	munmap(mapped, WORDS * sizeof(*mapped));
	free(data);
}

/* What is wrong is reported as it was; what moves nothing is none of it. */
static void wrong(void)
{
	unsigned int *base = pattern_alloc(WORDS * sizeof(*base));
	unsigned int *data = pattern_alloc(2 * WORDS * sizeof(*data));
	MPI_Win win = window_of(base, WORDS, MPI_COMM_WORLD);
	int to = (rank + 1) % size;
	const struct {
		int count, rank, at;
	} calls[] = {
		{WORDS, to, 1}, {WORDS + 1, to, 0}, {1, to, WORDS},
		{1, to, -1},	{1, size, 0},	    {1, -77, 0},
		{-1, to, 0},	{0, to, 0},	    {5, MPI_PROC_NULL, 0},
	};
	MPI_Datatype type;
	int err, class;

	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Win_fence(0, win);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		/* Not every MPI looks where a transfer ends: then it must not be made. */
		if (calls[i].at + calls[i].count > WORDS && !getenv("LOOKS"))
			continue;
		err = MPI_Put(data, calls[i].count, MPI_UNSIGNED, calls[i].rank, calls[i].at,
			      calls[i].count, MPI_UNSIGNED, win);
		MPI_Error_class(err, &class);
		if (!rank)
			printf("%zu: %d\n", i, class);
	}
	MPI_Type_contiguous(WORDS, MPI_UNSIGNED, &type);
	err = MPI_Put(data, WORDS, MPI_UNSIGNED, to, 0, 1, type, win);
	MPI_Error_class(err, &class);
	if (!rank)
		printf("not committed: %d\n", class);
	MPI_Type_free(&type);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	/* In no epoch. */
	err = MPI_Put(data, WORDS, MPI_UNSIGNED, to, 0, WORDS, MPI_UNSIGNED, win);
	MPI_Error_class(err, &class);
	if (!rank)
		printf("outside: %d\n", class);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_free(&win);
	free(base);
	free(data);
}

/* Displacements are those of types, which may begin before them: here that of the window's end. */
static void ends(void)
{
	unsigned int *base = pattern_alloc(WORDS * sizeof(*base));
	unsigned int *data = pattern_alloc(WORDS * sizeof(*data));
	MPI_Win win = window_of(base, WORDS, MPI_COMM_WORLD);
	int right = (rank + 1) % size, left = (rank + size - 1) % size, words = WORDS;
	MPI_Aint before = -(MPI_Aint)(WORDS * sizeof(*base));
	MPI_Datatype type;

	MPI_Type_create_hindexed(1, &words, &before, MPI_UNSIGNED, &type);
	MPI_Type_commit(&type);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		pattern_fill(data, WORDS, round * 8 + (unsigned int)rank);
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
		MPI_Put(data, WORDS, MPI_UNSIGNED, right, WORDS, 1, type, win);
		MPI_Win_unlock(right, win);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
		pattern_check(base, WORDS, round * 8 + (unsigned int)left, "put before the end");
		MPI_Win_unlock(rank, win);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Type_free(&type);
	MPI_Win_free(&win);
	free(base);
	free(data);
}

/* One asks whether another has done what needs this rank's MPI: by requests, then by others. */
static void asks(void)
{
	unsigned int *flag = pattern_alloc(WORDS * sizeof(*flag));
	unsigned int *base = pattern_alloc(WORDS * sizeof(*base));
	unsigned int *got = pattern_alloc(WORDS * sizeof(*got));
	MPI_Win flags, win;
	MPI_Request request;

	memset(flag, 0, WORDS * sizeof(*flag));
	memset(base, 0, WORDS * sizeof(*base));
	flags = window_of(flag, WORDS, MPI_COMM_WORLD);
	win = window_of(base, WORDS, MPI_COMM_WORLD);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, flags);
	for (unsigned int turn = 1; turn <= 2; turn++) {
		MPI_Barrier(MPI_COMM_WORLD);
		got[0] = rank == 1 ? turn : 0;
		if (rank == 1) {
			usleep(10000);
			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
			put(got, 1, 0, 0, win);
			MPI_Win_unlock(0, win);
			*(volatile unsigned int *)flag = turn;
			MPI_Win_sync(flags);
		}
		while (rank == 0 && got[0] != turn) {
			if (turn == 1) {
				MPI_Rget(got, 1, MPI_UNSIGNED, 1, 0, 1, MPI_UNSIGNED, flags,
					 &request);
				MPI_Wait(&request, MPI_STATUS_IGNORE);
			} else {
				get(got, 1, 1, 0, flags);
				MPI_Win_flush_local(1, flags);
			}
		}
		if (rank == 0 && base[0] != turn)
			pattern_fail("put");
	}
	MPI_Win_unlock_all(flags);
	MPI_Win_free(&flags);
	MPI_Win_free(&win);
	free(flag);
	free(base);
	free(got);
}

#define THREADS 4

struct part {
	pthread_t thread;
	unsigned int number;
	MPI_Win win;
};

static void *move_part(void *arg)
{
	struct part *part = arg;
	size_t words = WORDS / THREADS, at = part->number * words;
	unsigned int *data = pattern_alloc(words * sizeof(*data));
	int to = (rank + 1) % size;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		unsigned int seed = round * 64 + part->number * 8 + (unsigned int)rank;

		pattern_fill(data, words, seed);
		put(data, words, to, at, part->win);
		MPI_Win_flush(to, part->win);
		memset(data, 0, words * sizeof(*data));
		get(data, words, to, at, part->win);
		MPI_Win_flush(to, part->win);
		pattern_check(data, words, seed, "of a thread");
	}
	free(data);
	return NULL;
}

static void threads(void)
{
	unsigned int *base = pattern_alloc(WORDS * sizeof(*base));
	MPI_Win win = window_of(base, WORDS, MPI_COMM_WORLD);
	struct part parts[THREADS];

	MPI_Win_lock_all(0, win);
	for (unsigned int i = 0; i < THREADS; i++) {
		parts[i] = (struct part){.number = i, .win = win};
		pthread_create(&parts[i].thread, NULL, move_part, &parts[i]);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(parts[i].thread, NULL);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	free(base);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = {
		{"fences", fences},   {"locks", locks}, {"flushes", flushes},
		{"starts", starts},   {"many", many},	{"wrong", wrong},
		{"threads", threads}, {"ends", ends},	{"asks", asks},
	};
	int provided;

	MPI_Init_thread(&argc, &argv,
			strcmp(argv[1], "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE,
			&provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(argv[1], ways[i].name))
			ways[i].run();
	MPI_Finalize();
	return 0;
}
