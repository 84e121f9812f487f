// SPDX-License-Identifier: BSD-3-Clause
#include "tune.h"

#include <unistd.h>

#include <onecopy/onecopy.h>

#include "../preload/malloc.h"
#include "exec/group.h"

/* With the shared heap: docs/tuning.md. Every rank looks at every other, which so many were not
 * measured to do in time for short blocks. */
#define SERVE_FROM	4096
#define SERVE_MANY_FROM 8192
#define MANY		17

void oc_tune_defaults(struct oc_agreed *agreed, const struct oc_env *env, int ranks)
{
	bool heap = !oc_malloc_declined();
	uint64_t min = !heap ? 256 << 10 : ranks < MANY ? SERVE_FROM : SERVE_MANY_FROM;

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
	if (!env->min && min < oc_abi_bcast_from)
		agreed->min[OC_COLL_BCAST] = oc_abi_bcast_from;
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
