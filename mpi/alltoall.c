// SPDX-License-Identifier: BSD-3-Clause
#include "alltoall.h"

#include <string.h>

#include "buffer.h"
#include "failure.h"
#include "inter.h"
#include "pairs.h"
#include "tune.h"
#include "vopen.h"

static int serve(struct oc_comm *oc, const void *send, MPI_Count scount, MPI_Datatype stype,
		 void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm, size_t bytes)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_ALLTOALL, 0, bytes);
	size_t n = (size_t)oc->size;
	bool in_place = send == MPI_IN_PLACE;
	struct oc_bind bind = {0};
	struct oc_buffer out = {0}, in = {0};
	int err, closed;

	shape.stream = oc_streams(bytes * n);
	/* In place, every block is read by one rank while another's is written
	 * over it: send from a copy. */
	if (!in_place && !oc_same_bytes(scount, stype, bytes))
		err = MPI_ERR_TRUNCATE;
	else
		err = in_place ? oc_buffer_copy(&out, recv, (size_t)rcount * n, rtype)
			       : oc_buffer_send(&out, send, (size_t)scount * n, stype);
	bind.send = out.at;
	bind.send_bytes = out.bytes;
	bind.send_layout = out.layout;
	if (!err)
		err = oc_buffer_recv(&in, recv, (size_t)rcount * n, rtype);
	bind.recv = in.at;
	bind.recv_bytes = in.bytes;
	bind.recv_layout = in.layout;
	err = oc_serve(oc, err, &shape, &bind);
	oc_buffer_close(&out, false);
	closed = oc_buffer_close(&in, !err);
	return oc_failure_end(oc, comm, OC_COLL_ALLTOALL, err ? err : closed);
}

/* Serves MPI_Alltoall: one block is large enough. */
static OC_BOTH int alltoall(bool large, const void *send, MPI_Count scount, MPI_Datatype stype,
			    void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_ALLTOALL, 0, comm);
	struct oc_inter *inter = oc_inter_get(comm);
	struct oc_comm *oc = NULL;
	size_t bytes;
	int err;

	if (!inter && oc_eligible(&call, rcount, rtype, &bytes))
		oc = oc_comm_get(&call, comm, bytes,
				 recv == MPI_IN_PLACE || oc_sent_wrong(send, scount, stype));
	if (inter)
		err = oc_inter_alltoall(inter, &call, large, send, scount, stype, recv, rcount,
					rtype);
	else if (oc)
		err = serve(oc, send, scount, stype, recv, rcount, rtype, comm, bytes);
	else
		err = oc_pass_alltoall(large, send, scount, stype, recv, rcount, rtype, comm);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Alltoall(const void *send, int scount, MPI_Datatype stype, void *recv,
			    int rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	return alltoall(false, send, scount, stype, recv, rcount, rtype, comm);
}

OC_EXPORT_LARGE int PMPI_Alltoall_c(const void *send, MPI_Count scount, MPI_Datatype stype,
				    void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	return pmpi()->Alltoall_c ? alltoall(true, send, scount, stype, recv, rcount, rtype, comm)
				  : oc_pass_refused(comm);
}

/* Both in any case: the MPI is to get what is left of both. */
static int open_both(struct oc_comm *oc, enum oc_coll coll, const struct oc_vector *send,
		     const struct oc_vector *recv, struct oc_vbuffer *out, struct oc_vbuffer *in)
{
	uint64_t min = oc_adapter.agreed.min[coll];
	int sends = send ? oc_vbuffer_open(out, send, min) : oc_vbuffer_open_apart(out, recv, min);
	int receives = oc_vbuffer_open(in, recv, min);

	return sends ? sends : receives;
}

/* In place the MPI has one count for both ends, and nothing to do with this rank's own block. */
static void join_rests(struct oc_vbuffer *out, struct oc_vbuffer *in)
{
	oc_vbuffer_set_rest(in, in->skip, 0);
	for (int i = 0; i < in->n; i++) {
		int64_t sends = oc_counts_at(oc_vbuffer_rest(out), i),
			receives = oc_counts_at(oc_vbuffer_rest(in), i);

		/* They differ where ranks gave different ones, which is an error. */
		oc_vbuffer_set_rest(in, i, sends < receives ? sends : receives);
	}
}

/* What the MPI is to have is in the rest[] of both, which the caller closes, then, whatever failed.
 * @send is NULL in place, where both have the same rest[]. A failure. */
