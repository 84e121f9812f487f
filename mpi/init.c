// SPDX-License-Identifier: BSD-3-Clause
/* MPI_Init, MPI_Finalize and MPI_Abort. */
#include "../preload/malloc.h"
#include "adapter.h"
#include "discovery.h"
#include "record.h"
#include "session.h"
#include "start.h"

/* What MPI_Init left to the program. */
static int initialised(int err)
{
	oc_malloc_bypass--;
	if (err) {
		oc_discovery_withdraw();
		return err;
	}
	oc_abi_has_world = true;
	if (!oc_session_has_begun())
		oc_start(NULL);
	return err;
}

OC_EXPORT int PMPI_Init(int *argc, char ***argv)
{
	oc_start_before();
	oc_malloc_bypass++;
	return initialised(pmpi()->Init(argc, argv));
}

OC_EXPORT int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	oc_start_before();
	oc_malloc_bypass++;
	return initialised(pmpi()->Init_thread(argc, argv, required, provided));
}

OC_EXPORT int PMPI_Finalize(void)
{
	oc_session_world_ends();
	oc_abi_has_world = false;
	return pmpi()->Finalize();
}

OC_EXPORT int PMPI_Abort(MPI_Comm comm, int code)
{
	oc_record_abort(code);
	return pmpi()->Abort(comm, code);
}

OC_EXPORT int MPI_Init(int *argc, char ***argv)
{
	return oc_tool()->Init ? oc_tool()->Init(argc, argv) : PMPI_Init(argc, argv);
}

OC_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	return oc_tool()->Init_thread ? oc_tool()->Init_thread(argc, argv, required, provided)
				      : PMPI_Init_thread(argc, argv, required, provided);
}

OC_EXPORT int MPI_Finalize(void)
{
	return oc_tool()->Finalize ? oc_tool()->Finalize() : PMPI_Finalize();
}

OC_EXPORT int MPI_Abort(MPI_Comm comm, int code)
{
	return oc_tool()->Abort ? oc_tool()->Abort(comm, code) : PMPI_Abort(comm, code);
}
