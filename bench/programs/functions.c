// SPDX-License-Identifier: BSD-3-Clause
#include "functions.h"

#include <dlfcn.h>
#include <stddef.h>

const struct functions functions_linked = {
	.Barrier = MPI_Barrier,
	.Bcast = MPI_Bcast,
	.Scatter = MPI_Scatter,
	.Gather = MPI_Gather,
	.Allgather = MPI_Allgather,
	.Allgatherv = MPI_Allgatherv,
	.Alltoall = MPI_Alltoall,
	.Scatterv = MPI_Scatterv,
	.Gatherv = MPI_Gatherv,
	.Alltoallv = MPI_Alltoallv,
	.Alltoallw = MPI_Alltoallw,
	.Neighbor_alltoall = MPI_Neighbor_alltoall,
	.Neighbor_alltoallw = MPI_Neighbor_alltoallw,
	.Reduce = MPI_Reduce,
	.Allreduce = MPI_Allreduce,
	.Reduce_scatter = MPI_Reduce_scatter,
	.Reduce_scatter_block = MPI_Reduce_scatter_block,
	.Scan = MPI_Scan,
	.Exscan = MPI_Exscan,
	.Send = MPI_Send,
	.Recv = MPI_Recv,
};

static const struct {
	const char *name;
	size_t at;
} symbols[] = {
	{"MPI_Barrier", offsetof(struct functions, Barrier)},
	{"MPI_Bcast", offsetof(struct functions, Bcast)},
	{"MPI_Scatter", offsetof(struct functions, Scatter)},
	{"MPI_Gather", offsetof(struct functions, Gather)},
	{"MPI_Allgather", offsetof(struct functions, Allgather)},
	{"MPI_Allgatherv", offsetof(struct functions, Allgatherv)},
	{"MPI_Alltoall", offsetof(struct functions, Alltoall)},
	{"MPI_Scatterv", offsetof(struct functions, Scatterv)},
	{"MPI_Gatherv", offsetof(struct functions, Gatherv)},
	{"MPI_Alltoallv", offsetof(struct functions, Alltoallv)},
	{"MPI_Alltoallw", offsetof(struct functions, Alltoallw)},
	{"MPI_Neighbor_alltoall", offsetof(struct functions, Neighbor_alltoall)},
	{"MPI_Neighbor_alltoallw", offsetof(struct functions, Neighbor_alltoallw)},
	{"MPI_Reduce", offsetof(struct functions, Reduce)},
	{"MPI_Allreduce", offsetof(struct functions, Allreduce)},
	{"MPI_Reduce_scatter", offsetof(struct functions, Reduce_scatter)},
	{"MPI_Reduce_scatter_block", offsetof(struct functions, Reduce_scatter_block)},
	{"MPI_Scan", offsetof(struct functions, Scan)},
	{"MPI_Exscan", offsetof(struct functions, Exscan)},
	{"MPI_Send", offsetof(struct functions, Send)},
	{"MPI_Recv", offsetof(struct functions, Recv)},
};

bool functions_beneath(struct functions *result)
{
	/* A function that nobody replaces leads to the library. */
	void *its = dlsym(RTLD_DEFAULT, "MPI_Get_library_version"), *library;
	Dl_info info;

	if (!its || !dladdr(its, &info))
		return false;
	library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	for (size_t i = 0; library && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *function = dlsym(library, symbols[i].name);

		if (!function)
			return false;
		*(void **)((char *)result + symbols[i].at) = function;
	}
	return library;
}
