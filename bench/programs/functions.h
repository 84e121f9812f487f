/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_FUNCTIONS_H
#define BENCH_FUNCTIONS_H

#include <mpi.h>
#include <stdbool.h>

/* The functions of MPI that the operations call. */
struct functions {
	int (*Barrier)(MPI_Comm comm);
	int (*Bcast)(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
	int (*Scatter)(const void *send, int scount, MPI_Datatype stype, void *recv, int rcount,
		       MPI_Datatype rtype, int root, MPI_Comm comm);
	int (*Gather)(const void *send, int scount, MPI_Datatype stype, void *recv, int rcount,
		      MPI_Datatype rtype, int root, MPI_Comm comm);
	int (*Allgather)(const void *send, int scount, MPI_Datatype stype, void *recv, int rcount,
			 MPI_Datatype rtype, MPI_Comm comm);
	int (*Allgatherv)(const void *send, int scount, MPI_Datatype stype, void *recv,
			  const int counts[], const int displs[], MPI_Datatype rtype,
			  MPI_Comm comm);
	int (*Alltoall)(const void *send, int scount, MPI_Datatype stype, void *recv, int rcount,
			MPI_Datatype rtype, MPI_Comm comm);
	int (*Scatterv)(const void *send, const int counts[], const int displs[],
			MPI_Datatype stype, void *recv, int rcount, MPI_Datatype rtype, int root,
			MPI_Comm comm);
	int (*Gatherv)(const void *send, int scount, MPI_Datatype stype, void *recv,
		       const int counts[], const int displs[], MPI_Datatype rtype, int root,
		       MPI_Comm comm);
	int (*Alltoallv)(const void *send, const int scounts[], const int sdispls[],
			 MPI_Datatype stype, void *recv, const int rcounts[], const int rdispls[],
			 MPI_Datatype rtype, MPI_Comm comm);
	int (*Alltoallw)(const void *send, const int scounts[], const int sdispls[],
			 const MPI_Datatype stypes[], void *recv, const int rcounts[],
			 const int rdispls[], const MPI_Datatype rtypes[], MPI_Comm comm);
	int (*Neighbor_alltoall)(const void *send, int scount, MPI_Datatype stype, void *recv,
				 int rcount, MPI_Datatype rtype, MPI_Comm comm);
	int (*Neighbor_alltoallw)(const void *send, const int scounts[], const MPI_Aint sdispls[],
				  const MPI_Datatype stypes[], void *recv, const int rcounts[],
				  const MPI_Aint rdispls[], const MPI_Datatype rtypes[],
				  MPI_Comm comm);
	int (*Reduce)(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
		      int root, MPI_Comm comm);
	int (*Allreduce)(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
			 MPI_Comm comm);
	int (*Reduce_scatter)(const void *send, void *recv, const int counts[], MPI_Datatype type,
			      MPI_Op op, MPI_Comm comm);
	int (*Reduce_scatter_block)(const void *send, void *recv, int count, MPI_Datatype type,
				    MPI_Op op, MPI_Comm comm);
	int (*Scan)(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
		    MPI_Comm comm);
	int (*Exscan)(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
		      MPI_Comm comm);
	int (*Send)(const void *buffer, int count, MPI_Datatype type, int peer, int tag,
		    MPI_Comm comm);
	int (*Recv)(void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
		    MPI_Status *status);
};

/* As the program is linked: a preloaded library comes first. */
extern const struct functions functions_linked;

/* The same of the MPI's own library, past what is preloaded. False when it has not all. */
bool functions_beneath(struct functions *result);

#endif
