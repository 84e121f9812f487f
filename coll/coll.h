/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_COLL_H
#define OC_COLL_H

/*
 * Plan generators, one file a collective. Pure: no process, no MPI, no I/O; the
 * same shape gives the same plan. Each returns a plan owned by the caller, or
 * NULL without memory. Together the plans of all ranks move every byte once
 * and never wait in a circle (tests/unit/coll/test_coll.c runs them all).
 *
 * Slots, n = shape->size, B = shape->bytes:
 *   bcast           send B at the root, recv B: the root's is its send slot
 *   scatter         send n*B at the root, recv B; in_place: the root keeps its block
 *   gather          send B, recv n*B at the root; in_place: the root's block is there
 *   allgather       send B, recv n*B; in_place: own block is there
 *   alltoall        send n*B, recv n*B
 *   reduce          send B, recv B at the root
 *   allreduce       send B, recv B
 *   reduce_scatter  send sum(len), recv len[rank]
 *   scan            send B, recv B
 *   exscan          send B, recv B but at rank 0, which has none
 * In reductions in_place means that the receive slot is the send slot. Reduce
 * and allreduce want a scratch slot of the longest slice, scan and exscan one of
 * oc_coll_scan_scratch().
 */

#include <stdint.h>

#include "plan/plan.h"

enum oc_coll {
	OC_COLL_NONE,
	OC_COLL_BCAST,
	OC_COLL_SCATTER,
	OC_COLL_GATHER,
	OC_COLL_ALLGATHER,
	OC_COLL_ALLTOALL,
	OC_COLL_REDUCE,
	OC_COLL_ALLREDUCE,
	OC_COLL_REDUCE_SCATTER,
	OC_COLL_BARRIER,
	OC_COLL_SCATTERV,
	OC_COLL_GATHERV,
	OC_COLL_ALLGATHERV,
	OC_COLL_ALLTOALLV,
	OC_COLL_ALLTOALLW, /* its plans are those of alltoallv */
	OC_COLL_SCAN,
	OC_COLL_EXSCAN,
	OC_COLL_NEIGHBOR_ALLGATHER, /* from here on as alltoallv, where most pairs have no bytes */
	OC_COLL_NEIGHBOR_ALLGATHERV,
	OC_COLL_NEIGHBOR_ALLTOALL,
	OC_COLL_NEIGHBOR_ALLTOALLV,
	OC_COLL_NEIGHBOR_ALLTOALLW,
	OC_COLL_COUNT
};

/* Blocks that differ in length: [size] bytes each, and where they begin. */
struct oc_blocks {
	const uint64_t *len;
	const uint64_t *off;
};

/* Where slice @k of @bytes begins when shape->size ranks share the work: on a
 * cache line if slices are long enough, else on a granule. bytes for k = size. */
uint64_t oc_coll_slice(const struct oc_shape *shape, uint64_t bytes, uint32_t k);

/* No slice is longer than this. */
uint64_t oc_coll_slice_max(const struct oc_shape *shape, uint64_t bytes);

/* What scan and exscan put aside. */
uint64_t oc_coll_scan_scratch(const struct oc_shape *shape);

/* The plan of a shape that has eager set: bcast to reduce in the list above, scan and exscan. */
struct oc_plan *oc_coll_eager(const struct oc_shape *shape);

/* The most bytes that one rank stages and copies in the eager plan of a shape:
 * what is saved in waiting must pay for them, and the staged ones must fit
 * OC_EAGER_MAX. UINT64_MAX where there is no such plan. */
uint64_t oc_coll_eager_bytes(const struct oc_shape *shape);

struct oc_plan *oc_coll_bcast(const struct oc_shape *shape);
struct oc_plan *oc_coll_scatter(const struct oc_shape *shape);
struct oc_plan *oc_coll_gather(const struct oc_shape *shape);
struct oc_plan *oc_coll_allgather(const struct oc_shape *shape);
struct oc_plan *oc_coll_alltoall(const struct oc_shape *shape);
struct oc_plan *oc_coll_reduce(const struct oc_shape *shape);
struct oc_plan *oc_coll_allreduce(const struct oc_shape *shape);
struct oc_plan *oc_coll_scan(const struct oc_shape *shape);
struct oc_plan *oc_coll_exscan(const struct oc_shape *shape);
struct oc_plan *oc_coll_barrier(const struct oc_shape *shape);

/* Every rank knows all blocks of the send slot. Needs a scratch slot of
 * len[rank] when in_place. */
struct oc_plan *oc_coll_reduce_scatter(const struct oc_shape *shape, const struct oc_blocks *in);

/*
 * Between two groups, whose ranks are those of the shape: @there[r] is 1 for those of the other
 * group than this rank's. In Reduce the root's has no other rank with a plan. Slots are those of
 * one group, but for the root's, which has no send slot, and scratch slots: those of Reduce (where
 * it has none) and Allreduce are of the longest slice when the ranks of this group share the
 * vector, Reduce_scatter has none. @in: blocks of this rank's group, as they are folded for it.
 */
struct oc_plan *oc_coll_reduce_between(const struct oc_shape *shape, const uint64_t *there);
struct oc_plan *oc_coll_allreduce_between(const struct oc_shape *shape, const uint64_t *there);
struct oc_plan *oc_coll_reduce_scatter_between(const struct oc_shape *shape, const uint64_t *there,
					       const struct oc_blocks *in);

/* Every rank knows all blocks; @out is this rank's own layout of them. */
struct oc_plan *oc_coll_allgatherv(const struct oc_shape *shape, const struct oc_blocks *out);

/*
 * Between the root and each other rank with len[r] > 0. The root passes its
 * layout and has off[], len[] as its scratch slot; the others pass no layout, their length is
 * their shape's bytes. Pairs whose ends have different lengths do nothing.
 */
struct oc_plan *oc_coll_scatterv(const struct oc_shape *shape, const struct oc_blocks *blocks);
struct oc_plan *oc_coll_gatherv(const struct oc_shape *shape, const struct oc_blocks *blocks);

/* Between each pair with a length, the same at both ends. @out: what goes to each
 * rank, @in: where what comes from each goes. The scratch slot is off[], len[] of @out and
 * len[] of @in. */
struct oc_plan *oc_coll_alltoallv(const struct oc_shape *shape, const struct oc_blocks *out,
				  const struct oc_blocks *in);

#endif
