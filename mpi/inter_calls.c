// SPDX-License-Identifier: BSD-3-Clause
/*
 * Collectives on intercommunicators, each as the exchange that it is. The MPI gets the calls that
 * are not served, and of those that have blocks of their own lengths what is left. A rank that has
 * no part (MPI_PROC_NULL) always calls it: there that is nobody else's business.
 */
#include "inter.h"

#include "failure.h"
#include "pass.h"

static struct oc_exchange_side one_block(const void *user, MPI_Count count, MPI_Datatype type)
{
	return (struct oc_exchange_side){.user = user, .count = count, .type = type};
}

static struct oc_exchange_side like_blocks(const void *user, MPI_Count count, MPI_Datatype type)
{
	return (struct oc_exchange_side){
		.user = user, .count = count, .stride = count, .type = type};
}

static struct oc_exchange_side blocks(const void *user, struct oc_counts counts,
				      struct oc_counts displs, MPI_Datatype type)
{
	return (struct oc_exchange_side){
		.user = user, .each = true, .counts = counts, .displs = displs, .type = type};
}

static struct oc_exchange_side typed_blocks(const void *user, struct oc_counts counts,
					    struct oc_counts displs, const MPI_Datatype *types)
{
	return (struct oc_exchange_side){.user = user,
					 .each = true,
					 .typed = true,
					 .counts = counts,
					 .displs = displs,
					 .types = types};
}

/* A call of which the MPI gets all or nothing. True if that is nothing, and the call ends with
 * *@err. */
static bool serve_whole(struct oc_inter *inter, struct oc_call *call, enum oc_inter_way way,
			const struct oc_exchange *it, int *err)
{
	struct oc_inter_edges edges;

	if (!oc_inter_begin(inter, call, way, it, &edges))
		return false;
	*err = oc_failure_end(&inter->oc, call->comm, call->coll,
			      oc_inter_serve(inter, way, it, &edges));
	return true;
}

/* One of which it gets what is left, unless the call ends with @failure at once. */
struct parts {
	struct oc_inter_edges edges;
	bool served; /* or all is left */
	int failure;
};

static bool serve_parts(struct parts *parts, struct oc_inter *inter, struct oc_call *call,
			enum oc_inter_way way, const struct oc_exchange *it)
{
	parts->served = oc_inter_begin(inter, call, way, it, &parts->edges);
	parts->failure = parts->served ? oc_inter_serve(inter, way, it, &parts->edges) : 0;
	return !parts->failure ||
	       oc_failure_goes_on(&inter->oc, call->comm, call->coll, parts->failure);
}

/* @err: of the MPI's part. */
static int end_parts(const struct parts *parts, const struct oc_inter *inter,
		     const struct oc_call *call, int err)
{
	return err ? err : oc_failure_end(&inter->oc, call->comm, call->coll, parts->failure);
}

/* The counts that the MPI is to get of those that the call has for each block. */
static struct oc_counts left_to_send(const struct parts *parts, const struct oc_inter *inter,
				     struct oc_counts all)
{
	return parts->served && parts->edges.out.n ? (struct oc_counts){&inter->rest.out, all.large}
						   : all;
}

static struct oc_counts left_to_receive(const struct parts *parts, const struct oc_inter *inter,
					struct oc_counts all)
{
	return parts->served && parts->edges.in.n ? (struct oc_counts){&inter->rest.in, all.large}
						  : all;
}

int oc_inter_bcast(struct oc_inter *inter, struct oc_call *call, bool large, void *buffer,
		   MPI_Count count, MPI_Datatype type)
{
	struct oc_exchange it = {.large = large, .alike = true};
	int err;

	if (call->root == MPI_ROOT)
		it.send = one_block(buffer, count, type);
	else
		it.recv = one_block(buffer, count, type);
	return serve_whole(inter, call, OC_INTER_FROM_ROOT, &it, &err)
		       ? err
		       : oc_pass_bcast(large, buffer, count, type, call->root, call->comm);
}

int oc_inter_scatter(struct oc_inter *inter, struct oc_call *call, bool large, const void *send,
		     MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount,
		     MPI_Datatype rtype)
{
	struct oc_exchange it = {.large = large, .alike = true};
	int err;

	if (call->root == MPI_ROOT)
		it.send = like_blocks(send, scount, stype);
	else
		it.recv = one_block(recv, rcount, rtype);
	return serve_whole(inter, call, OC_INTER_FROM_ROOT, &it, &err)
		       ? err
		       : oc_pass_scatter(large, send, scount, stype, recv, rcount, rtype,
					 call->root, call->comm);
}

int oc_inter_scatterv(struct oc_inter *inter, struct oc_call *call, const void *send,
		      struct oc_counts counts, struct oc_counts displs, MPI_Datatype stype,
		      void *recv, MPI_Count rcount, MPI_Datatype rtype)
{
	struct oc_exchange it = {.large = counts.large};
	struct parts parts;
	int err = MPI_SUCCESS;

	if (call->root == MPI_ROOT)
		it.send = blocks(send, counts, displs, stype);
	else
		it.recv = one_block(recv, rcount, rtype);
	if (serve_parts(&parts, inter, call, OC_INTER_FROM_ROOT, &it)) {
		if (parts.served && parts.edges.in.n)
			rcount = oc_counts_at(left_to_receive(&parts, inter, counts), 0);
		err = oc_pass_scatterv(send, left_to_send(&parts, inter, counts), displs, stype,
				       recv, rcount, rtype, call->root, call->comm);
	}
	return end_parts(&parts, inter, call, err);
}

