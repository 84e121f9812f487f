// SPDX-License-Identifier: BSD-3-Clause
/*
 * MPI_Put and MPI_Get of memory that this process can use as its own: a copy, made at once. All
 * else of one-sided communication is the MPI's: windows, locks, fences, accumulates. It says when a
 * rank's memory may be used, and what is here only keeps account of that (mpi/rma_epoch.c); for
 * whatever is not certain the MPI makes the transfer, as without us.
 *
 * A transfer that is complete when the call returns is so at any later end of its epoch. Those of
 * one epoch that overlap are an error by the standard or have no result it would define (MPI 4.1,
 * 12.7), so their order to the MPI's own does not matter.
 */

#include "../procvm/between.h"
#include "abi.h"
#include "buffer.h"
#include "comm.h"
#include "pass.h"
#include "record.h"
#include "rma_epoch.h"
#include "rma_window.h"
#include "type_sizes.h"
#include "typemap.h"

#define LOOK_AFTER 32 /* transfers */

/* A transfer as the call has it. */
struct transfer {
	enum oc_direction direction;
	void *origin;
	MPI_Count ocount;
	MPI_Datatype otype;
	int rank;
	MPI_Aint disp;
	MPI_Count tcount;
	MPI_Datatype ttype;
	MPI_Win win;
};

/* One that is not committed the MPI is to report. */
static bool is_usable(MPI_Datatype type)
{
	struct oc_typemap *map;

	if (oc_type_is_plain(type))
		return true;
	map = oc_typemap_get(type);
	oc_typemap_put(map);
	return map || oc_typemap_is_predefined(type);
}

/* One side of a transfer, without anything that would have to be packed. */
static bool lay_out(struct oc_buffer *buffer, uint64_t first, MPI_Count count, MPI_Datatype type)
{
	void *user = (char *)NULL + first;

	return count > 0 && type && type != oc_abi.type_null && is_usable(type) &&
	       oc_buffer_as_is(buffer, user, (size_t)count, type);
}

/* True with where the first element is at the target, if displacements can say that. */
static bool find_there(const struct oc_rma_target *target, MPI_Aint disp, uint64_t *first)
{
	uint64_t off;

	if (disp < 0 || __builtin_mul_overflow((uint64_t)disp, target->unit, &off) ||
	    off > target->bytes)
		return false;
	*first = target->base + off;
	return true;
}

/* Whether all of it is in the window. */
static bool is_inside(const struct oc_rma_target *target, const struct oc_buffer *there)
{
	const struct oc_layout *layout = there->layout;
	uint64_t from = (uintptr_t)there->at - target->base + (uint64_t)(layout ? layout->low : 0);
	uint64_t bytes = layout ? (uint64_t)(layout->high - layout->low) : there->bytes;

	return from <= target->bytes && bytes <= target->bytes - from;
}

static enum oc_transfer copy(const struct transfer *it, struct oc_rma *rma,
			     struct oc_rma_target *target, const struct oc_buffer *here,
			     const struct oc_buffer *there)
{
	struct oc_procvm_between between = {
		.direction = it->direction,
		.bytes = here->bytes,
		.here = here->at,
		.here_layout = here->layout,
		.there = (uintptr_t)there->at,
		.there_layout = there->layout,
	};

	if (!here->bytes || here->bytes != there->bytes || !is_inside(target, there))
		return OC_TRANSFER_WINDOW;
	if (!oc_rma_may_access(rma, target, it->win, here->bytes))
		return OC_TRANSFER_EPOCH;
	return oc_procvm_copy(target->there, &between) ? OC_TRANSFER_SERVED : OC_TRANSFER_MEMORY;
}

/* Serves MPI_Put: in windows of MPI_Win_create over the shared heap of a rank of this node, with
 * types that need no packing. */
/* Serves MPI_Get, MPI_Rput and MPI_Rget: as MPI_Put. */
/* Whether it has been done. If not, some of it may have been. */
static enum oc_transfer serve(const struct transfer *it)
{
	struct oc_rma *rma = oc_rma_find(it->win);
	struct oc_rma_target *target = rma ? oc_rma_target(rma, it->rank) : NULL;
	enum oc_transfer outcome = OC_TRANSFER_TYPES;
	struct oc_buffer here, there;
	uint64_t first;

