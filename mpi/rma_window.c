// SPDX-License-Identifier: BSD-3-Clause
/*
 * Windows over memory of the program's own (MPI_Win_create): where the ranks of this machine have
 * theirs. Each tells the others when the window is made. Windows whose memory is the MPI's are left
 * to it: between processes that share memory it puts and gets by plain copies itself.
 *
 * What is known of a window is attached to it, so that it ends with it, whoever frees it; it is
 * found by its handle, which is faster than by the attribute.
 */
#include "rma_window.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "heap/static_data.h"
#include "pass.h"
#include "segment/area.h"

#define TAG 1 /* of the communicator's making, not of messages */

#define NOWHERE UINT32_MAX /* as a place: the rank has none */

/* What a rank tells the others of a window. */
struct card {
	uint64_t base;
	uint64_t bytes; /* 0: it cannot be reached, or nobody would say when */
	uint64_t unit;
	uint64_t fences; /* on its board */
	uint32_t place;
	uint32_t there; /* rank of the node */
};

/* What a rank says of a window: apart, so that ranks do not write into each other's lines. */
struct board {
	_Alignas(OC_CACHELINE) _Atomic uint64_t fences;
};

struct boards {
	struct board of[OC_RMA_WINDOWS];
	_Atomic uint32_t posts[OC_RMA_WINDOWS][OC_MAX_RANKS]; /* touched where there are some */
};
_Static_assert(sizeof(struct boards) <= OC_AREA_RMA_BYTES, "fits");

/* The ranks of a communicator that are on this machine. */
struct members {
	int count;
	bool all;		 /* there are no others */
	int ranks[OC_MAX_RANKS]; /* of the communicator, rising */
	int self;		 /* which of them this one is */
};

_Atomic uint32_t oc_rma_windows;

static struct oc_rma table[OC_RMA_WINDOWS];
static bool taken[OC_RMA_WINDOWS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of both, for who makes and frees */
static _Atomic uint32_t used;				 /* places that ever were */
static int keyval;

struct oc_rma *oc_rma_find_any(MPI_Win win)
{
	uint32_t places = atomic_load_explicit(&used, memory_order_acquire);

	if (!win)
		return NULL;
	for (uint32_t i = 0; i < places; i++)
		if (atomic_load_explicit(&table[i].win, memory_order_acquire) == (uintptr_t)win)
			return &table[i];
	return NULL;
}

static int by_rank(const void *a, const void *b)
{
	int one = ((const struct oc_rma_target *)a)->rank;
	int other = ((const struct oc_rma_target *)b)->rank;

	return one < other ? -1 : one > other;
}

struct oc_rma_target *oc_rma_target(const struct oc_rma *rma, int rank)
{
	struct oc_rma_target wanted = {.rank = rank};

	/* All ranks are here, as a rule. */
	if (rank >= 0 && rank < rma->ntargets && rma->targets[rank].rank == rank)
		return &rma->targets[rank];
	return bsearch(&wanted, rma->targets, (size_t)rma->ntargets, sizeof(wanted), by_rank);
}

struct oc_rma_target *oc_rma_target_there(const struct oc_rma *rma, int there)
{
	for (int i = 0; i < rma->ntargets; i++)
		if (rma->targets[i].there == (uint32_t)there)
			return &rma->targets[i];
	return NULL;
}

static struct boards *boards_of(uint32_t there)
{
	return (struct boards *)(oc_node_area(oc_adapter.node, there) + OC_AREA_RMA_OFF);
}

static struct oc_rma *take(void)
{
	struct oc_rma *rma = NULL;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < OC_RMA_WINDOWS && !rma; i++) {
		if (taken[i])
			continue;
		taken[i] = true;
		rma = &table[i];
		if (i >= atomic_load(&used))
			atomic_store(&used, i + 1);
	}
	pthread_mutex_unlock(&lock);
	return rma;
}