static int serve_pairs(struct oc_comm *oc, enum oc_coll coll, const struct oc_vector *send,
		       const struct oc_vector *recv, struct oc_vbuffer *out, struct oc_vbuffer *in)
{
	int failure = open_both(oc, coll, send, recv, out, in);
	uint8_t ends[2 * OC_MAX_RANKS], *from = ends, *to = ends + oc->size;
	int me = oc->rank, parted = MPI_SUCCESS;

	memset(ends, 0, 2 * (size_t)oc->size);
	oc_vbuffer_own(out, me, oc_counts_at(in->counts, me), oc_vbuffer_type(in, me), true, to);
	oc_vbuffer_own(in, me, oc_counts_at(out->counts, me), oc_vbuffer_type(out, me), false,
		       from);
	/* One of the ends may be short enough for the MPI. */
	if (to[me] || from[me]) {
		to[me] = OC_PAIR_LESS;
		from[me] = OC_PAIR_MORE;
	}
	if (!failure)
		failure = oc_vbuffer_pack(out);
	failure = oc_pairs_exchange(oc, coll, failure, out, in,
				    &(struct oc_blocks){out->len, out->off},
				    &(struct oc_blocks){in->len, in->off}, ends);
	oc_vbuffer_part(in, from, false, &parted);
	oc_vbuffer_part(out, to, true, &parted);
	if (!send)
		join_rests(out, in);
	if (!failure)
		failure = oc_vbuffer_unpack(in);
	return failure ? failure : parted;
}

static int pass_rest(const struct oc_vector *send, const struct oc_vector *recv,
		     const struct oc_vbuffer *out, const struct oc_vbuffer *in, MPI_Comm comm)
{
	struct oc_counts scounts = oc_vbuffer_rest(out), rcounts = oc_vbuffer_rest(in);

	if (recv->types)
		return oc_pass_alltoallw(send->user, scounts, send->displs, send->types, in->user,
					 rcounts, recv->displs, recv->types, comm);
	return oc_pass_alltoallv(send->user, scounts, send->displs, send->type, in->user, rcounts,
				 recv->displs, recv->type, comm);
}

OC_APART int oc_alltoall_blocks(struct oc_comm *oc, enum oc_coll coll, const struct oc_vector *send,
				const struct oc_vector *recv, MPI_Comm comm)
{
	bool in_place = send->user == MPI_IN_PLACE;
	struct oc_vbuffer out, in;
	int failure, err = MPI_SUCCESS;

	failure = serve_pairs(oc, coll, in_place ? NULL : send, recv, &out, &in);
	if (oc_failure_goes_on(oc, comm, coll, failure))
		err = pass_rest(send, recv, &out, &in, comm);
	oc_vbuffer_close(&out);
	oc_vbuffer_close(&in);
	return err ? err : oc_failure_end(oc, comm, coll, failure);
}

static int serve_v(struct oc_comm *oc, const void *send, struct oc_counts scounts,
		   struct oc_counts sdispls, MPI_Datatype stype, void *recv,
		   struct oc_counts rcounts, struct oc_counts rdispls, MPI_Datatype rtype,
		   MPI_Comm comm)
{
	int n = oc->size, skip = send == MPI_IN_PLACE ? oc->rank : -1;
	struct oc_vector sends = {send, scounts, sdispls, stype, .n = n, .skip = -1};
	struct oc_vector receives = {recv, rcounts, rdispls, rtype, .n = n, .skip = skip};

	return oc_alltoall_blocks(oc, OC_COLL_ALLTOALLV, &sends, &receives, comm);
}

/* Serves MPI_Alltoallv: pair by pair, blocks that are large enough; the MPI gets the same call for
 * the rest. */