	if (!target || !target->bytes || !oc_adapter.active ||
	    !find_there(target, it->disp, &first))
		return OC_TRANSFER_WINDOW;
	if (!lay_out(&here, (uintptr_t)it->origin, it->ocount, it->otype))
		return outcome;
	if (lay_out(&there, first, it->tcount, it->ttype)) {
		outcome = copy(it, rma, target, &here, &there);
		oc_buffer_close(&there, false);
	}
	oc_buffer_close(&here, false);
	return outcome;
}

static bool is_to_itself(const struct transfer *it)
{
	struct oc_rma *rma = oc_rma_find(it->win);
	struct oc_rma_target *target = rma ? oc_rma_target(rma, it->rank) : NULL;

	return target && target->there == oc_adapter.node->rank;
}

/* What moves nothing is not counted, nor what a rank moves within its own memory. */
OC_APART static void count(const struct transfer *it, enum oc_transfer outcome)
{
	struct oc_record *record = oc_record;
	size_t bytes;

	if (!record || !oc_adapter.knows_types || it->rank < 0 || it->ocount <= 0 || !it->otype ||
	    it->otype == oc_abi.type_null || is_to_itself(it))
		return;
	bytes = oc_type_bytes(it->otype, (size_t)it->ocount);
	if (!bytes)
		return;
	__atomic_fetch_add(&record->transfer_calls[outcome], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&record->transfer_bytes[outcome], bytes, __ATOMIC_RELAXED);
}

/*
 * A transfer that the MPI makes moves what else it has under way, and one that is complete leaves
 * nothing to wait for: MPI_Wait and MPI_Test of its request look at nothing more, and not every MPI
 * does in MPI_Win_flush_local. Who asks again and again until a peer has done what needs this
 * rank's MPI would ask for ever. So each with a request makes the MPI look, and one of some others.
 */
static void drive_progress(bool request)
{
	static __thread uint8_t since __attribute__((tls_model("initial-exec")));

	if (request || ++since % LOOK_AFTER == 0)
		oc_comm_drive_progress();
}

static bool is_served(const struct transfer *it, bool request)
{
	enum oc_transfer outcome = serve(it);

	if (__builtin_expect(oc_record != NULL, 0))
		count(it, outcome);
	if (outcome != OC_TRANSFER_SERVED)
		return false;
	drive_progress(request);
	return true;
}

static OC_BOTH int put(bool large, const void *origin, MPI_Count ocount, MPI_Datatype otype,
		       int rank, MPI_Aint disp, MPI_Count tcount, MPI_Datatype ttype, MPI_Win win)
{
	struct transfer it = {
		OC_PUT, (void *)(uintptr_t)origin, ocount, otype, rank, disp, tcount, ttype, win};

	if (is_served(&it, false))
		return MPI_SUCCESS;
	return large ? pmpi()->Put_c(origin, ocount, otype, rank, disp, tcount, ttype, win)
		     : pmpi()->Put(origin, (int)ocount, otype, rank, disp, (int)tcount, ttype, win);
}

static OC_BOTH int get(bool large, void *origin, MPI_Count ocount, MPI_Datatype otype, int rank,
		       MPI_Aint disp, MPI_Count tcount, MPI_Datatype ttype, MPI_Win win)
{
	struct transfer it = {OC_GET, origin, ocount, otype, rank, disp, tcount, ttype, win};

	if (is_served(&it, false))
		return MPI_SUCCESS;
	return large ? pmpi()->Get_c(origin, ocount, otype, rank, disp, tcount, ttype, win)
		     : pmpi()->Get(origin, (int)ocount, otype, rank, disp, (int)tcount, ttype, win);
}

