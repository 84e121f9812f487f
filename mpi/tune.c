// SPDX-License-Identifier: BSD-3-Clause
#include "tune.h"

#include <unistd.h>

#include <onecopy/onecopy.h>

#include "../preload/malloc.h"
#include "exec/group.h"
#include "pmpi.h"

/* With the shared heap: docs/tuning.md. Every rank looks at every other, which so many were not
 * measured to do in time for short blocks. */
#define SERVE_FROM	4096
#define SERVE_MANY_FROM 8192
#define MANY		17

/* What Intel MPI copies twice in its caches takes less time than what we stage, and that are all
 * blocks of malloc that are shorter. */
#define SERVE_INTEL_FROM (16 << 10)

/* What the MPI sends for itself is copied by a pointer, too. Where blocks differ it gets a call of
 * its own for the rest, and that costs each neighbour a message. */
#define NEIGHBORS_FROM	     (16 << 10)
#define NEIGHBOR_TYPES_FROM  (32 << 10) /* it packs pieces, which is dearer */
#define NEIGHBOR_BLOCKS_FROM (128 << 10)

static void raise_some(struct oc_agreed *agreed)
{
	const struct {
		enum oc_coll coll;
		uint64_t from;
	} bounds[] = {
		{OC_COLL_BCAST, oc_abi_rooted_from},
		{OC_COLL_REDUCE, oc_abi_rooted_from},
		{OC_COLL_NEIGHBOR_ALLGATHER, NEIGHBORS_FROM},
		{OC_COLL_NEIGHBOR_ALLTOALL, NEIGHBORS_FROM},
		{OC_COLL_NEIGHBOR_ALLTOALLW, NEIGHBOR_TYPES_FROM},
		{OC_COLL_NEIGHBOR_ALLGATHERV, NEIGHBOR_BLOCKS_FROM},
		{OC_COLL_NEIGHBOR_ALLTOALLV, NEIGHBOR_BLOCKS_FROM},
	};

	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
		if (agreed->min[bounds[i].coll] < bounds[i].from)
			agreed->min[bounds[i].coll] = bounds[i].from;
}

static uint64_t serve_from(int ranks)
{
	if (oc_pmpi_is("Intel(R) MPI"))
		return SERVE_INTEL_FROM;
	return ranks < MANY ? SERVE_FROM : SERVE_MANY_FROM;
}

void oc_tune_defaults(struct oc_agreed *agreed, const struct oc_env *env, int ranks)
{
	bool heap = !oc_malloc_declined();
	uint64_t min = heap ? serve_from(ranks) : 256 << 10;

	/* A group costs about what moving this much does. Who says from which
	 * size on to serve wants it from the first call on. */
	agreed->credit = 256 << 10;
	if (env->min) {
		min = env->min;
		agreed->credit = 0;
	}
	for (int c = 0; c < OC_COLL_COUNT; c++)
		agreed->min[c] = min;
	agreed->min[OC_COLL_BARRIER] = 0;
	if (!env->min)
		raise_some(agreed);
	/* By CMA alone every rank copies as many pages as under the MPI, and as often. */
	if (!env->min && !heap && !(env->mech & OC_MECH_STAGED))
		agreed->min[OC_COLL_ALLGATHER] = agreed->min[OC_COLL_ALLGATHERV] = UINT64_MAX;
	agreed->eager = OC_EAGER_MAX;
	agreed->stream = OC_STREAM_FROM;
}

bool oc_streams(size_t bytes)
{
	return bytes >= oc_adapter.agreed.stream;
}
