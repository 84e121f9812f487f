// SPDX-License-Identifier: BSD-3-Clause
#include "serve.h"

#include <string.h>

#include "base/env.h"
#include "failure.h"
#include "plan/cache.h"

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

static struct oc_plan *generate_between(const struct oc_shape *shape, const uint64_t *there,
					const struct oc_blocks *blocks)
{
	switch (shape->coll) {
	case OC_COLL_REDUCE:
		return oc_coll_reduce_between(shape, there);
	case OC_COLL_ALLREDUCE:
		return oc_coll_allreduce_between(shape, there);
	case OC_COLL_REDUCE_SCATTER:
		return oc_coll_reduce_scatter_between(shape, there, blocks);
	default:
		return NULL;
	}
}

/* Beside the shape, a key has one or two layouts where there are blocks of their own lengths, of
 * two arrays each, and one array more where there are two groups. */
static struct oc_plan *generate(const struct oc_plan_key *key)
{
	const struct oc_shape *shape = &key->shape;
	const struct oc_blocks out = {.len = key->array[0], .off = key->array[1]};
	const struct oc_blocks in = {.len = key->array[2], .off = key->array[3]};

	if (key->narrays % 2)
		return generate_between(shape, key->array[key->narrays - 1], &out);
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
	case OC_COLL_REDUCE_SCATTER:
		return oc_coll_reduce_scatter(shape, &out);
	case OC_COLL_SCAN:
		return oc_coll_scan(shape);
	case OC_COLL_EXSCAN:
		return oc_coll_exscan(shape);
	case OC_COLL_BARRIER:
		return oc_coll_barrier(shape);
	case OC_COLL_SCATTERV:
		return oc_coll_scatterv(shape, &out);
	case OC_COLL_GATHERV:
		return oc_coll_gatherv(shape, &out);
	case OC_COLL_ALLGATHERV:
		return oc_coll_allgatherv(shape, &out);
	case OC_COLL_ALLTOALLV:
	case OC_COLL_ALLTOALLW:
	case OC_COLL_NEIGHBOR_ALLGATHER:
	case OC_COLL_NEIGHBOR_ALLGATHERV:
	case OC_COLL_NEIGHBOR_ALLTOALL:
	case OC_COLL_NEIGHBOR_ALLTOALLV:
	case OC_COLL_NEIGHBOR_ALLTOALLW:
		return oc_coll_alltoallv(shape, &out, &in);
	default:
		return NULL;
	}
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
	case OC_COLL_ALLTOALLW:
	case OC_COLL_NEIGHBOR_ALLGATHER:
	case OC_COLL_NEIGHBOR_ALLGATHERV:
	case OC_COLL_NEIGHBOR_ALLTOALL:
	case OC_COLL_NEIGHBOR_ALLTOALLV:
	case OC_COLL_NEIGHBOR_ALLTOALLW:
	case OC_COLL_GATHER:
	case OC_COLL_GATHERV:
		return true;
	default:
		return false;
	}
}

static int decline(struct oc_comm *oc, int failure)
{
	oc_exec_decline(oc->group, oc_failure_of_code(failure));
	return failure;
}

/*
 * A program may send before a barrier, and look for the message once after it. Where the MPI's
 * barriers come behind its messages on the same way, that has been found: so what is under way
 * is taken in here, too. A look moves a message or more, and costs 10 to 30 ns, which calls that
 * move data, and are no barrier by the standard, are spared.
 */
static void catch_up(const struct oc_comm *oc)
{
	int looks = oc_abi_probe_moves ? 1 : oc->size - 1;

	for (int i = 0; i < looks; i++)
		oc->group->wait.progress();
}

static int run(struct oc_comm *oc, const struct oc_plan_key *key, struct oc_bind *bind)
{
	const struct oc_plan *plan = oc_plan_cache_get(&oc->group->plans, key, generate);
	int err;

	if (!plan)
		return decline(oc, MPI_ERR_NO_MEM);
	bind->call = reads_by_call(&plan->shape);
	err = oc_exec_inline(oc->group, plan, bind);
	if (!err && plan->shape.coll == OC_COLL_BARRIER)
		catch_up(oc);
	return err;
}

int oc_serve(struct oc_comm *oc, int prepared, const struct oc_shape *shape, struct oc_bind *bind)
{
	if (prepared)
		return decline(oc, prepared);
	/* A Bcast's root writes nothing. */
	bind->recv_whole = shape->coll != OC_COLL_BCAST || shape->rank != shape->root;
	return run(oc, &(struct oc_plan_key){.shape = *shape}, bind);
}

static void add(struct oc_plan_key *key, const struct oc_blocks *blocks)
{
	if (blocks) {
		key->array[key->narrays++] = blocks->len;
		key->array[key->narrays++] = blocks->off;
	}
}

int oc_serve_blocks(struct oc_comm *oc, int prepared, const struct oc_shape *shape,
		    const struct oc_blocks *out, const struct oc_blocks *in, struct oc_bind *bind)
{
	struct oc_plan_key key = {0};

	if (prepared)
		return decline(oc, prepared);
	key.shape = *shape;
	add(&key, out);
	add(&key, in);
	return run(oc, &key, bind);
}

int oc_serve_between(struct oc_comm *oc, int prepared, const struct oc_shape *shape,
		     const uint64_t *there, const struct oc_blocks *blocks, struct oc_bind *bind)
{
	struct oc_plan_key key = {0};

	if (prepared)
		return decline(oc, prepared);
	key.shape = *shape;
	add(&key, blocks);
	key.array[key.narrays++] = there;
	bind->recv_whole = true;
	return run(oc, &key, bind);
}
