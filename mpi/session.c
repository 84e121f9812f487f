// SPDX-License-Identifier: BSD-3-Clause
/*
 * Programs of the Sessions Model: no MPI_Init, but sessions, and communicators made from groups of
 * theirs. The first of these that has all of mpi://WORLD is what MPI_COMM_WORLD is to other
 * programs: where it is made, every rank is, and those of a machine find each other as in MPI_Init.
 *
 * Ranks count the calls on a communicator alike only if none was made on any before, not even by
 * another thread. So it has to be the first of more than one process on every rank; and a thread
 * that makes one meanwhile gets it when this is over. Ranks that are not at their first say no.
 *
 * What is needed for as long as calls are served comes from a session of our own: the program's may
 * end in any order. It ends with the last of the program's.
 */
#include "session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../preload/malloc.h"
#include "adapter.h"
#include "base/env.h"
#include "discovery.h"
#include "inter.h"
#include "record.h"
#include "start.h"

static struct {
	pthread_mutex_t lock; /* but for asked */
	MPI_Session *given;   /* the program's, as many as are live; room for one more */
	unsigned int live;
	atomic_uint asked; /* communicators of several processes it has, or is making */
	bool settled;	   /* the first one has been made */
	bool begun;
	bool open; /* own */
	MPI_Session own;
	bool prepared;	 /* what follows is there */
	MPI_Group world; /* mpi://WORLD of it */
	MPI_Comm alone;	 /* mpi://SELF */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* With what the program's first session asks for: threads, as a rule. */
static void open_own(MPI_Info info)
{
	MPI_Errhandler handler;

	state.open = oc_pmpi_is_ours() && !oc_abi_find_errors_return(&handler) &&
		     !pmpi()->Session_init(info, handler, &state.own);
}

/* Nobody uses the node any more. */
static void close_own(void)
{
	if (state.begun)
		oc_stop();
	state.begun = state.settled = false;
	atomic_store(&state.asked, 0);
	if (state.prepared) {
		pmpi()->Comm_free(&state.alone);
		pmpi()->Group_free(&state.world);
	}
	if (state.open)
		pmpi()->Session_finalize(&state.own);
	state.prepared = state.open = false;
}

static bool has_all(MPI_Comm comm)
{
	int result = MPI_UNEQUAL;
	MPI_Group group;

	if (pmpi()->Comm_group(comm, &group))
		return false;
	if (pmpi()->Group_compare(group, state.world, &result))
		result = MPI_UNEQUAL;
	pmpi()->Group_free(&group);
	return result != MPI_UNEQUAL;
}

static bool make_alone(void)
{
	MPI_Group self;
	int err;

	if (pmpi()->Group_from_session_pset(state.own, "mpi://SELF", &self))
		return false;
	err = pmpi()->Comm_create_from_group(self, "onecopy alone", oc_abi.info_null,
					     oc_abi.errors_return, &state.alone);
	pmpi()->Group_free(&self);
	return !err;
}

/* Whether @comm has all processes of the world, and what is needed could be had. Before there is
 * such a communicator MPICH has nobody who handles what oc_abi_init() asks in vain. */
static bool prepare(MPI_Comm comm)
{
	if (pmpi()->Group_from_session_pset(state.own, "mpi://WORLD", &state.world))
		return false;
	state.prepared = has_all(comm) && !oc_abi_init() && make_alone();
	if (!state.prepared)
		pmpi()->Group_free(&state.world);
	return state.prepared;
}

static void decline(void)
{
	oc_discovery_withdraw();
	/* Until MPI_Init, if that is called. */
	oc_malloc_retire();
}

/* @comm, of several processes, was made as the one of that number. NULL: it is an
 * intercommunicator. */
static void settle(const MPI_Comm *comm, unsigned int number)
{
	struct oc_start_session session;

	pthread_mutex_lock(&state.lock);
	if (!state.settled && !oc_abi_has_world) {
		state.begun = state.open && !number && comm && prepare(*comm);
		session = (struct oc_start_session){.world = state.world, .alone = state.alone};
		if (state.begun)
			oc_start(&session);
		else
			decline();
	}
	state.settled = true;
	pthread_mutex_unlock(&state.lock);
}

bool oc_session_has_begun(void)
{
	bool begun;

	pthread_mutex_lock(&state.lock);
	begun = state.begun;
	pthread_mutex_unlock(&state.lock);
	return begun;
}

bool oc_session_is_live(void)
{
	bool live;

	pthread_mutex_lock(&state.lock);
	live = state.live;
	pthread_mutex_unlock(&state.lock);
	return live;
}

void oc_session_world_ends(void)
{
	pthread_mutex_lock(&state.lock);
	if (!state.begun)
		oc_stop();
	else if (!state.live)
		close_own();
	pthread_mutex_unlock(&state.lock);
}

static bool make_room(void)
{
	MPI_Session *given = realloc(state.given, (state.live + 1) * sizeof(*given));

	if (given)
		state.given = given;
	return given != NULL;
}

/* Whether it was one of the program's: what is not is the MPI's to report. */
static bool take_back(const MPI_Session *session)
{
	for (unsigned int i = 0; session && i < state.live; i++) {
		if (state.given[i] != *session)
			continue;
		state.given[i] = state.given[--state.live];
		return true;
	}
	return false;
}

OC_EXPORT int PMPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session)
{
	bool first;
	int err;

	if (!pmpi()->Session_init)
		return MPI_ERR_UNSUPPORTED_OPERATION;
	pthread_mutex_lock(&state.lock);
	if (!make_room()) {
		pthread_mutex_unlock(&state.lock);
		return MPI_ERR_NO_MEM;
	}
	first = !state.live && !state.open && !oc_abi_has_world;
	if (first)
		oc_start_before();
	oc_malloc_bypass++;
	err = pmpi()->Session_init(info, handler, session);
	if (!err && first)
		open_own(info);
	oc_malloc_bypass--;
	if (!err)
		state.given[state.live++] = *session;
	else if (first)
		oc_discovery_withdraw();
	pthread_mutex_unlock(&state.lock);
	return err;
}

