// SPDX-License-Identifier: BSD-3-Clause
#include "alltoall.h"
#include "inter.h"
#include "serve.h"
#include "vopen.h"

static int serve(struct oc_comm *oc, const void *send, struct oc_counts scounts,
		 struct oc_counts sdispls, const MPI_Datatype *stypes, void *recv,
		 struct oc_counts rcounts, struct oc_counts rdispls, const MPI_Datatype *rtypes,
		 MPI_Comm comm)
{
	int n = oc->size, skip = send == MPI_IN_PLACE ? oc->rank : -1;
	struct oc_vector sends = {send, scounts, sdispls, .types = stypes, .n = n, .skip = -1};
	struct oc_vector receives = {recv, rcounts, rdispls, .types = rtypes, .n = n, .skip = skip};

	return oc_alltoall_blocks(oc, OC_COLL_ALLTOALLW, &sends, &receives, comm);
}

/* Serves MPI_Alltoallw: as MPI_Alltoallv. */
static OC_BOTH int alltoallw(const void *send, struct oc_counts scounts, struct oc_counts sdispls,
			     const MPI_Datatype stypes[], void *recv, struct oc_counts rcounts,
			     struct oc_counts rdispls, const MPI_Datatype rtypes[], MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_ALLTOALLW, 0, comm);
	struct oc_inter *inter = oc_inter_get(comm);
	uint64_t min = oc_adapter.agreed.min[OC_COLL_ALLTOALLW];
	bool in_place = send == MPI_IN_PLACE;
	struct oc_comm *oc = inter ? NULL : oc_comm_look(&call, comm);
	int err;

	oc = oc_comm_join(
		&call, comm, oc, OC_CREDIT_CALL,
		oc && (oc_blocks_wrong_each(rcounts, rdispls, rtypes, oc->size) ||
		       oc_in_place_wrong(recv, oc_counts_bits(rcounts, oc->size)) ||
		       (!in_place && oc_blocks_wrong_each(scounts, sdispls, stypes, oc->size))));
	if (call.since && !inter)
		oc_call_measure_each(&call, in_place ? (struct oc_counts){0} : scounts, stypes,
				     rcounts, rtypes);
	if (oc && (in_place || !oc_blocks_find_each(scounts, stypes, oc->size, min, -1)) &&
	    !oc_blocks_find_each(rcounts, rtypes, oc->size, min, in_place ? oc->rank : -1)) {
		call.outcome = OC_OUTCOME_SMALL;
		oc = oc_comm_leave(oc);
	}
	if (inter)
		err = oc_inter_alltoallw(inter, &call, send, scounts, sdispls, stypes, recv,
					 rcounts, rdispls, rtypes);
	else if (oc)
		err = serve(oc, send, scounts, sdispls, stypes, recv, rcounts, rdispls, rtypes,
			    comm);
	else
		err = oc_pass_alltoallw(send, scounts, sdispls, stypes, recv, rcounts, rdispls,
					rtypes, comm);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Alltoallw(const void *send, const int scounts[], const int sdispls[],
			     const MPI_Datatype stypes[], void *recv, const int rcounts[],
			     const int rdispls[], const MPI_Datatype rtypes[], MPI_Comm comm)
{
	return alltoallw(send, (struct oc_counts){scounts, false},
			 (struct oc_counts){sdispls, false}, stypes, recv,
			 (struct oc_counts){rcounts, false}, (struct oc_counts){rdispls, false},
			 rtypes, comm);
}

OC_EXPORT_LARGE int PMPI_Alltoallw_c(const void *send, const MPI_Count scounts[],
				     const MPI_Aint sdispls[], const MPI_Datatype stypes[],
				     void *recv, const MPI_Count rcounts[],
				     const MPI_Aint rdispls[], const MPI_Datatype rtypes[],
				     MPI_Comm comm)
{
	return pmpi()->Alltoallw_c ? alltoallw(send, (struct oc_counts){scounts, true},
					       (struct oc_counts){sdispls, true}, stypes, recv,
					       (struct oc_counts){rcounts, true},
					       (struct oc_counts){rdispls, true}, rtypes, comm)
				   : oc_pass_refused(comm);
}

OC_EXPORT int MPI_Alltoallw(const void *send, const int scounts[], const int sdispls[],
			    const MPI_Datatype stypes[], void *recv, const int rcounts[],
			    const int rdispls[], const MPI_Datatype rtypes[], MPI_Comm comm)
{
	return oc_tool()->Alltoallw ? oc_tool()->Alltoallw(send, scounts, sdispls, stypes, recv,
							   rcounts, rdispls, rtypes, comm)
				    : PMPI_Alltoallw(send, scounts, sdispls, stypes, recv, rcounts,
						     rdispls, rtypes, comm);
}

OC_EXPORT_LARGE int MPI_Alltoallw_c(const void *send, const MPI_Count scounts[],
				    const MPI_Aint sdispls[], const MPI_Datatype stypes[],
				    void *recv, const MPI_Count rcounts[], const MPI_Aint rdispls[],
				    const MPI_Datatype rtypes[], MPI_Comm comm)
{
	return oc_tool()->Alltoallw_c ? oc_tool()->Alltoallw_c(send, scounts, sdispls, stypes, recv,
							       rcounts, rdispls, rtypes, comm)
				      : PMPI_Alltoallw_c(send, scounts, sdispls, stypes, recv,
							 rcounts, rdispls, rtypes, comm);
}
