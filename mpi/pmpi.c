// SPDX-License-Identifier: BSD-3-Clause
#include "pmpi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "lookup.h"

struct oc_pmpi oc_pmpi_table;
struct oc_pmpi oc_tool_table;
int oc_pmpi_resolved;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *library;

static const struct {
	const char *name;
	size_t at;
} entries[] = {
	{"PMPI_Init", offsetof(struct oc_pmpi, Init)},
	{"PMPI_Init_thread", offsetof(struct oc_pmpi, Init_thread)},
	{"PMPI_Finalize", offsetof(struct oc_pmpi, Finalize)},
	{"PMPI_Abort", offsetof(struct oc_pmpi, Abort)},
	{"PMPI_Bcast", offsetof(struct oc_pmpi, Bcast)},
	{"PMPI_Scatter", offsetof(struct oc_pmpi, Scatter)},
	{"PMPI_Scatterv", offsetof(struct oc_pmpi, Scatterv)},
	{"PMPI_Gather", offsetof(struct oc_pmpi, Gather)},
	{"PMPI_Gatherv", offsetof(struct oc_pmpi, Gatherv)},
	{"PMPI_Allgather", offsetof(struct oc_pmpi, Allgather)},
	{"PMPI_Allgatherv", offsetof(struct oc_pmpi, Allgatherv)},
	{"PMPI_Alltoall", offsetof(struct oc_pmpi, Alltoall)},
	{"PMPI_Alltoallv", offsetof(struct oc_pmpi, Alltoallv)},
	{"PMPI_Alltoallw", offsetof(struct oc_pmpi, Alltoallw)},
	{"PMPI_Reduce", offsetof(struct oc_pmpi, Reduce)},
	{"PMPI_Allreduce", offsetof(struct oc_pmpi, Allreduce)},
	{"PMPI_Reduce_scatter", offsetof(struct oc_pmpi, Reduce_scatter)},
	{"PMPI_Reduce_scatter_block", offsetof(struct oc_pmpi, Reduce_scatter_block)},
	{"PMPI_Scan", offsetof(struct oc_pmpi, Scan)},
	{"PMPI_Exscan", offsetof(struct oc_pmpi, Exscan)},
	{"PMPI_Barrier", offsetof(struct oc_pmpi, Barrier)},
	{"PMPI_Neighbor_allgather", offsetof(struct oc_pmpi, Neighbor_allgather)},
	{"PMPI_Neighbor_allgatherv", offsetof(struct oc_pmpi, Neighbor_allgatherv)},
	{"PMPI_Neighbor_alltoall", offsetof(struct oc_pmpi, Neighbor_alltoall)},
	{"PMPI_Neighbor_alltoallv", offsetof(struct oc_pmpi, Neighbor_alltoallv)},
	{"PMPI_Neighbor_alltoallw", offsetof(struct oc_pmpi, Neighbor_alltoallw)},
	{"PMPI_Alloc_mem", offsetof(struct oc_pmpi, Alloc_mem)},
	{"PMPI_Free_mem", offsetof(struct oc_pmpi, Free_mem)},
	{"PMPI_Intercomm_create", offsetof(struct oc_pmpi, Intercomm_create)},
	{"PMPI_Win_create", offsetof(struct oc_pmpi, Win_create)},
	{"PMPI_Win_fence", offsetof(struct oc_pmpi, Win_fence)},
	{"PMPI_Win_post", offsetof(struct oc_pmpi, Win_post)},
	{"PMPI_Win_start", offsetof(struct oc_pmpi, Win_start)},
	{"PMPI_Win_complete", offsetof(struct oc_pmpi, Win_complete)},
	{"PMPI_Win_lock", offsetof(struct oc_pmpi, Win_lock)},
	{"PMPI_Win_unlock", offsetof(struct oc_pmpi, Win_unlock)},
	{"PMPI_Win_lock_all", offsetof(struct oc_pmpi, Win_lock_all)},
	{"PMPI_Win_unlock_all", offsetof(struct oc_pmpi, Win_unlock_all)},
	{"PMPI_Put", offsetof(struct oc_pmpi, Put)},
	{"PMPI_Get", offsetof(struct oc_pmpi, Get)},
	{"PMPI_Rput", offsetof(struct oc_pmpi, Rput)},
	{"PMPI_Rget", offsetof(struct oc_pmpi, Rget)},
	{"PMPI_Session_init", offsetof(struct oc_pmpi, Session_init)},
	{"PMPI_Session_finalize", offsetof(struct oc_pmpi, Session_finalize)},
	{"PMPI_Comm_create_from_group", offsetof(struct oc_pmpi, Comm_create_from_group)},
	{"PMPI_Intercomm_create_from_groups",
	 offsetof(struct oc_pmpi, Intercomm_create_from_groups)},
	{"PMPI_Bcast_c", offsetof(struct oc_pmpi, Bcast_c)},
	{"PMPI_Scatter_c", offsetof(struct oc_pmpi, Scatter_c)},
	{"PMPI_Scatterv_c", offsetof(struct oc_pmpi, Scatterv_c)},
	{"PMPI_Gather_c", offsetof(struct oc_pmpi, Gather_c)},
	{"PMPI_Gatherv_c", offsetof(struct oc_pmpi, Gatherv_c)},
	{"PMPI_Allgather_c", offsetof(struct oc_pmpi, Allgather_c)},
	{"PMPI_Allgatherv_c", offsetof(struct oc_pmpi, Allgatherv_c)},
	{"PMPI_Alltoall_c", offsetof(struct oc_pmpi, Alltoall_c)},
	{"PMPI_Alltoallv_c", offsetof(struct oc_pmpi, Alltoallv_c)},
	{"PMPI_Alltoallw_c", offsetof(struct oc_pmpi, Alltoallw_c)},
	{"PMPI_Scan_c", offsetof(struct oc_pmpi, Scan_c)},
	{"PMPI_Exscan_c", offsetof(struct oc_pmpi, Exscan_c)},
	{"PMPI_Reduce_c", offsetof(struct oc_pmpi, Reduce_c)},
	{"PMPI_Allreduce_c", offsetof(struct oc_pmpi, Allreduce_c)},
	{"PMPI_Reduce_scatter_c", offsetof(struct oc_pmpi, Reduce_scatter_c)},
	{"PMPI_Reduce_scatter_block_c", offsetof(struct oc_pmpi, Reduce_scatter_block_c)},
	{"PMPI_Neighbor_allgather_c", offsetof(struct oc_pmpi, Neighbor_allgather_c)},
	{"PMPI_Neighbor_allgatherv_c", offsetof(struct oc_pmpi, Neighbor_allgatherv_c)},
	{"PMPI_Neighbor_alltoall_c", offsetof(struct oc_pmpi, Neighbor_alltoall_c)},
	{"PMPI_Neighbor_alltoallv_c", offsetof(struct oc_pmpi, Neighbor_alltoallv_c)},
	{"PMPI_Neighbor_alltoallw_c", offsetof(struct oc_pmpi, Neighbor_alltoallw_c)},
	{"PMPI_Win_create_c", offsetof(struct oc_pmpi, Win_create_c)},
	{"PMPI_Put_c", offsetof(struct oc_pmpi, Put_c)},
	{"PMPI_Get_c", offsetof(struct oc_pmpi, Get_c)},
	{"PMPI_Rput_c", offsetof(struct oc_pmpi, Rput_c)},
	{"PMPI_Rget_c", offsetof(struct oc_pmpi, Rget_c)},
	{"PMPI_Get_version", offsetof(struct oc_pmpi, Get_version)},
	{"PMPI_Reduce_local", offsetof(struct oc_pmpi, Reduce_local)},
	{"PMPI_Type_size_x", offsetof(struct oc_pmpi, Type_size_x)},
	{"PMPI_Type_get_extent", offsetof(struct oc_pmpi, Type_get_extent)},
	{"PMPI_Type_get_true_extent", offsetof(struct oc_pmpi, Type_get_true_extent)},
	{"PMPI_Type_get_envelope", offsetof(struct oc_pmpi, Type_get_envelope)},
	{"PMPI_Type_get_contents", offsetof(struct oc_pmpi, Type_get_contents)},
	{"PMPI_Type_contiguous", offsetof(struct oc_pmpi, Type_contiguous)},
	{"PMPI_Type_create_struct", offsetof(struct oc_pmpi, Type_create_struct)},
	{"PMPI_Type_create_darray", offsetof(struct oc_pmpi, Type_create_darray)},
	{"PMPI_Type_create_f90_real", offsetof(struct oc_pmpi, Type_create_f90_real)},
	{"PMPI_Type_create_f90_complex", offsetof(struct oc_pmpi, Type_create_f90_complex)},
	{"PMPI_Type_create_f90_integer", offsetof(struct oc_pmpi, Type_create_f90_integer)},
	{"PMPI_Type_commit", offsetof(struct oc_pmpi, Type_commit)},
	{"PMPI_Type_free", offsetof(struct oc_pmpi, Type_free)},
	{"PMPI_Type_create_keyval", offsetof(struct oc_pmpi, Type_create_keyval)},
	{"PMPI_Type_free_keyval", offsetof(struct oc_pmpi, Type_free_keyval)},
	{"PMPI_Type_set_attr", offsetof(struct oc_pmpi, Type_set_attr)},
	{"PMPI_Type_get_attr", offsetof(struct oc_pmpi, Type_get_attr)},
	{"PMPI_Pack", offsetof(struct oc_pmpi, Pack)},
	{"PMPI_Unpack", offsetof(struct oc_pmpi, Unpack)},
	{"PMPI_Comm_size", offsetof(struct oc_pmpi, Comm_size)},
	{"PMPI_Comm_rank", offsetof(struct oc_pmpi, Comm_rank)},
	{"PMPI_Comm_test_inter", offsetof(struct oc_pmpi, Comm_test_inter)},
	{"PMPI_Comm_remote_size", offsetof(struct oc_pmpi, Comm_remote_size)},
	{"PMPI_Comm_remote_group", offsetof(struct oc_pmpi, Comm_remote_group)},
	{"PMPI_Intercomm_merge", offsetof(struct oc_pmpi, Intercomm_merge)},
	{"PMPI_Comm_group", offsetof(struct oc_pmpi, Comm_group)},
	{"PMPI_Comm_dup", offsetof(struct oc_pmpi, Comm_dup)},
	{"PMPI_Comm_free", offsetof(struct oc_pmpi, Comm_free)},
	{"PMPI_Comm_disconnect", offsetof(struct oc_pmpi, Comm_disconnect)},
	{"PMPI_Comm_create_group", offsetof(struct oc_pmpi, Comm_create_group)},
	{"PMPI_Comm_split_type", offsetof(struct oc_pmpi, Comm_split_type)},
	{"PMPI_Comm_create_keyval", offsetof(struct oc_pmpi, Comm_create_keyval)},
	{"PMPI_Comm_free_keyval", offsetof(struct oc_pmpi, Comm_free_keyval)},
	{"PMPI_Comm_set_attr", offsetof(struct oc_pmpi, Comm_set_attr)},
	{"PMPI_Comm_get_attr", offsetof(struct oc_pmpi, Comm_get_attr)},
	{"PMPI_Comm_delete_attr", offsetof(struct oc_pmpi, Comm_delete_attr)},
	{"PMPI_Win_create_keyval", offsetof(struct oc_pmpi, Win_create_keyval)},
	{"PMPI_Win_free_keyval", offsetof(struct oc_pmpi, Win_free_keyval)},
	{"PMPI_Win_set_attr", offsetof(struct oc_pmpi, Win_set_attr)},
	{"PMPI_Win_flush", offsetof(struct oc_pmpi, Win_flush)},
	{"PMPI_Comm_call_errhandler", offsetof(struct oc_pmpi, Comm_call_errhandler)},
	{"PMPI_Comm_set_errhandler", offsetof(struct oc_pmpi, Comm_set_errhandler)},
	{"PMPI_Comm_get_errhandler", offsetof(struct oc_pmpi, Comm_get_errhandler)},
	{"PMPI_Comm_create_errhandler", offsetof(struct oc_pmpi, Comm_create_errhandler)},
	{"PMPI_Errhandler_free", offsetof(struct oc_pmpi, Errhandler_free)},
	{"PMPI_Error_class", offsetof(struct oc_pmpi, Error_class)},
	{"PMPI_Add_error_code", offsetof(struct oc_pmpi, Add_error_code)},
	{"PMPI_Add_error_string", offsetof(struct oc_pmpi, Add_error_string)},
	{"PMPI_Group_from_session_pset", offsetof(struct oc_pmpi, Group_from_session_pset)},
	{"PMPI_Group_compare", offsetof(struct oc_pmpi, Group_compare)},
	{"PMPI_Group_translate_ranks", offsetof(struct oc_pmpi, Group_translate_ranks)},
	{"PMPI_Group_size", offsetof(struct oc_pmpi, Group_size)},
	{"PMPI_Group_rank", offsetof(struct oc_pmpi, Group_rank)},
	{"PMPI_Group_incl", offsetof(struct oc_pmpi, Group_incl)},
	{"PMPI_Group_free", offsetof(struct oc_pmpi, Group_free)},
	{"PMPI_Topo_test", offsetof(struct oc_pmpi, Topo_test)},
	{"PMPI_Cartdim_get", offsetof(struct oc_pmpi, Cartdim_get)},
	{"PMPI_Cart_shift", offsetof(struct oc_pmpi, Cart_shift)},
	{"PMPI_Graph_neighbors_count", offsetof(struct oc_pmpi, Graph_neighbors_count)},
	{"PMPI_Graph_neighbors", offsetof(struct oc_pmpi, Graph_neighbors)},
	{"PMPI_Dist_graph_neighbors_count", offsetof(struct oc_pmpi, Dist_graph_neighbors_count)},
	{"PMPI_Dist_graph_neighbors", offsetof(struct oc_pmpi, Dist_graph_neighbors)},
	{"PMPI_Sendrecv", offsetof(struct oc_pmpi, Sendrecv)},
	{"PMPI_Iprobe", offsetof(struct oc_pmpi, Iprobe)},
	{"PMPI_Irecv", offsetof(struct oc_pmpi, Irecv)},
	{"PMPI_Request_get_status", offsetof(struct oc_pmpi, Request_get_status)},
	{"PMPI_Cancel", offsetof(struct oc_pmpi, Cancel)},
	{"PMPI_Wait", offsetof(struct oc_pmpi, Wait)},
};