/* The request of a transfer that has been done is one of nothing. */
static OC_BOTH int rput(bool large, const void *origin, MPI_Count ocount, MPI_Datatype otype,
			int rank, MPI_Aint disp, MPI_Count tcount, MPI_Datatype ttype, MPI_Win win,
			MPI_Request *request)
{
	struct transfer it = {
		OC_PUT, (void *)(uintptr_t)origin, ocount, otype, rank, disp, tcount, ttype, win};

	if (is_served(&it, true))
		ocount = tcount = 0;
	return large ? pmpi()->Rput_c(origin, ocount, otype, rank, disp, tcount, ttype, win,
				      request)
		     : pmpi()->Rput(origin, (int)ocount, otype, rank, disp, (int)tcount, ttype, win,
				    request);
}

static OC_BOTH int rget(bool large, void *origin, MPI_Count ocount, MPI_Datatype otype, int rank,
			MPI_Aint disp, MPI_Count tcount, MPI_Datatype ttype, MPI_Win win,
			MPI_Request *request)
{
	struct transfer it = {OC_GET, origin, ocount, otype, rank, disp, tcount, ttype, win};

	if (is_served(&it, true))
		ocount = tcount = 0;
	return large ? pmpi()->Rget_c(origin, ocount, otype, rank, disp, tcount, ttype, win,
				      request)
		     : pmpi()->Rget(origin, (int)ocount, otype, rank, disp, (int)tcount, ttype, win,
				    request);
}

OC_EXPORT int PMPI_Put(const void *origin, int ocount, MPI_Datatype otype, int rank, MPI_Aint disp,
		       int tcount, MPI_Datatype ttype, MPI_Win win)
{
	return put(false, origin, ocount, otype, rank, disp, tcount, ttype, win);
}

OC_EXPORT int PMPI_Get(void *origin, int ocount, MPI_Datatype otype, int rank, MPI_Aint disp,
		       int tcount, MPI_Datatype ttype, MPI_Win win)
{
	return get(false, origin, ocount, otype, rank, disp, tcount, ttype, win);
}

OC_EXPORT int PMPI_Rput(const void *origin, int ocount, MPI_Datatype otype, int rank, MPI_Aint disp,
			int tcount, MPI_Datatype ttype, MPI_Win win, MPI_Request *request)
{
	return rput(false, origin, ocount, otype, rank, disp, tcount, ttype, win, request);
}

OC_EXPORT int PMPI_Rget(void *origin, int ocount, MPI_Datatype otype, int rank, MPI_Aint disp,
			int tcount, MPI_Datatype ttype, MPI_Win win, MPI_Request *request)
{
	return rget(false, origin, ocount, otype, rank, disp, tcount, ttype, win, request);
}

OC_EXPORT_LARGE int PMPI_Put_c(const void *origin, MPI_Count ocount, MPI_Datatype otype, int rank,
			       MPI_Aint disp, MPI_Count tcount, MPI_Datatype ttype, MPI_Win win)
{
	return pmpi()->Put_c ? put(true, origin, ocount, otype, rank, disp, tcount, ttype, win)
			     : oc_pass_refused(oc_adapter.alone);
}

OC_EXPORT_LARGE int PMPI_Get_c(void *origin, MPI_Count ocount, MPI_Datatype otype, int rank,
			       MPI_Aint disp, MPI_Count tcount, MPI_Datatype ttype, MPI_Win win)
{
	return pmpi()->Get_c ? get(true, origin, ocount, otype, rank, disp, tcount, ttype, win)
			     : oc_pass_refused(oc_adapter.alone);
}

OC_EXPORT_LARGE int PMPI_Rput_c(const void *origin, MPI_Count ocount, MPI_Datatype otype, int rank,
				MPI_Aint disp, MPI_Count tcount, MPI_Datatype ttype, MPI_Win win,
				MPI_Request *request)
{
	return pmpi()->Rput_c
		       ? rput(true, origin, ocount, otype, rank, disp, tcount, ttype, win, request)
		       : oc_pass_refused(oc_adapter.alone);
}

OC_EXPORT_LARGE int PMPI_Rget_c(void *origin, MPI_Count ocount, MPI_Datatype otype, int rank,
				MPI_Aint disp, MPI_Count tcount, MPI_Datatype ttype, MPI_Win win,
				MPI_Request *request)
{
	return pmpi()->Rget_c
		       ? rget(true, origin, ocount, otype, rank, disp, tcount, ttype, win, request)
		       : oc_pass_refused(oc_adapter.alone);
}