static void give_back(struct oc_rma *rma)
{
	free(rma->targets);
	rma->targets = NULL;
	pthread_mutex_lock(&lock);
	taken[rma - table] = false;
	pthread_mutex_unlock(&lock);
}

static void forget(struct oc_rma *rma)
{
	if (atomic_exchange(&rma->win, 0))
		atomic_fetch_sub(&oc_rma_windows, 1);
}

static int window_deleted(MPI_Win win, int key, void *value, void *extra)
{
	struct oc_rma *rma = value;

	forget(rma);
	give_back(rma);
	return MPI_SUCCESS;
}

static int window_not_copied(MPI_Win win, int key, void *extra, void *in, void *out, int *flag)
{
	*flag = 0;
	return MPI_SUCCESS;
}

int oc_rma_setup(void)
{
	return pmpi()->Win_create_keyval(window_not_copied, window_deleted, &keyval, NULL) ? -EIO
											   : 0;
}

/* A window of a session may outlive the node, and with it its boards: that is the MPI's from here
 * on. What is attached to it ends with it. */
void oc_rma_teardown(void)
{
	int key = keyval;

	for (uint32_t i = 0; i < atomic_load(&used); i++)
		forget(&table[i]);
	pmpi()->Win_free_keyval(&key);
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}

/* False, on all of them alike, where the window is the MPI's. */
static bool find_members(MPI_Group group, int size, int self, struct members *members)
{
	int worlds[OC_MAX_RANKS], ranks[OC_MAX_RANKS];
	int count = 0, processes;

	/* MPICH's communicators of threads have more ranks than their groups. */
	if (pmpi()->Group_size(group, &processes) || processes != size)
		return false;
	for (int i = 0; i < oc_adapter.world_size; i++)
		if (oc_adapter.node_of_world[i] >= 0)
			worlds[count++] = i;
	if (pmpi()->Group_translate_ranks(oc_adapter.world_group, count, worlds, group, ranks))
		return false;
	members->count = 0;
	for (int i = 0; i < count; i++)
		if (ranks[i] >= 0)
			members->ranks[members->count++] = ranks[i];
	qsort(members->ranks, (size_t)members->count, sizeof(members->ranks[0]), by_value);
	members->all = members->count == size;
	members->self = -1;
	for (int i = 0; i < members->count; i++)
		if (members->ranks[i] == self)
			members->self = i;
	return members->self >= 0 && members->count > 1;
}

/* Collective over the members alone: others may run without us. */
static bool exchange(MPI_Comm comm, MPI_Group group, const struct members *members,
		     struct card *cards)
{
	MPI_Comm here = comm;
	MPI_Group some;
	bool done;

	if (!members->all) {
		if (pmpi()->Group_incl(group, members->count, members->ranks, &some))
			return false;
		done = !pmpi()->Comm_create_group(comm, some, TAG, &here);
		pmpi()->Group_free(&some);
		if (!done)
			return false;
	}
	done = !pmpi()->Allgather(MPI_IN_PLACE, 0, oc_abi.byte, cards, (int)sizeof(*cards),
				  oc_abi.byte, here);
	if (!members->all)
		pmpi()->Comm_free(&here);
	return done;
}

static void fill_targets(struct oc_rma *rma, const struct members *members,
			 const struct card *cards)
{
	rma->ntargets = members->count;
	for (int i = 0; i < members->count; i++) {
		struct oc_rma_target *target = &rma->targets[i];
		struct boards *boards;

		*target = (struct oc_rma_target){
			.rank = members->ranks[i],
			.there = cards[i].there,
			.base = cards[i].base,
			.bytes = cards[i].bytes,
			.unit = cards[i].unit,
			.fences_before = cards[i].fences,
		};
		if (cards[i].place == NOWHERE)
			continue;
		/* What a rank does to itself the MPI does as well. */
		if (i == members->self)
			target->bytes = 0;
		boards = boards_of(cards[i].there);
		target->fences = &boards->of[cards[i].place].fences;
		target->posts = &boards->posts[cards[i].place][oc_adapter.node->rank];
	}
}

