// SPDX-License-Identifier: BSD-3-Clause
/* MPI_Init, MPI_Finalize and MPI_Abort. */
#include <stdbool.h>

#include "../preload/malloc.h"
#include "adapter.h"
#include "comm.h"
#include "discovery.h"
#include "record.h"
#include "session.h"
#include "start.h"

static bool ends_in_finalize;

static void end_world(void)
{
	oc_session_world_ends();
	oc_abi_has_world = false;
}

static int self_deleted(MPI_Comm comm, int keyval, void *value, void *extra)
{
	end_world();
	return MPI_SUCCESS;
}

/* What hangs on MPI_COMM_SELF is deleted before MPI_Finalize does anything else, what was attached
 * last first, and callbacks of programs may communicate (MPI 4.1, 11.2.4). Ours comes after them.
 */
static bool end_with_self(void)
{
	int key;
	bool attached;

	if (pmpi()->Comm_create_keyval(oc_comm_not_copied, self_deleted, &key, NULL))
		return false;
	attached = !pmpi()->Comm_set_attr(oc_abi.comm_self, key, NULL);
	pmpi()->Comm_free_keyval(&key);
	return attached;
}

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
	ends_in_finalize = oc_adapter.active && end_with_self();
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
	/* While the program has a session MPICH deletes what hangs on MPI_COMM_SELF later. */
	if (!ends_in_finalize || oc_session_is_live())
		end_world();
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
