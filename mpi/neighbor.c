// SPDX-License-Identifier: BSD-3-Clause
#include "neighbor.h"

#include "adapter.h"
#include "failure.h"
#include "topology.h"
#include "vbuffer.h"

static enum oc_edge_order order_of(enum oc_coll coll)
{
	switch (coll) {
	case OC_COLL_NEIGHBOR_ALLTOALLV:
		return OC_EDGES_ALLTOALLV;
	case OC_COLL_NEIGHBOR_ALLTOALLW:
		return OC_EDGES_ALLTOALLW;
	default:
		return OC_EDGES_ALLTOALL;
	}
}

/* NULL if the MPI serves such calls, on every rank alike. */
static const struct oc_topology *topology_of(struct oc_call *call, struct oc_comm *oc,
					     MPI_Comm comm, enum oc_edge_order order)
{
	if (!oc->topology || !oc->topology->known[order])
		oc->topology = oc_topology_ask(comm, oc->rank, oc->size, oc->topology, order);
	call->outcome = oc->topology->good[order] ? OC_OUTCOME_SERVED : OC_OUTCOME_SETUP;
	return oc->topology->good[order] ? oc->topology : NULL;
}

static struct oc_exchange_edges edges_of(const struct oc_topology *topology, enum oc_coll coll)
{
	return (struct oc_exchange_edges){
		.out = &topology->out,
		.in = &topology->in[order_of(coll)],
		.several = topology->several,
		.min = oc_adapter.agreed.min[coll],
	};
}

/* A communicator without a topology is, too. */
static bool is_wrong(const struct oc_comm *oc, const struct oc_exchange *it, MPI_Comm comm)
{
	const struct oc_topology *topology = oc->topology;
	int out, in;

	if (topology && topology->out.degree + topology->in[OC_EDGES_ALLTOALL].degree) {
		out = topology->out.degree;
		in = topology->in[OC_EDGES_ALLTOALL].degree;
	} else if (!oc_topology_degrees(comm, &out, &in)) {
		return true;
	}
	return oc_exchange_is_wrong(it, out, in);
}

/* Only where somebody asked. */
static void measure(struct oc_call *call, const struct oc_exchange *it)
{
	int out, in;

	if (oc_adapter.knows_types && call->comm && call->comm != oc_abi.comm_null &&
	    oc_topology_degrees(call->comm, &out, &in))
		oc_exchange_measure(call, it, out, in, oc_adapter.agreed.min[call->coll]);
}

struct oc_comm *oc_neighbor_begin(struct oc_call *call, const struct oc_exchange *it, MPI_Comm comm)
{
	struct oc_comm *oc = oc_comm_look(call, comm);
	const struct oc_topology *topology = NULL;
	struct oc_exchange_edges edges;

	oc = oc_comm_join(call, comm, oc, OC_CREDIT_CALL, oc && is_wrong(oc, it, comm));
	if (oc)
		topology = topology_of(call, oc, comm, order_of(call->coll));
	if (call->since)
		measure(call, it);
	if (!topology)
		return NULL;
	edges = edges_of(topology, call->coll);
	return oc_exchange_serves(call, it, &edges) ? oc : oc_comm_leave(oc);
}

/* What one of two ranks sends need not be as long as what it gets; of more all is, for each sends
 * as much as any other gets. A rank that has neighbours on one side alone may give anything for the
 * other. */
static bool are_alike(const struct oc_comm *oc, const struct oc_exchange *it)
{
	const struct oc_topology *topology = oc->topology;

	return oc->size == 2 || !topology->out.n || !topology->in[OC_EDGES_ALLTOALL].n ||
	       oc_block_bytes(it->send.count, it->send.type) ==
		       oc_block_bytes(it->recv.count, it->recv.type);
}

int oc_neighbor_serve(struct oc_comm *oc, enum oc_coll coll, const struct oc_exchange *it,
		      struct oc_exchange_rest *rest)
{
	struct oc_exchange_edges edges = edges_of(oc->topology, coll);
	int prepared = it->alike && !are_alike(oc, it) ? MPI_ERR_TRUNCATE : MPI_SUCCESS;

	return oc_exchange_serve(oc, coll, prepared, &edges, it, rest);
}

static int pass_alike(const struct oc_exchange *it, MPI_Count sends, MPI_Count receives,
		      MPI_Comm comm, oc_neighbor_pass *pass)
{
	return pass(it->large, it->send.user, sends, it->send.type,
		    (void *)(uintptr_t)it->recv.user, receives, it->recv.type, comm);
}

static OC_APART int serve_alike(struct oc_comm *oc, enum oc_coll coll, const struct oc_exchange *it,
				MPI_Comm comm, oc_neighbor_pass *pass)
{
	struct oc_exchange_rest rest;
	int failure = oc_neighbor_serve(oc, coll, it, &rest), err = MPI_SUCCESS;

	if (!oc->topology->connected && oc_failure_goes_on(oc, comm, coll, failure))
		err = pass_alike(it, 0, 0, comm, pass);
	return err ? err : oc_failure_end(oc, comm, coll, failure);
}

int oc_neighbor_alike(enum oc_coll coll, const struct oc_exchange *it, MPI_Comm comm,
		      oc_neighbor_pass *pass)
{
	struct oc_call call = oc_call_begin(coll, 0, comm);
	struct oc_comm *oc = oc_neighbor_begin(&call, it, comm);
	int err = oc ? serve_alike(oc, coll, it, comm, pass)
		     : pass_alike(it, it->send.count, it->recv.count, comm, pass);

	return oc_call_end(&call, err);
}