/* Before the program's last session ends. */
static void end(void)
{
	/* MPI_COMM_WORLD's calls are served on. */
	if (state.begun && oc_abi_has_world)
		return;
	if (!state.begun && !oc_abi_has_world) {
		oc_discovery_withdraw();
		oc_adapter.idle = "no MPI_Init, and no session's first communicator had all ranks";
		oc_record_start();
		oc_stop();
	}
	close_own();
}

OC_EXPORT int PMPI_Session_finalize(MPI_Session *session)
{
	if (!pmpi()->Session_finalize)
		return MPI_ERR_UNSUPPORTED_OPERATION;
	pthread_mutex_lock(&state.lock);
	if (take_back(session) && !state.live)
		end();
	pthread_mutex_unlock(&state.lock);
	return pmpi()->Session_finalize(session);
}

OC_EXPORT int PMPI_Comm_create_from_group(MPI_Group group, const char *tag, MPI_Info info,
					  MPI_Errhandler handler, MPI_Comm *comm)
{
	unsigned int number = atomic_fetch_add(&state.asked, 1);
	int err, size = 0;

	if (!pmpi()->Comm_create_from_group)
		return MPI_ERR_UNSUPPORTED_OPERATION;
	err = pmpi()->Comm_create_from_group(group, tag, info, handler, comm);
	if (err || *comm == oc_abi.comm_null || pmpi()->Comm_size(*comm, &size) || size < 2)
		atomic_fetch_sub(&state.asked, 1);
	else
		settle(comm, number);
	return err;
}

OC_EXPORT int PMPI_Intercomm_create_from_groups(MPI_Group local, int local_leader, MPI_Group remote,
						int remote_leader, const char *tag, MPI_Info info,
						MPI_Errhandler handler, MPI_Comm *comm)
{
	unsigned int number = atomic_fetch_add(&state.asked, 1);
	int err;

	if (!pmpi()->Intercomm_create_from_groups)
		return MPI_ERR_UNSUPPORTED_OPERATION;
	err = pmpi()->Intercomm_create_from_groups(local, local_leader, remote, remote_leader, tag,
						   info, handler, comm);
	settle(NULL, number);
	return err ? err : oc_inter_made(*comm);
}

OC_EXPORT int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session)
{
	return oc_tool()->Session_init ? oc_tool()->Session_init(info, handler, session)
				       : PMPI_Session_init(info, handler, session);
}

OC_EXPORT int MPI_Session_finalize(MPI_Session *session)
{
	return oc_tool()->Session_finalize ? oc_tool()->Session_finalize(session)
					   : PMPI_Session_finalize(session);
}

OC_EXPORT int MPI_Comm_create_from_group(MPI_Group group, const char *tag, MPI_Info info,
					 MPI_Errhandler handler, MPI_Comm *comm)
{
	return oc_tool()->Comm_create_from_group
		       ? oc_tool()->Comm_create_from_group(group, tag, info, handler, comm)
		       : PMPI_Comm_create_from_group(group, tag, info, handler, comm);
}

OC_EXPORT int MPI_Intercomm_create_from_groups(MPI_Group local, int local_leader, MPI_Group remote,
					       int remote_leader, const char *tag, MPI_Info info,
					       MPI_Errhandler handler, MPI_Comm *comm)
{
	return oc_tool()->Intercomm_create_from_groups
		       ? oc_tool()->Intercomm_create_from_groups(local, local_leader, remote,
								 remote_leader, tag, info, handler,
								 comm)
		       : PMPI_Intercomm_create_from_groups(local, local_leader, remote,
							   remote_leader, tag, info, handler, comm);
}