int oc_inter_gather(struct oc_inter *inter, struct oc_call *call, bool large, const void *send,
		    MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount,
		    MPI_Datatype rtype)
{
	struct oc_exchange it = {.large = large, .alike = true};
	int err;

	if (call->root == MPI_ROOT)
		it.recv = like_blocks(recv, rcount, rtype);
	else
		it.send = one_block(send, scount, stype);
	return serve_whole(inter, call, OC_INTER_TO_ROOT, &it, &err)
		       ? err
		       : oc_pass_gather(large, send, scount, stype, recv, rcount, rtype, call->root,
					call->comm);
}

int oc_inter_gatherv(struct oc_inter *inter, struct oc_call *call, const void *send,
		     MPI_Count scount, MPI_Datatype stype, void *recv, struct oc_counts counts,
		     struct oc_counts displs, MPI_Datatype rtype)
{
	struct oc_exchange it = {.large = counts.large};
	struct parts parts;
	int err = MPI_SUCCESS;

	if (call->root == MPI_ROOT)
		it.recv = blocks(recv, counts, displs, rtype);
	else
		it.send = one_block(send, scount, stype);
	if (serve_parts(&parts, inter, call, OC_INTER_TO_ROOT, &it)) {
		if (parts.served && parts.edges.out.n)
			scount = oc_counts_at(left_to_send(&parts, inter, counts), 0);
		err = oc_pass_gatherv(send, scount, stype, recv,
				      left_to_receive(&parts, inter, counts), displs, rtype,
				      call->root, call->comm);
	}
	return end_parts(&parts, inter, call, err);
}

int oc_inter_allgather(struct oc_inter *inter, struct oc_call *call, bool large, const void *send,
		       MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount,
		       MPI_Datatype rtype)
{
	struct oc_exchange it = {.send = one_block(send, scount, stype),
				 .recv = like_blocks(recv, rcount, rtype),
				 .large = large,
				 .alike = true};
	int err;

	return serve_whole(inter, call, OC_INTER_ALL, &it, &err)
		       ? err
		       : oc_pass_allgather(large, send, scount, stype, recv, rcount, rtype,
					   call->comm);
}

int oc_inter_allgatherv(struct oc_inter *inter, struct oc_call *call, const void *send,
			MPI_Count scount, MPI_Datatype stype, void *recv, struct oc_counts counts,
			struct oc_counts displs, MPI_Datatype rtype)
{
	struct oc_exchange it = {.send = one_block(send, scount, stype),
				 .recv = blocks(recv, counts, displs, rtype),
				 .large = counts.large};
	struct parts parts;
	int err = MPI_SUCCESS;

	if (serve_parts(&parts, inter, call, OC_INTER_ALL, &it)) {
		if (parts.served)
			scount = oc_exchange_left(&it, &inter->rest, &parts.edges.out);
		err = oc_pass_allgatherv(send, scount, stype, recv,
					 left_to_receive(&parts, inter, counts), displs, rtype,
					 call->comm);
	}
	return end_parts(&parts, inter, call, err);
}

int oc_inter_alltoall(struct oc_inter *inter, struct oc_call *call, bool large, const void *send,
		      MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount,
		      MPI_Datatype rtype)
{
	struct oc_exchange it = {.send = like_blocks(send, scount, stype),
				 .recv = like_blocks(recv, rcount, rtype),
				 .large = large,
				 .alike = true};
	int err;

	return serve_whole(inter, call, OC_INTER_ALL, &it, &err)
		       ? err
		       : oc_pass_alltoall(large, send, scount, stype, recv, rcount, rtype,
					  call->comm);
}

int oc_inter_alltoallv(struct oc_inter *inter, struct oc_call *call, const void *send,
		       struct oc_counts scounts, struct oc_counts sdispls, MPI_Datatype stype,
		       void *recv, struct oc_counts rcounts, struct oc_counts rdispls,
		       MPI_Datatype rtype)
{
	struct oc_exchange it = {.send = blocks(send, scounts, sdispls, stype),
				 .recv = blocks(recv, rcounts, rdispls, rtype),
				 .large = scounts.large};
	struct parts parts;
	int err = MPI_SUCCESS;

	if (serve_parts(&parts, inter, call, OC_INTER_ALL, &it))
		err = oc_pass_alltoallv(send, left_to_send(&parts, inter, scounts), sdispls, stype,
					recv, left_to_receive(&parts, inter, rcounts), rdispls,
					rtype, call->comm);
	return end_parts(&parts, inter, call, err);
}

int oc_inter_alltoallw(struct oc_inter *inter, struct oc_call *call, const void *send,
		       struct oc_counts scounts, struct oc_counts sdispls,
		       const MPI_Datatype *stypes, void *recv, struct oc_counts rcounts,
		       struct oc_counts rdispls, const MPI_Datatype *rtypes)
{
	struct oc_exchange it = {.send = typed_blocks(send, scounts, sdispls, stypes),
				 .recv = typed_blocks(recv, rcounts, rdispls, rtypes),
				 .large = scounts.large};
	struct parts parts;
	int err = MPI_SUCCESS;

	if (serve_parts(&parts, inter, call, OC_INTER_ALL, &it))
		err = oc_pass_alltoallw(send, left_to_send(&parts, inter, scounts), sdispls, stypes,
					recv, left_to_receive(&parts, inter, rcounts), rdispls,
					rtypes, call->comm);
	return end_parts(&parts, inter, call, err);
}