bool oc_pmpi_is_ours(void)
{
	pmpi();
	return library;
}

void *oc_pmpi_symbol(const char *name)
{
	/* The program may hold the one copy of a data symbol (copy
	 * relocation), so what it sees comes first. */
	void *at = dlsym(RTLD_DEFAULT, name);

	if (!at && library)
		at = oc_lookup_next(library, name);
	return at;
}

void oc_pmpi_name(char *name, size_t size)
{
	/* MPICH says "MPICH Version:      5.0.2", and more such lines. */
	static const char label[] = " Version:";
	int (*ask)(char *, int *) = oc_pmpi_symbol("MPI_Get_library_version");
	char text[MPI_MAX_LIBRARY_VERSION_STRING] = "", *at;
	int len;

	if (ask && ask(text, &len))
		text[0] = '\0';
	text[strcspn(text, ",\n")] = '\0';
	at = strstr(text, label);
	len = at ? (int)(at - text) : 0;
	at = at ? at + strlen(label) : text;
	snprintf(name, size, "%.*s%s%s", len, text, len ? " " : "", at + strspn(at, " \t"));
}

/*
 * The next MPI_x after ours, unless it is the MPI's own. Only calls we interpose
 * matter, but a tool's other ones are harmless to know.
 */
static void *tool_function(const char *pmpi_name, void *real)
{
	void *next = dlsym(RTLD_NEXT, pmpi_name + 1);
	Dl_info of_next, of_real;

	if (!next || !dladdr(next, &of_next) || !dladdr(real, &of_real) ||
	    of_next.dli_fbase == of_real.dli_fbase)
		return NULL;
	return next;
}

