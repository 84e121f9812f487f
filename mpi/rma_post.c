// SPDX-License-Identifier: BSD-3-Clause
/*
 * The n-th exposure epoch that a target begins with a rank in its group is the one that the n-th
 * access epoch of that rank with this target in its group is for (MPI 4.1, 12.5.2): so both count,
 * the target where its peers see it. That an access epoch is over the MPI tells the target, after
 * the transfers of this rank.
 */
#include "rma_post.h"

/* Calls @each for the window's ranks of this node in a group. */
static void for_each(MPI_Win win, MPI_Group group,
		     void (*each)(struct oc_rma *rma, struct oc_rma_target *target))
{
	struct oc_rma *rma = oc_rma_find(win);
	struct oc_rma_target *target;
	int size, world;

	if (!rma || pmpi()->Group_size(group, &size))
		return;
	for (int i = 0; i < size; i++) {
		if (pmpi()->Group_translate_ranks(group, 1, &i, oc_adapter.world_group, &world) ||
		    world < 0 || oc_adapter.node_of_world[world] < 0)
			continue;
		target = oc_rma_target_there(rma, oc_adapter.node_of_world[world]);
		if (target)
			each(rma, target);
	}
}

static void post(struct oc_rma *rma, struct oc_rma_target *target)
{
	atomic_fetch_add_explicit(&rma->posts[target->there], 1, memory_order_release);
}

static void start(struct oc_rma *rma, struct oc_rma_target *target)
{
	target->starts++;
	target->started = true;
}

static void set_epoch(MPI_Win win, enum oc_rma_epoch epoch)
{
	struct oc_rma *rma = oc_rma_find(win);

	if (!rma)
		return;
	atomic_store(&rma->epoch, epoch);
	for (int i = 0; i < rma->ntargets && epoch == OC_RMA_NONE; i++)
		rma->targets[i].started = false;
}

OC_EXPORT int PMPI_Win_post(MPI_Group group, int assert, MPI_Win win)
{
	int err = pmpi()->Win_post(group, assert, win);

	if (!err)
		for_each(win, group, post);
	return err;
}

OC_EXPORT int PMPI_Win_start(MPI_Group group, int assert, MPI_Win win)
{
	int err = pmpi()->Win_start(group, assert, win);

	set_epoch(win, OC_RMA_NONE);
	if (!err) {
		for_each(win, group, start);
		set_epoch(win, OC_RMA_START);
	}
	return err;
}

OC_EXPORT int PMPI_Win_complete(MPI_Win win)
{
	set_epoch(win, OC_RMA_NONE);
	return pmpi()->Win_complete(win);
}

OC_EXPORT int MPI_Win_post(MPI_Group group, int assert, MPI_Win win)
{
	return oc_tool()->Win_post ? oc_tool()->Win_post(group, assert, win)
				   : PMPI_Win_post(group, assert, win);
}

OC_EXPORT int MPI_Win_start(MPI_Group group, int assert, MPI_Win win)
{
	return oc_tool()->Win_start ? oc_tool()->Win_start(group, assert, win)
				    : PMPI_Win_start(group, assert, win);
}

OC_EXPORT int MPI_Win_complete(MPI_Win win)
{
	return oc_tool()->Win_complete ? oc_tool()->Win_complete(win) : PMPI_Win_complete(win);
}
