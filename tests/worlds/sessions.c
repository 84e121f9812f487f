// SPDX-License-Identifier: BSD-3-Clause
/*
 * sessions only     a session and no MPI_Init, which is as good as none of ours
 * sessions inside   a session that is there while MPI_COMM_WORLD is
 * sessions across   one that was there before, and stays after MPI_Finalize
 * sessions again    sessions one after the other
 */
#include <string.h>

#include "moves.h"

static MPI_Comm comm_of(MPI_Session session, const char *tag)
{
	MPI_Group group;
	MPI_Comm comm;

	if (MPI_Group_from_session_pset(session, "mpi://WORLD", &group) ||
	    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm))
		pattern_fail("no communicator of a session");
	MPI_Group_free(&group);
	return comm;
}

static MPI_Session start(void)
{
	MPI_Session session;

	if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session))
		pattern_fail("no session");
	return session;
}

static void world(int turns, MPI_Comm other)
{
	MPI_Init(NULL, NULL);
	for (int i = 0; i < turns; i++) {
		moves_do(MPI_COMM_WORLD, 7);
		if (other != MPI_COMM_NULL)
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

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int times = strcmp(how, "again") ? 1 : 3;

	if (!strcmp(how, "inside")) {
		inside();
		return 0;
	}
	if (!strcmp(how, "across")) {
		across();
		return 0;
	}
	for (int i = 0; i < times; i++) {
		MPI_Session session = start();
		MPI_Comm comm = comm_of(session, "only");

		moves_do(comm, (unsigned int)i);
		MPI_Comm_free(&comm);
		MPI_Session_finalize(&session);
	}
	return 0;
}
