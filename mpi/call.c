// SPDX-License-Identifier: BSD-3-Clause
#include "call.h"

#include <pthread.h>
#include <string.h>

#include "exec/group.h"
#include "type_sizes.h"
#include "vbuffer.h"

#define CLASSES 33 /* nothing, below 1 KiB, and powers of two up to what an int64 may say */

static const char *const colls[OC_COLL_COUNT] = {
	[OC_COLL_BCAST] = "bcast",
	[OC_COLL_SCATTER] = "scatter",
	[OC_COLL_GATHER] = "gather",
	[OC_COLL_ALLGATHER] = "allgather",
	[OC_COLL_ALLTOALL] = "alltoall",
	[OC_COLL_REDUCE] = "reduce",
	[OC_COLL_ALLREDUCE] = "allreduce",
	[OC_COLL_REDUCE_SCATTER] = "reduce_scatter",
	[OC_COLL_BARRIER] = "barrier",
	[OC_COLL_SCATTERV] = "scatterv",
	[OC_COLL_GATHERV] = "gatherv",
	[OC_COLL_ALLGATHERV] = "allgatherv",
	[OC_COLL_ALLTOALLV] = "alltoallv",
	[OC_COLL_ALLTOALLW] = "alltoallw",
	[OC_COLL_SCAN] = "scan",
	[OC_COLL_EXSCAN] = "exscan",
	[OC_COLL_NEIGHBOR_ALLGATHER] = "neighbor_allgather",
	[OC_COLL_NEIGHBOR_ALLGATHERV] = "neighbor_allgatherv",
	[OC_COLL_NEIGHBOR_ALLTOALL] = "neighbor_alltoall",
	[OC_COLL_NEIGHBOR_ALLTOALLV] = "neighbor_alltoallv",
	[OC_COLL_NEIGHBOR_ALLTOALLW] = "neighbor_alltoallw",
};

const char *oc_call_name(enum oc_coll coll)
{
	return colls[coll];
}

/* cli/onecopy/stats.py says them in words. */
static const char *const outcomes[OC_OUTCOME_COUNT] = {
	[OC_OUTCOME_SERVED] = "served",	    [OC_OUTCOME_FAILED] = "failed",
	[OC_OUTCOME_PROFILE] = "profile",   [OC_OUTCOME_IDLE] = "idle",
	[OC_OUTCOME_EMPTY] = "empty",	    [OC_OUTCOME_SMALL] = "small",
	[OC_OUTCOME_NEVER] = "never",	    [OC_OUTCOME_EARLY] = "early",
	[OC_OUTCOME_ALONE] = "alone",	    [OC_OUTCOME_BEYOND] = "beyond",
	[OC_OUTCOME_INTER] = "inter",	    [OC_OUTCOME_SETUP] = "setup",
	[OC_OUTCOME_OPERATOR] = "operator", [OC_OUTCOME_FREED] = "freed",
	[OC_OUTCOME_INVALID] = "invalid",
};

/* Where in the record the cell is, plus one; 0: it has none yet. */
static uint16_t places[OC_COLL_COUNT][CLASSES][OC_OUTCOME_COUNT];
static unsigned int used; /* cells */

static unsigned int class_of(uint64_t size)
{
	unsigned int log = size ? 63 - (unsigned int)__builtin_clzll(size) : 0;

	if (log < 10)
		return size ? 1 : 0;
	return log - 8 < CLASSES ? log - 8 : CLASSES - 1;
}

static uint64_t size_of_class(unsigned int class)
{
	return class < 2 ? class : 1ull << (class + 8);
}