/* Before any other rank can know of it. */
static void begin_board(struct oc_rma *rma, struct boards *boards, uint32_t place)
{
	rma->board = &boards->of[place].fences;
	rma->posts = boards->posts[place];
	for (uint32_t i = 0; i < oc_adapter.node->nranks; i++)
		if (atomic_load_explicit(&rma->posts[i], memory_order_relaxed))
			atomic_store_explicit(&rma->posts[i], 0, memory_order_relaxed);
}

/* Every rank of the machine comes here for each of its windows, and takes part in the exchange,
 * whatever it lacks. */
OC_APART static void share(MPI_Win win, void *base, uint64_t bytes, uint64_t unit, MPI_Comm comm,
			   MPI_Group group, int size, int self)
{
	struct card cards[OC_MAX_RANKS];
	struct members members;
	struct oc_rma *rma;
	struct card *own;

	if (!find_members(group, size, self, &members))
		return;
	rma = take();
	if (rma) {
		rma->targets = calloc((size_t)members.count, sizeof(rma->targets[0]));
		if (!rma->targets) {
			give_back(rma);
			rma = NULL;
		}
	}
	own = &cards[members.self];
	*own = (struct card){.place = NOWHERE, .there = oc_adapter.node->rank};
	if (rma) {
		own->place = (uint32_t)(rma - table);
		begin_board(rma, boards_of(own->there), own->place);
		own->fences = atomic_load(rma->board);
		own->base = (uintptr_t)base;
		own->unit = unit;
		if (bytes && oc_heap_find(base, bytes))
			own->bytes = bytes;
	}
	/* If that fails peers may have been told of the place: no other window gets it. */
	if (!exchange(comm, group, &members, cards) || !rma ||
	    pmpi()->Win_set_attr(win, keyval, rma))
		return;
	fill_targets(rma, &members, cards);
	rma->fences = 0;
	atomic_store(&rma->epoch, OC_RMA_NONE);
	atomic_store(&rma->win, (uintptr_t)win);
	atomic_fetch_add(&oc_rma_windows, 1);
}

static int created(int err, MPI_Win *win, void *base, MPI_Aint bytes, MPI_Aint unit, MPI_Comm comm)
{
	MPI_Group group;
	int size, self;

	if (err || !oc_adapter.active || oc_adapter.agreed.profile)
		return err;
	if (pmpi()->Comm_size(comm, &size) || pmpi()->Comm_rank(comm, &self) ||
	    pmpi()->Comm_group(comm, &group))
		return err;
	share(*win, base, (uint64_t)bytes, (uint64_t)unit, comm, group, size, self);
	pmpi()->Group_free(&group);
	return err;
}

OC_EXPORT int PMPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm,
			      MPI_Win *win)
{
	return created(pmpi()->Win_create(base, size, unit, info, comm, win), win, base, size, unit,
		       comm);
}

OC_EXPORT_LARGE int PMPI_Win_create_c(void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info,
				      MPI_Comm comm, MPI_Win *win)
{
	return pmpi()->Win_create_c
		       ? created(pmpi()->Win_create_c(base, size, unit, info, comm, win), win, base,
				 size, unit, comm)
		       : oc_pass_refused(comm);
}

OC_EXPORT int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm,
			     MPI_Win *win)
{
	return oc_tool()->Win_create ? oc_tool()->Win_create(base, size, unit, info, comm, win)
				     : PMPI_Win_create(base, size, unit, info, comm, win);
}

OC_EXPORT_LARGE int MPI_Win_create_c(void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info,
				     MPI_Comm comm, MPI_Win *win)
{
	return oc_tool()->Win_create_c ? oc_tool()->Win_create_c(base, size, unit, info, comm, win)
				       : PMPI_Win_create_c(base, size, unit, info, comm, win);
}
