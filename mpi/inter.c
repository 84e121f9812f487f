// SPDX-License-Identifier: BSD-3-Clause
#include "inter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "adapter.h"

static int keyval;

/* What was found last by this thread: handles are used again after MPI_Comm_free. */
static _Thread_local struct {
	MPI_Comm comm;
	struct oc_inter *inter; /* NULL: none */
	unsigned int freed;
} last;

static struct oc_inter *inter_create(int local, int remote)
{
	size_t both = (size_t)local + (size_t)remote;
	struct oc_inter *inter = calloc(1, sizeof(*inter) + both * sizeof(*inter->oc.there) +
						   2 * (size_t)remote * sizeof(int));

	if (!inter)
		return NULL;
	inter->oc.size = local + remote;
	inter->oc.outcome = OC_OUTCOME_EARLY;
	inter->local = local;
	inter->remote = remote;
	inter->oc.there = (uint64_t *)(inter + 1);
	inter->rank = (int *)(inter->oc.there + both);
	inter->block = inter->rank + remote;
	for (int i = 0; i < remote; i++)
		inter->block[i] = i;
	oc_adapter.inter = true;
	return inter;
}

/* A duplicate has the same ranks, and gets a group of its own. */
static int copied(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
	const struct oc_inter *from = in;
	struct oc_inter *to = inter_create(from->local, from->remote);

	*flag = to != NULL;
	*(void **)out = to;
	return to ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int deleted(MPI_Comm comm, int key, void *value, void *extra)
{
	struct oc_inter *inter = value;

	__atomic_add_fetch(&oc_comm_freed, 1, __ATOMIC_RELEASE);
	/* A communicator the program never freed may outlive the node, and the key. */
	if (inter->oc.group && oc_adapter.node && key == keyval)
		oc_group_destroy(inter->oc.group);
	free(inter);
	return MPI_SUCCESS;
}

int oc_inter_setup(void)
{
	return pmpi()->Comm_create_keyval(copied, deleted, &keyval, NULL) ? -EIO : 0;
}

void oc_inter_teardown(void)
{
	int key = keyval;

	oc_adapter.inter = false;
	__atomic_add_fetch(&oc_comm_freed, 1, __ATOMIC_RELEASE);
	pmpi()->Comm_free_keyval(&key);
}

int oc_inter_made(MPI_Comm comm)
{
	struct oc_inter *inter;
	int local, remote, is_inter;

	/* All its ranks find the same. */
	if (!oc_adapter.active || comm == oc_abi.comm_null ||
	    pmpi()->Comm_test_inter(comm, &is_inter) || !is_inter ||
	    pmpi()->Comm_size(comm, &local) || pmpi()->Comm_remote_size(comm, &remote) ||
	    local + remote > OC_MAX_RANKS || !oc_comm_is_here(pmpi()->Comm_group, comm, local) ||
	    !oc_comm_is_here(pmpi()->Comm_remote_group, comm, remote))
		return MPI_SUCCESS;
	inter = inter_create(local, remote);
	if (inter && !pmpi()->Comm_set_attr(comm, keyval, inter))
		return MPI_SUCCESS;
	/* The others would wait for this rank, and nobody would know for what. */
	free(inter);
	fprintf(stderr, "onecopy: out of memory for a communicator\n");
	pmpi()->Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
	return MPI_ERR_NO_MEM;
}

struct oc_inter *oc_inter_find(MPI_Comm comm)
{
	unsigned int now = __atomic_load_n(&oc_comm_freed, __ATOMIC_ACQUIRE);
	struct oc_inter *inter = NULL;
	int found = 0;

	if (!oc_adapter.active || !comm || comm == oc_abi.comm_null || oc_comm_is_last(comm))
		return NULL;
	if (last.comm == comm && last.freed == now)
		return last.inter;
	if (oc_comm_is_freed(comm) || pmpi()->Comm_get_attr(comm, keyval, &inter, &found))
		return NULL;
	last.comm = comm;
	last.inter = found ? inter : NULL;
	last.freed = now;
	return last.inter;
}

/* Collective over both groups. */
static void create_group(MPI_Comm comm, struct oc_inter *inter)
{
	struct oc_comm *oc = &inter->oc;
	MPI_Comm both;
	int rank;

	oc->tried = true;
	oc->outcome = OC_OUTCOME_SETUP;
	/* Which group is first is the MPI's choice, and the ranks' order in each is kept. */
	if (pmpi()->Comm_rank(comm, &rank) || pmpi()->Intercomm_merge(comm, 0, &both))
		return;
	if (!pmpi()->Comm_rank(both, &oc->rank)) {
		for (int i = 0; i < inter->remote; i++) {
			inter->rank[i] = i + (oc->rank == rank ? inter->local : 0);
			oc->there[inter->rank[i]] = 1;
		}
		oc_comm_create_group(both, oc);
	}
	pmpi()->Comm_free(&both);
}

/* @n of the other group's ranks, from @first on. */
static struct oc_edges edges_to(const struct oc_inter *inter, int first, int n)
{
	return (struct oc_edges){
		.degree = n, .n = n, .rank = inter->rank + first, .block = inter->block};
}

bool oc_inter_count(struct oc_inter *inter, struct oc_call *call)
{
	struct oc_comm *oc = &inter->oc;

	if (!oc->tried) {
		oc->credit += OC_CREDIT_CALL;
		if (oc->credit >= oc_adapter.agreed.credit)
			create_group(call->comm, inter);
		else
			oc_comm_note(call, oc, OC_CREDIT_CALL);
	}
	call->outcome = oc->outcome;
	return oc->group != NULL;
}

bool oc_inter_has_part(const struct oc_inter *inter, struct oc_call *call)
{
	int root = call->root;

	if (root == MPI_ROOT || (root >= 0 && root < inter->remote))
		return true;
	/* The MPI is to say what is wrong. */
	call->outcome = root == MPI_PROC_NULL ? OC_OUTCOME_EMPTY : OC_OUTCOME_INVALID;
	return false;
}

/* False at a rank that has no part in the call. */
static bool find_edges(const struct oc_inter *inter, struct oc_call *call, enum oc_inter_way way,
		       struct oc_inter_edges *edges)
{
	struct oc_edges *from_here = way == OC_INTER_TO_ROOT ? &edges->in : &edges->out;
	struct oc_edges *to_here = way == OC_INTER_TO_ROOT ? &edges->out : &edges->in;

	edges->out = edges->in = (struct oc_edges){0};
	if (way != OC_INTER_ALL && !oc_inter_has_part(inter, call))
		return false;
	if (way == OC_INTER_ALL || call->root == MPI_ROOT)
		*from_here = edges_to(inter, 0, inter->remote);
	else
		*to_here = edges_to(inter, call->root, 1);
	if (way == OC_INTER_ALL)
		*to_here = *from_here;
	return true;
}

static struct oc_exchange_edges ends_of(const struct oc_inter_edges *edges,
					const struct oc_exchange *it)
{
	enum oc_coll like = it->alike	     ? OC_COLL_NEIGHBOR_ALLTOALL
			    : it->recv.typed ? OC_COLL_NEIGHBOR_ALLTOALLW
					     : OC_COLL_NEIGHBOR_ALLTOALLV;

	return (struct oc_exchange_edges){
		.out = &edges->out, .in = &edges->in, .min = oc_adapter.agreed.min[like]};
}

bool oc_inter_begin(struct oc_inter *inter, struct oc_call *call, enum oc_inter_way way,
		    const struct oc_exchange *it, struct oc_inter_edges *edges)
{
	bool part = find_edges(inter, call, way, edges), has_group;
	struct oc_exchange_edges ends = ends_of(edges, it);

	if (call->outcome == OC_OUTCOME_INVALID ||
	    oc_comm_refuses(call, part && oc_exchange_is_wrong(it, edges->out.n, edges->in.n)))
		return false;
	has_group = oc_inter_count(inter, call);
	if (!part)
		call->outcome = OC_OUTCOME_EMPTY;
	if (part && call->since)
		oc_exchange_measure(call, it, edges->out.n, edges->in.n, ends.min);
	if (has_group && part && oc_exchange_serves(call, it, &ends))
		return true;
	if (has_group)
		oc_comm_leave(&inter->oc);
	return false;
}

int oc_inter_serve(struct oc_inter *inter, enum oc_inter_way way, const struct oc_exchange *it,
		   const struct oc_inter_edges *edges)
{
	struct oc_exchange_edges ends = ends_of(edges, it);

	return oc_exchange_serve(&inter->oc,
				 way == OC_INTER_TO_ROOT ? OC_COLL_GATHERV : OC_COLL_ALLTOALLV,
				 MPI_SUCCESS, &ends, it, &inter->rest);
}

OC_EXPORT int PMPI_Intercomm_create(MPI_Comm local, int local_leader, MPI_Comm peer,
				    int remote_leader, int tag, MPI_Comm *comm)
{
	int err = pmpi()->Intercomm_create(local, local_leader, peer, remote_leader, tag, comm);

	return err ? err : oc_inter_made(*comm);
}

OC_EXPORT int MPI_Intercomm_create(MPI_Comm local, int local_leader, MPI_Comm peer,
				   int remote_leader, int tag, MPI_Comm *comm)
{
	return oc_tool()->Intercomm_create
		       ? oc_tool()->Intercomm_create(local, local_leader, peer, remote_leader, tag,
						     comm)
		       : PMPI_Intercomm_create(local, local_leader, peer, remote_leader, tag, comm);
}