static struct oc_record_cell *add_cell(uint16_t *place, const char *call, const char *outcome,
				       uint64_t size)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct oc_record_cell *cell;

	pthread_mutex_lock(&lock);
	if (!*place) {
		bool last = used >= OC_RECORD_CELLS - 1;

		cell = &oc_record->cell[last ? OC_RECORD_CELLS - 1 : used++];
		cell->size = last ? 0 : size;
		memcpy(cell->outcome, outcome, strlen(outcome));
		if (last)
			memcpy(cell->outcome, "others", sizeof("others"));
		/* A reader that comes now sees a cell or none. */
		__atomic_thread_fence(__ATOMIC_RELEASE);
		if (!cell->call[0])
			memcpy(cell->call, last ? "others" : call, strlen(last ? "others" : call));
		__atomic_store_n(place, (uint16_t)(cell - oc_record->cell + 1), __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return &oc_record->cell[*place - 1];
}

static struct oc_record_cell *cell_of(const struct oc_call *call)
{
	unsigned int class = class_of(call->size);
	uint16_t *place = &places[call->coll][class][call->outcome];
	uint16_t at = __atomic_load_n(place, __ATOMIC_ACQUIRE);

	return at ? &oc_record->cell[at - 1]
		  : add_cell(place, colls[call->coll], outcomes[call->outcome],
			     size_of_class(class));
}

void oc_call_count_anew(void)
{
	memset(places, 0, sizeof(places));
	used = 0;
}

static uint64_t total_of(struct oc_counts counts, MPI_Datatype type, int size)
{
	uint64_t total;

	if (!counts.at || !type || type == oc_abi.type_null ||
	    !oc_counts_total(counts, size, &total))
		return 0;
	return total ? total * oc_type_bytes(type, 1) : 0;
}

/* False where the communicator is wrong, which the MPI will say, or its blocks are another group's.
 */
static bool look_at(const struct oc_call *call, int *rank, int *size)
{
	int inter;

	return oc_adapter.knows_types && call->comm && call->comm != oc_abi.comm_null &&
	       !pmpi()->Comm_test_inter(call->comm, &inter) && !inter &&
	       !pmpi()->Comm_size(call->comm, size) && !pmpi()->Comm_rank(call->comm, rank);
}

static bool has_served(const struct oc_call *call, struct oc_counts counts, MPI_Datatype type,
		       int size, int skip)
{
	return total_of(counts, type, size) &&
	       oc_blocks_any(counts, type, size, oc_adapter.agreed.min[call->coll], skip);
}

/* In place, an exchange leaves a rank's own block where it is. -1: all blocks move. */
static int unmoved(const struct oc_call *call, struct oc_counts out, int rank)
{
	bool exchange = call->coll == OC_COLL_ALLTOALLV || call->coll == OC_COLL_ALLTOALLW;

	return exchange && !out.at ? rank : -1;
}

/* Who serves looks at the blocks itself. */
static void weigh_profile(struct oc_call *call, bool any)
{
	if (call->outcome == OC_OUTCOME_PROFILE && !any)
		call->outcome = OC_OUTCOME_SMALL;
}

void oc_call_measure(struct oc_call *call, struct oc_counts out, MPI_Datatype otype,
		     struct oc_counts in, MPI_Datatype itype)
{
	int sides = (out.at != NULL) + (in.at != NULL), rank, size;
	bool any;

	if (!sides || !look_at(call, &rank, &size))
		return;
	call->data = total_of(out, otype, size) + total_of(in, itype, size);
	call->size = call->data / (uint64_t)(sides * size);
	any = has_served(call, out, otype, size, -1) ||
	      has_served(call, in, itype, size, unmoved(call, out, rank));
	weigh_profile(call, any);
}

static uint64_t total_of_each(struct oc_counts counts, const MPI_Datatype *types, int size)
{
	uint64_t total = 0;

	for (int i = 0; counts.at && i < size; i++)
		total += oc_block_bytes(oc_counts_at(counts, i), types[i]);
	return total;
}

void oc_call_measure_each(struct oc_call *call, struct oc_counts out, const MPI_Datatype *otypes,
			  struct oc_counts in, const MPI_Datatype *itypes)
{
	uint64_t min = oc_adapter.agreed.min[call->coll];
	int sides, rank, size;
	bool any;

	/* The MPI is to report it. */
	if (!otypes)
		out.at = NULL;
	if (!itypes)
		in.at = NULL;
	sides = (out.at != NULL) + (in.at != NULL);
	if (!sides || !look_at(call, &rank, &size))
		return;
	call->data = total_of_each(out, otypes, size) + total_of_each(in, itypes, size);
	call->size = call->data / (uint64_t)(sides * size);
	any = (out.at && oc_blocks_find_each(out, otypes, size, min, -1)) ||
	      (in.at && oc_blocks_find_each(in, itypes, size, min, unmoved(call, out, rank)));
	weigh_profile(call, any);
}

void oc_call_measure_rooted(struct oc_call *call, struct oc_counts blocks, MPI_Datatype btype,
			    MPI_Count count, MPI_Datatype type)
{
	int rank, size;
	bool any;

	if (!look_at(call, &rank, &size))
		return;
	call->data = count > 0 && type && type != oc_abi.type_null
			     ? oc_type_bytes(type, (size_t)count)
			     : 0;
	call->size = call->data;
	any = call->size >= oc_adapter.agreed.min[call->coll];
	if (rank == call->root) {
		call->size = total_of(blocks, btype, size) / (uint64_t)size;
		call->data += total_of(blocks, btype, size);
		any = has_served(call, blocks, btype, size, -1);
	}
	weigh_profile(call, any);
}

/* What the buffers of this rank hold where every rank has a block of call->size. */
static uint64_t data_of(const struct oc_call *call)
{
	uint64_t n, bytes = call->size;
	int size, rank;

	if (!bytes || !look_at(call, &rank, &size))
		return bytes;
	n = (uint64_t)size;
	switch (call->coll) {
	case OC_COLL_SCATTER:
	case OC_COLL_GATHER:
		return rank == call->root ? (n + 1) * bytes : bytes;
	case OC_COLL_ALLGATHER:
		return (n + 1) * bytes;
	case OC_COLL_ALLTOALL:
		return 2 * n * bytes;
	case OC_COLL_REDUCE:
		return rank == call->root ? 2 * bytes : bytes;
	case OC_COLL_ALLREDUCE:
	case OC_COLL_SCAN:
		return 2 * bytes;
	case OC_COLL_EXSCAN:
		return rank ? 2 * bytes : bytes;
	case OC_COLL_REDUCE_SCATTER:
		return bytes + bytes / n;
	default:
		return bytes;
	}
}

static void add(uint64_t *to, uint64_t value)
{
	__atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

/* Kept up to date call by call: nobody may get to copy it at the end. */
static void note_mechanisms(struct oc_record *record)
{
	struct oc_moved *moved = &oc_group_moved;

	for (int i = 0; i < OC_MECH_COUNT; i++) {
		record->mech_calls[i] =
			atomic_load_explicit(&moved->calls[i], memory_order_relaxed);
		record->mech_bytes[i] =
			atomic_load_explicit(&moved->bytes[i], memory_order_relaxed);
	}
	record->refused = atomic_load_explicit(&moved->demotions, memory_order_relaxed);
}

void oc_call_count(struct oc_call *call, int err)
{
	uint64_t now = oc_clock_ns();
	struct oc_record *record = oc_record;
	struct oc_record_cell *cell;

	if (!record)
		return; /* MPI_Finalize in another thread */
	if (call->outcome == OC_OUTCOME_SERVED && err)
		call->outcome = OC_OUTCOME_FAILED;
	cell = cell_of(call);
	add(&cell->calls, 1);
	add(&cell->bytes, call->size);
	add(&cell->data, call->data || err ? call->data : data_of(call));
	add(&cell->ns, now - call->since);
	if (call->outcome <= OC_OUTCOME_FAILED)
		note_mechanisms(record);
	__atomic_store_n(&record->end_ns, now, __ATOMIC_RELAXED);
}
