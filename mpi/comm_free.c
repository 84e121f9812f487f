// SPDX-License-Identifier: BSD-3-Clause
/*
 * While a communicator is freed its attributes' delete callbacks run, the program's and ours, in an
 * order that ranks need not share (MPI 4.1, 7.7.2), and they may call collectives on it. What is
 * attached to it by then nobody deletes any more, and its handle is soon another communicator's.
 */
#include "comm_free.h"

#include <stddef.h>

#include "adapter.h"

#define DEEP 16 /* callbacks that free others, whose callbacks free others */

unsigned int oc_comm_freed;

static _Thread_local MPI_Comm freed[DEEP];
static _Thread_local unsigned int depth;

bool oc_comm_is_freed(MPI_Comm comm)
{
	for (unsigned int i = 0; i < depth; i++)
		if (freed[i] == comm)
			return true;
	return false;
}

static int let_go(int (*call)(MPI_Comm *comm), MPI_Comm *comm)
{
	int err;

	/* What cannot be freed is an error, from which a handler may not return. */
	if (!oc_adapter.active || !comm || depth == DEEP || *comm == oc_abi.comm_null ||
	    *comm == oc_abi.comm_world || *comm == oc_abi.comm_self)
		return call(comm);
	freed[depth++] = *comm;
	__atomic_add_fetch(&oc_comm_freed, 1, __ATOMIC_RELEASE);
	err = call(comm);
	depth--;
	return err;
}

OC_EXPORT int PMPI_Comm_free(MPI_Comm *comm)
{
	return let_go(pmpi()->Comm_free, comm);
}

OC_EXPORT int PMPI_Comm_disconnect(MPI_Comm *comm)
{
	return let_go(pmpi()->Comm_disconnect, comm);
}

OC_EXPORT int MPI_Comm_free(MPI_Comm *comm)
{
	return oc_tool()->Comm_free ? oc_tool()->Comm_free(comm) : PMPI_Comm_free(comm);
}

OC_EXPORT int MPI_Comm_disconnect(MPI_Comm *comm)
{
	return oc_tool()->Comm_disconnect ? oc_tool()->Comm_disconnect(comm)
					  : PMPI_Comm_disconnect(comm);
}