OC_EXPORT int MPI_Put(const void *origin, int ocount, MPI_Datatype otype, int rank, MPI_Aint disp,
		      int tcount, MPI_Datatype ttype, MPI_Win win)
{
	return oc_tool()->Put
		       ? oc_tool()->Put(origin, ocount, otype, rank, disp, tcount, ttype, win)
		       : PMPI_Put(origin, ocount, otype, rank, disp, tcount, ttype, win);
}

OC_EXPORT int MPI_Get(void *origin, int ocount, MPI_Datatype otype, int rank, MPI_Aint disp,
		      int tcount, MPI_Datatype ttype, MPI_Win win)
{
	return oc_tool()->Get
		       ? oc_tool()->Get(origin, ocount, otype, rank, disp, tcount, ttype, win)
		       : PMPI_Get(origin, ocount, otype, rank, disp, tcount, ttype, win);
}

OC_EXPORT int MPI_Rput(const void *origin, int ocount, MPI_Datatype otype, int rank, MPI_Aint disp,
		       int tcount, MPI_Datatype ttype, MPI_Win win, MPI_Request *request)
{
	return oc_tool()->Rput
		       ? oc_tool()->Rput(origin, ocount, otype, rank, disp, tcount, ttype, win,
					 request)
		       : PMPI_Rput(origin, ocount, otype, rank, disp, tcount, ttype, win, request);
}

OC_EXPORT int MPI_Rget(void *origin, int ocount, MPI_Datatype otype, int rank, MPI_Aint disp,
		       int tcount, MPI_Datatype ttype, MPI_Win win, MPI_Request *request)
{
	return oc_tool()->Rget
		       ? oc_tool()->Rget(origin, ocount, otype, rank, disp, tcount, ttype, win,
					 request)
		       : PMPI_Rget(origin, ocount, otype, rank, disp, tcount, ttype, win, request);
}

OC_EXPORT_LARGE int MPI_Put_c(const void *origin, MPI_Count ocount, MPI_Datatype otype, int rank,
			      MPI_Aint disp, MPI_Count tcount, MPI_Datatype ttype, MPI_Win win)
{
	return oc_tool()->Put_c
		       ? oc_tool()->Put_c(origin, ocount, otype, rank, disp, tcount, ttype, win)
		       : PMPI_Put_c(origin, ocount, otype, rank, disp, tcount, ttype, win);
}

OC_EXPORT_LARGE int MPI_Get_c(void *origin, MPI_Count ocount, MPI_Datatype otype, int rank,
			      MPI_Aint disp, MPI_Count tcount, MPI_Datatype ttype, MPI_Win win)
{
	return oc_tool()->Get_c
		       ? oc_tool()->Get_c(origin, ocount, otype, rank, disp, tcount, ttype, win)
		       : PMPI_Get_c(origin, ocount, otype, rank, disp, tcount, ttype, win);
}

OC_EXPORT_LARGE int MPI_Rput_c(const void *origin, MPI_Count ocount, MPI_Datatype otype, int rank,
			       MPI_Aint disp, MPI_Count tcount, MPI_Datatype ttype, MPI_Win win,
			       MPI_Request *request)
{
	return oc_tool()->Rput_c ? oc_tool()->Rput_c(origin, ocount, otype, rank, disp, tcount,
						     ttype, win, request)
				 : PMPI_Rput_c(origin, ocount, otype, rank, disp, tcount, ttype,
					       win, request);
}

OC_EXPORT_LARGE int MPI_Rget_c(void *origin, MPI_Count ocount, MPI_Datatype otype, int rank,
			       MPI_Aint disp, MPI_Count tcount, MPI_Datatype ttype, MPI_Win win,
			       MPI_Request *request)
{
	return oc_tool()->Rget_c ? oc_tool()->Rget_c(origin, ocount, otype, rank, disp, tcount,
						     ttype, win, request)
				 : PMPI_Rget_c(origin, ocount, otype, rank, disp, tcount, ttype,
					       win, request);
}
