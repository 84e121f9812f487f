/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_PMPI_H
#define OC_MPI_PMPI_H

/*
 * The MPI library underneath. The preload has no dependency on it: it may be
 * loaded into programs that are no MPI programs, and the MPI may come later by
 * dlopen(). So every function and every handle that is a symbol is looked up.
 * Both MPI_x and PMPI_x are interposed (Open MPI's Fortran bindings call the
 * latter), hence real functions are taken from the library itself.
 */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <mpi.h>

struct oc_pmpi {
	int (*Init)(int *, char ***);
	int (*Init_thread)(int *, char ***, int, int *);
	int (*Finalize)(void);
	int (*Abort)(MPI_Comm, int);
	int (*Bcast)(void *, int, MPI_Datatype, int, MPI_Comm);
	int (*Scatter)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
	int (*Scatterv)(const void *, const int *, const int *, MPI_Datatype, void *, int,
			MPI_Datatype, int, MPI_Comm);
	int (*Gather)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
	int (*Gatherv)(const void *, int, MPI_Datatype, void *, const int *, const int *,
		       MPI_Datatype, int, MPI_Comm);
	int (*Allgather)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
	int (*Allgatherv)(const void *, int, MPI_Datatype, void *, const int *, const int *,
			  MPI_Datatype, MPI_Comm);
	int (*Alltoall)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
	int (*Alltoallv)(const void *, const int *, const int *, MPI_Datatype, void *, const int *,
			 const int *, MPI_Datatype, MPI_Comm);
	int (*Alltoallw)(const void *, const int *, const int *, const MPI_Datatype *, void *,
			 const int *, const int *, const MPI_Datatype *, MPI_Comm);
	int (*Reduce)(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
	int (*Allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
	int (*Reduce_scatter)(const void *, void *, const int *, MPI_Datatype, MPI_Op, MPI_Comm);
	int (*Reduce_scatter_block)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
	int (*Scan)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
	int (*Exscan)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
	int (*Barrier)(MPI_Comm);
	int (*Neighbor_allgather)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype,
				  MPI_Comm);
	int (*Neighbor_allgatherv)(const void *, int, MPI_Datatype, void *, const int *,
				   const int *, MPI_Datatype, MPI_Comm);
	int (*Neighbor_alltoall)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype,
				 MPI_Comm);
	int (*Neighbor_alltoallv)(const void *, const int *, const int *, MPI_Datatype, void *,
				  const int *, const int *, MPI_Datatype, MPI_Comm);
	int (*Neighbor_alltoallw)(const void *, const int *, const MPI_Aint *, const MPI_Datatype *,
				  void *, const int *, const MPI_Aint *, const MPI_Datatype *,
				  MPI_Comm);
	int (*Alloc_mem)(MPI_Aint, MPI_Info, void *);
	int (*Free_mem)(void *);
	int (*Intercomm_create)(MPI_Comm, int, MPI_Comm, int, int, MPI_Comm *);
	int (*Win_create)(void *, MPI_Aint, int, MPI_Info, MPI_Comm, MPI_Win *);
	int (*Win_fence)(int, MPI_Win);
	int (*Win_post)(MPI_Group, int, MPI_Win);
	int (*Win_start)(MPI_Group, int, MPI_Win);
	int (*Win_complete)(MPI_Win);
	int (*Win_lock)(int, int, int, MPI_Win);
	int (*Win_unlock)(int, MPI_Win);
	int (*Win_lock_all)(int, MPI_Win);
	int (*Win_unlock_all)(MPI_Win);
	int (*Put)(const void *, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win);
	int (*Get)(void *, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win);
	int (*Rput)(const void *, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win,
		    MPI_Request *);
	int (*Rget)(void *, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win,
		    MPI_Request *);
	/* interposed, NULL where the MPI has no sessions */
	int (*Session_init)(MPI_Info, MPI_Errhandler, MPI_Session *);
	int (*Session_finalize)(MPI_Session *);
	int (*Comm_create_from_group)(MPI_Group, const char *, MPI_Info, MPI_Errhandler,
				      MPI_Comm *);
	int (*Intercomm_create_from_groups)(MPI_Group, int, MPI_Group, int, const char *, MPI_Info,
					    MPI_Errhandler, MPI_Comm *);
	/* interposed, NULL where the MPI has no large counts */
	int (*Bcast_c)(void *, MPI_Count, MPI_Datatype, int, MPI_Comm);
	int (*Scatter_c)(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
			 int, MPI_Comm);
	int (*Scatterv_c)(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *,
			  MPI_Count, MPI_Datatype, int, MPI_Comm);
	int (*Gather_c)(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, int,
			MPI_Comm);
	int (*Gatherv_c)(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *,
			 const MPI_Aint *, MPI_Datatype, int, MPI_Comm);
	int (*Allgather_c)(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
			   MPI_Comm);
	int (*Allgatherv_c)(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *,
			    const MPI_Aint *, MPI_Datatype, MPI_Comm);
	int (*Alltoall_c)(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
			  MPI_Comm);
	int (*Alltoallv_c)(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *,
			   const MPI_Count *, const MPI_Aint *, MPI_Datatype, MPI_Comm);
	int (*Alltoallw_c)(const void *, const MPI_Count *, const MPI_Aint *, const MPI_Datatype *,
			   void *, const MPI_Count *, const MPI_Aint *, const MPI_Datatype *,
			   MPI_Comm);
	int (*Scan_c)(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
	int (*Exscan_c)(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
	int (*Reduce_c)(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm);
	int (*Allreduce_c)(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
	int (*Reduce_scatter_c)(const void *, void *, const MPI_Count *, MPI_Datatype, MPI_Op,
				MPI_Comm);
	int (*Reduce_scatter_block_c)(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op,
				      MPI_Comm);
	int (*Neighbor_allgather_c)(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count,
				    MPI_Datatype, MPI_Comm);
	int (*Neighbor_allgatherv_c)(const void *, MPI_Count, MPI_Datatype, void *,
				     const MPI_Count *, const MPI_Aint *, MPI_Datatype, MPI_Comm);
	int (*Neighbor_alltoall_c)(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count,
				   MPI_Datatype, MPI_Comm);
	int (*Neighbor_alltoallv_c)(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype,
				    void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype,
				    MPI_Comm);
	int (*Neighbor_alltoallw_c)(const void *, const MPI_Count *, const MPI_Aint *,
				    const MPI_Datatype *, void *, const MPI_Count *,
				    const MPI_Aint *, const MPI_Datatype *, MPI_Comm);
	int (*Win_create_c)(void *, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, MPI_Win *);
	int (*Put_c)(const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype,
		     MPI_Win);
	int (*Get_c)(void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype,
		     MPI_Win);
	int (*Rput_c)(const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype,
		      MPI_Win, MPI_Request *);
	int (*Rget_c)(void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype,
		      MPI_Win, MPI_Request *);
	/* not interposed, used by the adapter */
	int (*Get_version)(int *, int *);
	int (*Reduce_local)(const void *, void *, int, MPI_Datatype, MPI_Op);
	int (*Type_size_x)(MPI_Datatype, MPI_Count *);
	int (*Type_get_extent)(MPI_Datatype, MPI_Aint *, MPI_Aint *);
	int (*Type_get_true_extent)(MPI_Datatype, MPI_Aint *, MPI_Aint *);
	int (*Type_get_envelope)(MPI_Datatype, int *, int *, int *, int *);
	int (*Type_get_contents)(MPI_Datatype, int, int, int, int *, MPI_Aint *, MPI_Datatype *);
	int (*Type_contiguous)(int, MPI_Datatype, MPI_Datatype *);
	int (*Type_create_struct)(int, const int *, const MPI_Aint *, const MPI_Datatype *,
				  MPI_Datatype *);
	int (*Type_create_darray)(int, int, int, const int *, const int *, const int *, const int *,
				  int, MPI_Datatype, MPI_Datatype *);
	int (*Type_create_f90_real)(int, int, MPI_Datatype *);	  /* or NULL */
	int (*Type_create_f90_complex)(int, int, MPI_Datatype *); /* or NULL */
	int (*Type_create_f90_integer)(int, MPI_Datatype *);	  /* or NULL */
	int (*Type_commit)(MPI_Datatype *);
	int (*Type_free)(MPI_Datatype *);
	int (*Type_create_keyval)(MPI_Type_copy_attr_function *, MPI_Type_delete_attr_function *,
				  int *, void *);
	int (*Type_free_keyval)(int *);
	int (*Type_set_attr)(MPI_Datatype, int, void *);
	int (*Type_get_attr)(MPI_Datatype, int, void *, int *);
	int (*Pack)(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm);
	int (*Unpack)(const void *, int, int *, void *, int, MPI_Datatype, MPI_Comm);
	int (*Comm_size)(MPI_Comm, int *);
	int (*Comm_rank)(MPI_Comm, int *);
	int (*Comm_test_inter)(MPI_Comm, int *);
	int (*Comm_remote_size)(MPI_Comm, int *);
	int (*Comm_remote_group)(MPI_Comm, MPI_Group *);
	int (*Intercomm_merge)(MPI_Comm, int, MPI_Comm *);
	int (*Comm_group)(MPI_Comm, MPI_Group *);
	int (*Comm_dup)(MPI_Comm, MPI_Comm *);
	int (*Comm_free)(MPI_Comm *);
	int (*Comm_disconnect)(MPI_Comm *);
	int (*Comm_create_group)(MPI_Comm, MPI_Group, int, MPI_Comm *);
	int (*Comm_split_type)(MPI_Comm, int, int, MPI_Info, MPI_Comm *);
	int (*Comm_create_keyval)(MPI_Comm_copy_attr_function *, MPI_Comm_delete_attr_function *,
				  int *, void *);
	int (*Comm_free_keyval)(int *);
	int (*Comm_set_attr)(MPI_Comm, int, void *);
	int (*Comm_get_attr)(MPI_Comm, int, void *, int *);
	int (*Comm_delete_attr)(MPI_Comm, int);
	int (*Win_create_keyval)(MPI_Win_copy_attr_function *, MPI_Win_delete_attr_function *,
				 int *, void *);
	int (*Win_free_keyval)(int *);
	int (*Win_set_attr)(MPI_Win, int, void *);
	int (*Win_flush)(int, MPI_Win);
	int (*Comm_call_errhandler)(MPI_Comm, int);
	int (*Comm_set_errhandler)(MPI_Comm, MPI_Errhandler);
	int (*Comm_get_errhandler)(MPI_Comm, MPI_Errhandler *);
	int (*Comm_create_errhandler)(MPI_Comm_errhandler_function *, MPI_Errhandler *);
	int (*Errhandler_free)(MPI_Errhandler *);
	int (*Error_class)(int, int *);
	int (*Add_error_code)(int, int *);
	int (*Add_error_string)(int, const char *);
	int (*Group_from_session_pset)(MPI_Session, const char *, MPI_Group *); /* or NULL */
	int (*Group_compare)(MPI_Group, MPI_Group, int *);
	int (*Group_translate_ranks)(MPI_Group, int, const int *, MPI_Group, int *);
	int (*Group_size)(MPI_Group, int *);
	int (*Group_rank)(MPI_Group, int *);
	int (*Group_incl)(MPI_Group, int, const int *, MPI_Group *);
	int (*Group_free)(MPI_Group *);
	int (*Topo_test)(MPI_Comm, int *);
	int (*Cartdim_get)(MPI_Comm, int *);
	int (*Cart_shift)(MPI_Comm, int, int, int *, int *);
	int (*Graph_neighbors_count)(MPI_Comm, int, int *);
	int (*Graph_neighbors)(MPI_Comm, int, int, int *);
	int (*Dist_graph_neighbors_count)(MPI_Comm, int *, int *, int *);
	int (*Dist_graph_neighbors)(MPI_Comm, int, int *, int *, int, int *, int *);
	int (*Sendrecv)(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int,
			int, MPI_Comm, MPI_Status *);
	int (*Iprobe)(int, int, MPI_Comm, int *, MPI_Status *);
	int (*Irecv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
	int (*Request_get_status)(MPI_Request, int *, MPI_Status *);
	int (*Cancel)(MPI_Request *);
	int (*Wait)(MPI_Request *, MPI_Status *);
};

extern struct oc_pmpi oc_pmpi_table;
/* The same calls of a profiling tool that is linked between the program and the
 * MPI; NULL where there is none. The program's MPI_x goes through it. */
extern struct oc_pmpi oc_tool_table;
extern int oc_pmpi_resolved;

/* Finds the MPI library and fills the table, with another MPI's functions if that
 * is what the program has; prints a line and aborts when the process calls MPI
 * without having any. Idempotent, any thread. */
const struct oc_pmpi *oc_pmpi_resolve(void) __attribute__((cold));

/* Address of a symbol of the MPI library as the program sees it, or NULL. */
void *oc_pmpi_symbol(const char *name);

static inline const struct oc_pmpi *pmpi(void)
{
	if (__builtin_expect(__atomic_load_n(&oc_pmpi_resolved, __ATOMIC_ACQUIRE), 1))
		return &oc_pmpi_table;
	return oc_pmpi_resolve();
}

/* Whether that is an MPI of the ABI this library is made for. Any thread. */
bool oc_pmpi_is_ours(void);

/* What the MPI calls itself, without the details. Between MPI_Init and MPI_Finalize. */
void oc_pmpi_name(char *name, size_t size);

/* Whether that begins so. */
static inline bool oc_pmpi_is(const char *begins)
{
	char name[MPI_MAX_LIBRARY_VERSION_STRING];

	oc_pmpi_name(name, sizeof(name));
	return !strncmp(name, begins, strlen(begins));
}

static inline const struct oc_pmpi *oc_tool(void)
{
	pmpi();
	return &oc_tool_table;
}

#endif
