// SPDX-License-Identifier: BSD-3-Clause
#include "serve.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "failure.h"

struct oc_shape oc_shape_of(const struct oc_comm *oc, enum oc_coll coll, int root, size_t bytes)
{
	struct oc_shape shape;

	memset(&shape, 0, sizeof(shape));
	shape.coll = (uint16_t)coll;
	shape.rank = (uint16_t)oc->rank;
	shape.size = (uint16_t)oc->size;
	shape.root = (uint16_t)root;
	shape.granule = 1;
	shape.bytes = bytes;
	/* With a CPU for each rank, a copy more costs what a wait less saves. */
	shape.eager = oc_adapter.node->oversubscribed &&
		      oc_coll_eager_bytes(&shape) <= oc_adapter.agreed.eager;
	return shape;
}

static struct oc_plan *generate(const struct oc_shape *shape)
{
	if (shape->eager)
		return oc_coll_eager(shape);
	switch (shape->coll) {
	case OC_COLL_BCAST:
		return oc_coll_bcast(shape);
	case OC_COLL_SCATTER:
		return oc_coll_scatter(shape);
	case OC_COLL_GATHER:
		return oc_coll_gather(shape);
	case OC_COLL_ALLGATHER:
		return oc_coll_allgather(shape);
	case OC_COLL_ALLTOALL:
		return oc_coll_alltoall(shape);
	case OC_COLL_REDUCE:
		return oc_coll_reduce(shape);
	case OC_COLL_ALLREDUCE:
		return oc_coll_allreduce(shape);
	case OC_COLL_BARRIER:
		return oc_coll_barrier(shape);
	default:
		return NULL;
	}
}

/* The plan for @shape, made at most once while it stays in its cache slot. */
static struct oc_plan *cached_plan(struct oc_group *group, const struct oc_shape *shape)
{
	uint64_t hash = (shape->bytes * 31 + shape->root) * 31 + shape->coll * 7 + shape->granule +
			shape->in_place;
	struct oc_plan **slot;

	hash *= 0x9e3779b97f4a7c15u;
	slot = &group->plans[(hash >> 32) % OC_GROUP_PLANS];
	if (*slot && !memcmp(&(*slot)->shape, shape, sizeof(*shape)))
		return *slot;
	free(*slot);
	*slot = generate(shape);
	return *slot;
}

/*
 * How peers get at a send buffer outside the heap that the module could copy and
 * has not mapped. One reader is served soonest by a pipeline; where every rank
 * reads every other, staging would double the traffic of all of them.
 */
static bool reads_by_call(const struct oc_shape *shape)
{
	if (!(oc_env()->mech & OC_MECH_STAGED))
		return true;
	switch (shape->coll) {
	case OC_COLL_ALLGATHER:
	case OC_COLL_ALLGATHERV:
	case OC_COLL_ALLTOALL:
	case OC_COLL_ALLTOALLV:
	case OC_COLL_GATHER:
	case OC_COLL_GATHERV:
		return true;
	default:
		return false;
	}
}

static int run(struct oc_comm *oc, int prepared, const struct oc_plan *plan, struct oc_bind *bind)
{
	if (!prepared && !plan)
		prepared = MPI_ERR_NO_MEM;
	if (prepared) {
		oc_exec_decline(oc->group, oc_failure_of_code(prepared));
		return prepared;
	}
	bind->call = reads_by_call(&plan->shape);
	return oc_exec_inline(oc->group, plan, bind);
}

int oc_serve(struct oc_comm *oc, int prepared, const struct oc_shape *shape, struct oc_bind *bind)
{
	bind->recv_whole = true;
	return run(oc, prepared, cached_plan(oc->group, shape), bind);
}

int oc_serve_plan(struct oc_comm *oc, int prepared, struct oc_plan *plan, struct oc_bind *bind)
{
	int err = run(oc, prepared, plan, bind);

	free(plan);
	return err;
}
