// SPDX-License-Identifier: BSD-3-Clause
/*
 * sharedtypes ROUNDS: threads use one datatype for the first time all at once, each on a
 * communicator of its own. Some free theirs while others still use what it was made of.
 */
#include <pthread.h>
#include <string.h>

#include "pattern.h"

#define THREADS 4
#define PIECES	32
#define WORDS	256 /* of a piece */
#define SPAN	((size_t)2 * PIECES * WORDS)

static pthread_barrier_t together;
static MPI_Datatype shared;
static int rank, rounds;

struct worker {
	pthread_t thread;
	MPI_Comm comm;
	unsigned int number;
};

static void bcast(struct worker *w, unsigned int *data, MPI_Datatype type, unsigned int turn)
{
	unsigned int seed = turn * THREADS + w->number;

	memset(data, 0, SPAN * 4);
	if (!rank)
		pattern_fill(data, SPAN, seed);
	MPI_Bcast(data, 1, type, 0, w->comm);
	for (size_t i = 0; i < SPAN; i++) {
		unsigned int want = i / WORDS % 2 && rank ? 0 : pattern_at(seed, i);

		if (data[i] != want)
			pattern_fail("wrong words");
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned int *data = pattern_alloc(SPAN * 4);

	for (int turn = 0; turn < rounds; turn++) {
		MPI_Datatype own;

		if (!w->number) {
			MPI_Type_vector(PIECES, WORDS, 2 * WORDS, MPI_UNSIGNED, &shared);
			MPI_Type_commit(&shared);
		}
		pthread_barrier_wait(&together);
		MPI_Type_dup(shared, &own);
		bcast(w, data, shared, (unsigned int)turn);
		pthread_barrier_wait(&together);
		if (!w->number)
			MPI_Type_free(&shared);
		bcast(w, data, own, (unsigned int)turn);
		MPI_Type_free(&own);
	}
	free(data);
	return NULL;
}

int main(int argc, char **argv)
{
	struct worker workers[THREADS];
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	rounds = atoi(argv[1]);
	pthread_barrier_init(&together, NULL, THREADS);
	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i].number = i;
		MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
	}
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			pattern_fail("no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_free(&workers[i].comm);
	MPI_Finalize();
	return 0;
}