/*
 * Where a call would have gone without us, in a program of an MPI of another ABI.
 * It passes through: whatever handles are there, each travels in a register or a
 * stack slot of its own, as ours do. But handles that are numbers have half of it.
 */
static void *foreign_function(const char *pmpi_name)
{
	void *next;

	if (sizeof(MPI_Comm) < sizeof(void *))
		return NULL;
	next = dlsym(RTLD_NEXT, pmpi_name);
	return next ? next : dlsym(RTLD_NEXT, pmpi_name + 1);
}

/* Calls with large counts and those of sessions, which came with MPI 4, and those about Fortran's
 * kinds, which an MPI may be built without. */
static bool may_lack(const char *name)
{
	return !strcmp(name + strlen(name) - 2, "_c") || strcasestr(name, "session") ||
	       strstr(name, "_from_group") || strstr(name, "_f90_");
}

const struct oc_pmpi *oc_pmpi_resolve(void)
{
	pthread_mutex_lock(&lock);
	if (oc_pmpi_resolved)
		goto out;
	library = oc_library_find();
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		void *function = library ? oc_lookup_next(library, entries[i].name)
					 : foreign_function(entries[i].name);

		if (!function && (library ? !may_lack(entries[i].name) : !i)) {
			fprintf(stderr,
				"onecopy: no %s in an MPI library this preload is made for (%s); "
				"run the program without onecopy\n",
				entries[i].name, OC_ABI_NAME);
			abort();
		}
		memcpy((char *)&oc_pmpi_table + entries[i].at, &function, sizeof(function));
		if (function)
			function = tool_function(entries[i].name, function);
		memcpy((char *)&oc_tool_table + entries[i].at, &function, sizeof(function));
	}
	__atomic_store_n(&oc_pmpi_resolved, 1, __ATOMIC_RELEASE);
out:
	pthread_mutex_unlock(&lock);
	return &oc_pmpi_table;
}
