// SPDX-License-Identifier: BSD-3-Clause
/*
 * sessions only      a session and no MPI_Init
 * sessions inside    a session that is there while MPI_COMM_WORLD is
 * sessions across    one that was there before, and stays after MPI_Finalize
 * sessions outlives  one of MPI_COMM_WORLD's time, whose window is used after MPI_Finalize
 * sessions again     sessions one after the other
 * sessions two       two at once, of which the first ends first
 * sessions wrong     one rank ends a session that there is not, and goes on
 * sessions backwards ranks in another order than the world's
 * sessions part      some of the ranks have a communicator before all have one
 * sessions threads   threads each with a communicator of all, made at once
 * sessions without   as only; the last rank has no library: tests/worlds/test_worlds.py
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "moves.h"

#define THREADS 3
#define WORDS	40000

static MPI_Comm comm_from(MPI_Group group, const char *tag)
{
	MPI_Comm comm;

	if (MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm))
		pattern_fail("no communicator of a session");
	return comm;
}

static MPI_Group group_of(MPI_Session session, const char *name)
{
	MPI_Group group;

	if (MPI_Group_from_session_pset(session, name, &group))
		pattern_fail("no group of a session");
	return group;
}

static MPI_Comm comm_of(MPI_Session session, const char *tag)
{
	MPI_Group group = group_of(session, "mpi://WORLD");
	MPI_Comm comm = comm_from(group, tag);

	MPI_Group_free(&group);
	return comm;
}

static MPI_Session start_with(MPI_Info info)
{
	MPI_Session session;

	if (MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session))
		pattern_fail("no session");
	return session;
}

static MPI_Session start(void)
{
	return start_with(MPI_INFO_NULL);
}

static void only(void)
{
	MPI_Session session = start();
	MPI_Comm comm = comm_of(session, "only");

	moves_do(comm, 1);
	MPI_Comm_free(&comm);
	MPI_Session_finalize(&session);
}

static void wrong(void)
{
	MPI_Session session, none = MPI_SESSION_NULL;
	MPI_Comm comm;
	int rank;

	if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session))
		pattern_fail("no session");
	comm = comm_of(session, "wrong");
	moves_do(comm, 1);
	MPI_Comm_rank(comm, &rank);
	if (rank == 1 && !MPI_Session_finalize(&none))
		pattern_fail("the end of no session");
	moves_do(comm, 2);
	MPI_Comm_free(&comm);
	MPI_Session_finalize(&session);
}

static void world(int turns, MPI_Comm other)
{
	MPI_Init(NULL, NULL);
	for (int i = 0; i < turns; i++) {
		moves_do(MPI_COMM_WORLD, 7);
		moves_do(other, 8);
	}
	MPI_Finalize();
}

static void inside(void)
{
	MPI_Session session;
	MPI_Comm comm;

	MPI_Init(NULL, NULL);
	session = start();
	comm = comm_of(session, "inside");
	for (int i = 0; i < 3; i++) {
		moves_do(MPI_COMM_WORLD, 1);
		moves_do(comm, 2);
	}
	MPI_Comm_free(&comm);
	MPI_Session_finalize(&session);
	moves_do(MPI_COMM_WORLD, 3);
	MPI_Finalize();
}

static void across(void)
{
	MPI_Session session = start();
	MPI_Comm comm = comm_of(session, "across");

	moves_do(comm, 4);
	world(3, comm);
	moves_do(comm, 5);
	MPI_Comm_free(&comm);
	MPI_Session_finalize(&session);
}

static void put_round(unsigned int *base, unsigned int *data, MPI_Comm comm, MPI_Win win,
		      unsigned int round)
{
	int rank, size;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	pattern_fill(data, WORDS, round * 8 + (unsigned int)rank);
	MPI_Win_fence(0, win);
	MPI_Put(data, WORDS, MPI_UNSIGNED, (rank + 1) % size, 0, WORDS, MPI_UNSIGNED, win);
	MPI_Win_fence(0, win);
	pattern_check(base, WORDS, round * 8 + (unsigned int)((rank + size - 1) % size), "put");
}

static void outlives(void)
{
	unsigned int *base, *data;
	MPI_Session session;
	MPI_Comm comm;
	MPI_Win win;

	MPI_Init(NULL, NULL);
	session = start();
	comm = comm_of(session, "outlives");
	base = pattern_alloc(WORDS * sizeof(*base));
	data = pattern_alloc(WORDS * sizeof(*data));
	MPI_Win_create(base, WORDS * sizeof(*base), sizeof(*base), MPI_INFO_NULL, comm, &win);
	put_round(base, data, comm, win, 1);
	MPI_Finalize();
	put_round(base, data, comm, win, 2);
	MPI_Win_free(&win);
	free(base);
	free(data);
	MPI_Comm_free(&comm);
	MPI_Session_finalize(&session);
}

static void again(void)
{
	for (int i = 0; i < 3; i++)
		only();
}

static void two(void)
{
	MPI_Session first = start(), second = start();
	MPI_Comm a = comm_of(first, "first"), b = comm_of(second, "second"), copy;

	moves_do(a, 1);
	moves_do(b, 2);
	MPI_Comm_free(&a);
	MPI_Session_finalize(&first);
	moves_do(b, 3);
	MPI_Comm_dup(b, &copy);
	moves_do(copy, 4);
	MPI_Comm_free(&copy);
	MPI_Comm_free(&b);
	MPI_Session_finalize(&second);
}

static void backwards(void)
{
	MPI_Session session = start();
	MPI_Group all = group_of(session, "mpi://WORLD"), self = group_of(session, "mpi://SELF");
	MPI_Group group;
	MPI_Comm alone = comm_from(self, "alone"), comm;
	int size, range[1][3];

	MPI_Group_size(all, &size);
	range[0][0] = size - 1;
	range[0][1] = 0;
	range[0][2] = -1;
	MPI_Group_range_incl(all, 1, range, &group);
	comm = comm_from(group, "backwards");
	moves_do(alone, 1);
	moves_do(comm, 2);
	MPI_Comm_free(&alone);
	MPI_Comm_free(&comm);
	MPI_Group_free(&group);
	MPI_Group_free(&self);
	MPI_Group_free(&all);
	MPI_Session_finalize(&session);
}

static void part(void)
{
	MPI_Session session = start();
	MPI_Group all = group_of(session, "mpi://WORLD"), group;
	int range[1][3] = {{0, 1, 1}}, rank;
	MPI_Comm few, comm;

	MPI_Group_rank(all, &rank);
	MPI_Group_range_incl(all, 1, range, &group);
	few = rank < 2 ? comm_from(group, "few") : MPI_COMM_NULL;
	if (rank < 2)
		moves_do(few, 1);
	comm = comm_from(all, "all");
	moves_do(comm, 2);
	if (rank < 2) {
		moves_do(few, 3);
		MPI_Comm_free(&few);
	}
	MPI_Comm_free(&comm);
	MPI_Group_free(&group);
	MPI_Group_free(&all);
	MPI_Session_finalize(&session);
}

static MPI_Session shared;

static void *work(void *at)
{
	char tag[16];
	MPI_Comm comm;

	snprintf(tag, sizeof(tag), "thread %d", *(int *)at);
	comm = comm_of(shared, tag);
	for (unsigned int i = 0; i < 5; i++)
		moves_do(comm, i);
	MPI_Comm_free(&comm);
	return NULL;
}

static void threads(void)
{
	int number[THREADS];
	pthread_t thread[THREADS];
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
	shared = start_with(info);
	MPI_Info_free(&info);
	for (int i = 0; i < THREADS; i++) {
		number[i] = i;
		if (pthread_create(&thread[i], NULL, work, &number[i]))
			pattern_fail("no thread");
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	MPI_Session_finalize(&shared);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = {
		{"only", only},		  {"wrong", wrong},	  {"inside", inside},
		{"across", across},	  {"again", again},	  {"two", two},
		{"backwards", backwards}, {"part", part},	  {"threads", threads},
		{"without", only},	  {"outlives", outlives},
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (argc > 1 && !strcmp(argv[1], ways[i].name)) {
			ways[i].run();
			return 0;
		}
	pattern_fail("no such way");
}