static OC_BOTH int alltoallv(const void *send, struct oc_counts scounts, struct oc_counts sdispls,
			     MPI_Datatype stype, void *recv, struct oc_counts rcounts,
			     struct oc_counts rdispls, MPI_Datatype rtype, MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_ALLTOALLV, 0, comm);
	struct oc_inter *inter = oc_inter_get(comm);
	uint64_t min = oc_adapter.agreed.min[OC_COLL_ALLTOALLV];
	bool in_place = send == MPI_IN_PLACE;
	struct oc_comm *oc = inter ? NULL : oc_comm_look(&call, comm);
	int err;

	oc = oc_comm_join(
		&call, comm, oc, OC_CREDIT_CALL,
		oc && (oc_blocks_wrong(rcounts, rdispls, rtype, oc->size) ||
		       oc_in_place_wrong(recv, oc_counts_bits(rcounts, oc->size)) ||
		       (!in_place && oc_blocks_wrong(scounts, sdispls, stype, oc->size))));
	if (call.since && !inter)
		oc_call_measure(&call, in_place ? (struct oc_counts){0} : scounts, stype, rcounts,
				rtype);
	if (oc && (in_place || !oc_blocks_any(scounts, stype, oc->size, min, -1)) &&
	    !oc_blocks_any(rcounts, rtype, oc->size, min, in_place ? oc->rank : -1)) {
		call.outcome = OC_OUTCOME_SMALL;
		oc = oc_comm_leave(oc);
	}
	if (inter)
		err = oc_inter_alltoallv(inter, &call, send, scounts, sdispls, stype, recv, rcounts,
					 rdispls, rtype);
	else if (oc)
		err = serve_v(oc, send, scounts, sdispls, stype, recv, rcounts, rdispls, rtype,
			      comm);
	else
		err = oc_pass_alltoallv(send, scounts, sdispls, stype, recv, rcounts, rdispls,
					rtype, comm);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Alltoallv(const void *send, const int scounts[], const int sdispls[],
			     MPI_Datatype stype, void *recv, const int rcounts[],
			     const int rdispls[], MPI_Datatype rtype, MPI_Comm comm)
{
	return alltoallv(send, (struct oc_counts){scounts, false},
			 (struct oc_counts){sdispls, false}, stype, recv,
			 (struct oc_counts){rcounts, false}, (struct oc_counts){rdispls, false},
			 rtype, comm);
}

OC_EXPORT_LARGE int PMPI_Alltoallv_c(const void *send, const MPI_Count scounts[],
				     const MPI_Aint sdispls[], MPI_Datatype stype, void *recv,
				     const MPI_Count rcounts[], const MPI_Aint rdispls[],
				     MPI_Datatype rtype, MPI_Comm comm)
{
	return pmpi()->Alltoallv_c ? alltoallv(send, (struct oc_counts){scounts, true},
					       (struct oc_counts){sdispls, true}, stype, recv,
					       (struct oc_counts){rcounts, true},
					       (struct oc_counts){rdispls, true}, rtype, comm)
				   : oc_pass_refused(comm);
}

OC_EXPORT int MPI_Alltoall(const void *send, int scount, MPI_Datatype stype, void *recv, int rcount,
			   MPI_Datatype rtype, MPI_Comm comm)
{
	return oc_tool()->Alltoall
		       ? oc_tool()->Alltoall(send, scount, stype, recv, rcount, rtype, comm)
		       : PMPI_Alltoall(send, scount, stype, recv, rcount, rtype, comm);
}

OC_EXPORT_LARGE int MPI_Alltoall_c(const void *send, MPI_Count scount, MPI_Datatype stype,
				   void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	return oc_tool()->Alltoall_c
		       ? oc_tool()->Alltoall_c(send, scount, stype, recv, rcount, rtype, comm)
		       : PMPI_Alltoall_c(send, scount, stype, recv, rcount, rtype, comm);
}

OC_EXPORT int MPI_Alltoallv(const void *send, const int scounts[], const int sdispls[],
			    MPI_Datatype stype, void *recv, const int rcounts[],
			    const int rdispls[], MPI_Datatype rtype, MPI_Comm comm)
{
	return oc_tool()->Alltoallv ? oc_tool()->Alltoallv(send, scounts, sdispls, stype, recv,
							   rcounts, rdispls, rtype, comm)
				    : PMPI_Alltoallv(send, scounts, sdispls, stype, recv, rcounts,
						     rdispls, rtype, comm);
}

OC_EXPORT_LARGE int MPI_Alltoallv_c(const void *send, const MPI_Count scounts[],
				    const MPI_Aint sdispls[], MPI_Datatype stype, void *recv,
				    const MPI_Count rcounts[], const MPI_Aint rdispls[],
				    MPI_Datatype rtype, MPI_Comm comm)
{
	return oc_tool()->Alltoallv_c ? oc_tool()->Alltoallv_c(send, scounts, sdispls, stype, recv,
							       rcounts, rdispls, rtype, comm)
				      : PMPI_Alltoallv_c(send, scounts, sdispls, stype, recv,
							 rcounts, rdispls, rtype, comm);
}
