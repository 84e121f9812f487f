// SPDX-License-Identifier: BSD-3-Clause
#include "comm.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "adapter.h"
#include "base/env.h"
#include "topology.h"

_Thread_local struct oc_comm_last oc_comm_last;

/*
 * Every rank has to count a communicator's calls: one that did not would be missing where the
 * others make its group. So there is a place for what there is no memory for, here or in the MPI,
 * which may not be able to attach it. That is tried again at each call. A communicator that is
 * freed before that has worked would be mistaken for another one with the same handle.
 */
#define SPARES 16
static struct spare {
	struct oc_comm oc;
	MPI_Comm comm; /* that it is to be attached to, while it waits for that */
	bool waits;
	bool taken;
} spares[SPARES];
static pthread_mutex_t spares_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int waiting;

static struct spare *spare_of(struct oc_comm *oc)
{
	for (int i = 0; i < SPARES; i++)
		if (oc == &spares[i].oc)
			return &spares[i];
	return NULL;
}

static struct spare *take_spare(void)
{
	struct spare *spare = NULL;

	pthread_mutex_lock(&spares_lock);
	for (int i = 0; i < SPARES && !spare; i++)
		if (!spares[i].taken)
			spare = &spares[i];
	if (spare)
		*spare = (struct spare){.taken = true};
	pthread_mutex_unlock(&spares_lock);
	return spare;
}

static void set_waits(struct spare *spare, MPI_Comm comm, bool waits)
{
	pthread_mutex_lock(&spares_lock);
	waiting += (unsigned int)waits - (unsigned int)spare->waits;
	spare->comm = comm;
	spare->waits = waits;
	pthread_mutex_unlock(&spares_lock);
}

static struct oc_comm *find_waiting(MPI_Comm comm)
{
	struct oc_comm *oc = NULL;

	pthread_mutex_lock(&spares_lock);
	for (int i = 0; i < SPARES && waiting; i++)
		if (spares[i].taken && spares[i].waits && spares[i].comm == comm)
			oc = &spares[i].oc;
	pthread_mutex_unlock(&spares_lock);
	return oc;
}

static void comm_free(struct oc_comm *oc)
{
	struct spare *spare = spare_of(oc);

	oc_topology_free(oc->topology);
	if (!spare) {
		free(oc);
		return;
	}
	pthread_mutex_lock(&spares_lock);
	spare->taken = false;
	pthread_mutex_unlock(&spares_lock);
}

void oc_comm_drive_progress(void)
{
	int flag;

	/* Nothing is ever sent with this tag: the look alone makes the MPI move
	 * what is in flight. */
	if (oc_abi_probe_moves)
		pmpi()->Iprobe(0, 0, oc_adapter.self, &flag, MPI_STATUS_IGNORE);
	else
		pmpi()->Request_get_status(oc_adapter.never, &flag, MPI_STATUS_IGNORE);
}

int oc_comm_not_copied(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
	*flag = 0;
	return MPI_SUCCESS;
}

static int comm_deleted(MPI_Comm comm, int keyval, void *value, void *extra)
{
	struct oc_comm *oc = value;

	__atomic_add_fetch(&oc_comm_freed, 1, __ATOMIC_RELEASE);
	/* A communicator the program never freed may outlive the node, and the key. */
	if (oc->group && oc_adapter.node && keyval == oc_adapter.keyval)
		oc_group_destroy(oc->group);
	comm_free(oc);
	return MPI_SUCCESS;
}

int oc_comm_setup(void)
{
	if (pmpi()->Comm_create_keyval(oc_comm_not_copied, comm_deleted, &oc_adapter.keyval, NULL))
		return -EIO;
	if (pmpi()->Comm_dup(oc_adapter.alone, &oc_adapter.self))
		goto out_keyval;
	/* What fails here is a call on another communicator, and reported there. */
	if (pmpi()->Comm_set_errhandler(oc_adapter.self, oc_abi.errors_return))
		goto out_self;
	if (!oc_abi_probe_moves &&
	    pmpi()->Irecv(NULL, 0, oc_abi.byte, 0, 0, oc_adapter.self, &oc_adapter.never))
		goto out_self;
	return 0;
out_self:
	pmpi()->Comm_free(&oc_adapter.self);
out_keyval:
	pmpi()->Comm_free_keyval(&oc_adapter.keyval);
	return -EIO;
}

void oc_comm_teardown(void)
{
	struct oc_comm *oc;
	int found = 0, key;

	__atomic_add_fetch(&oc_comm_freed, 1, __ATOMIC_RELEASE);
	/* MPI_COMM_WORLD is never freed. */
	if (oc_abi_has_world &&
	    !pmpi()->Comm_get_attr(oc_abi.comm_world, oc_adapter.keyval, &oc, &found) && found)
		pmpi()->Comm_delete_attr(oc_abi.comm_world, oc_adapter.keyval);
	if (!oc_abi_probe_moves) {
		pmpi()->Cancel(&oc_adapter.never);
		pmpi()->Wait(&oc_adapter.never, MPI_STATUS_IGNORE);
	}
	pmpi()->Comm_free(&oc_adapter.self);
	key = oc_adapter.keyval;
	pmpi()->Comm_free_keyval(&key);
}

bool oc_comm_is_here(int (*group_of)(MPI_Comm, MPI_Group *), MPI_Comm comm, int size)
{
	int ranks[OC_MAX_RANKS], worlds[OC_MAX_RANKS];
	MPI_Group group;
	int processes;
	bool here;

	if (group_of(comm, &group))
		return false;
	for (int i = 0; i < size; i++)
		ranks[i] = i;
	/* MPICH's communicators of threads (MPIX_Threadcomm_init) have more ranks than that. */
	here = !pmpi()->Group_size(group, &processes) && processes == size &&
	       !pmpi()->Group_translate_ranks(group, size, ranks, oc_adapter.world_group, worlds);
	for (int i = 0; i < size && here; i++)
		here = worlds[i] >= 0 && worlds[i] < oc_adapter.world_size &&
		       oc_adapter.node_of_world[worlds[i]] >= 0;
	pmpi()->Group_free(&group);
	return here;
}

/* Collective: every member comes here at the same call. After the exchange
 * nothing can fail on one member alone, unless the MPI does. */
void oc_comm_create_group(MPI_Comm comm, struct oc_comm *oc)
{
	struct oc_group_card cards[OC_MAX_RANKS];
	struct oc_group *group;

	oc->tried = true;
	oc->outcome = OC_OUTCOME_ALONE;
	if (oc->size < 2)
		return;
	oc->outcome = OC_OUTCOME_BEYOND;
	if (oc->size > OC_MAX_RANKS || !oc_comm_is_here(pmpi()->Comm_group, comm, oc->size))
		return;
	oc->outcome = OC_OUTCOME_PROFILE;
	if (oc_adapter.agreed.profile)
		return;
	oc->outcome = OC_OUTCOME_SETUP;
	group = oc_group_offer(oc_adapter.node, (uint32_t)oc->size, &cards[oc->rank]);
	if (pmpi()->Allgather(MPI_IN_PLACE, 0, oc_abi.byte, cards, (int)sizeof(*cards), oc_abi.byte,
			      comm))
		cards[(oc->rank + 1) % oc->size].board_index =
			-EIO; /* unknown: as if it declined */
	if (oc_group_create(group, cards, (uint32_t)oc->rank)) {
		oc_note("a communicator of %d ranks is left to the MPI: a member has no board "
			"or memory",
			oc->size);
		return;
	}
	group->wait.progress = oc_comm_drive_progress;
	oc->group = group;
	oc->outcome = OC_OUTCOME_SERVED;
}

static struct oc_comm *comm_create(MPI_Comm comm)
{
	struct oc_comm *oc = calloc(1, sizeof(*oc));
	struct spare *spare = oc ? NULL : take_spare();

	if (spare)
		oc = &spare->oc;
	if (!oc)
		return NULL;
	oc->outcome = OC_OUTCOME_EARLY;
	if (!pmpi()->Comm_size(comm, &oc->size) && !pmpi()->Comm_rank(comm, &oc->rank))
		return oc;
	comm_free(oc);
	return NULL;
}

/* @oc, or what takes its place until the MPI has memory to attach it. */
static struct oc_comm *attach(MPI_Comm comm, struct oc_comm *oc, bool *attached)
{
	struct spare *spare = spare_of(oc);

	*attached = !pmpi()->Comm_set_attr(comm, oc_adapter.keyval, oc);
	if (*attached) {
		if (spare)
			set_waits(spare, comm, false);
		return oc;
	}
	if (!spare) {
		spare = take_spare();
		if (spare)
			spare->oc = *oc;
		comm_free(oc);
	}
	if (!spare)
		return NULL;
	set_waits(spare, comm, true);
	return &spare->oc;
}

static struct oc_comm *lookup(struct oc_call *call, MPI_Comm comm)
{
	struct oc_comm *oc = NULL;
	unsigned int now = __atomic_load_n(&oc_comm_freed, __ATOMIC_ACQUIRE);
	int found = 0, inter = 0;
	bool attached = true;

	if (oc_comm_is_last(comm))
		return oc_comm_last.oc;
	call->outcome = OC_OUTCOME_FREED;
	if (oc_comm_is_freed(comm))
		return NULL;
	call->outcome = OC_OUTCOME_INVALID;
	if (!comm || comm == oc_abi.comm_null)
		return NULL;
	if (pmpi()->Comm_get_attr(comm, oc_adapter.keyval, &oc, &found))
		return NULL;
	if (!found) {
		if (pmpi()->Comm_test_inter(comm, &inter))
			return NULL;
		call->outcome = OC_OUTCOME_INTER;
		if (inter)
			return NULL;
		call->outcome = OC_OUTCOME_SETUP;
		oc = find_waiting(comm);
		if (!oc)
			oc = comm_create(comm);
		if (oc)
			oc = attach(comm, oc, &attached);
		if (!oc) {
			/* The others will wait for this rank, and nobody would know for
			 * what. */
			fprintf(stderr, "onecopy: out of memory for a communicator\n");
			pmpi()->Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
			return NULL;
		}
	}
	if (!attached)
		return oc;
	oc_comm_last = (struct oc_comm_last){.comm = comm, .oc = oc, .freed = now};
	return oc;
}

int oc_comm_ranks(struct oc_call *call, MPI_Comm comm)
{
	int size, inter = 0;

	if (!oc_call_known(call))
		return 0;
	if (!comm || comm == oc_abi.comm_null || pmpi()->Comm_test_inter(comm, &inter) || inter ||
	    pmpi()->Comm_size(comm, &size)) {
		if (oc_adapter.active)
			call->outcome = inter ? OC_OUTCOME_INTER : OC_OUTCOME_INVALID;
		return 0;
	}
	return size;
}

bool oc_comm_rank(struct oc_call *call, MPI_Comm comm, int *rank)
{
	int inter = 0;

	if (!oc_call_known(call) || !oc_call_has_root(call))
		return false;
	if (oc_comm_is_last(comm)) {
		*rank = oc_comm_last.oc->rank;
		return true;
	}
	if (comm && comm != oc_abi.comm_null && !pmpi()->Comm_rank(comm, rank) &&
	    /* A number of this group may be the root of the other. */
	    (*rank != call->root || (!pmpi()->Comm_test_inter(comm, &inter) && !inter)))
		return true;
	if (oc_adapter.active)
		call->outcome = inter ? OC_OUTCOME_INTER : OC_OUTCOME_INVALID;
	return false;
}

struct oc_comm *oc_comm_find(struct oc_call *call, MPI_Comm comm)
{
	return oc_adapter.active ? lookup(call, comm) : NULL;
}

void oc_comm_count(struct oc_call *call, MPI_Comm comm, struct oc_comm *oc, size_t bytes)
{
	size_t credit = bytes < oc_adapter.agreed.credit ? OC_CREDIT_CALL : bytes;

	oc->credit += credit;
	if (oc->credit >= oc_adapter.agreed.credit)
		oc_comm_create_group(comm, oc);
	else
		oc_comm_note(call, oc, credit);
}

/* Whether the MPI did not begin with a call: its arguments are wrong. */
static bool is_refusal(int err)
{
	int class;

	if (pmpi()->Error_class(err, &class))
		return false;
	switch (class) {
	case MPI_ERR_BUFFER:
	case MPI_ERR_COUNT:
	case MPI_ERR_TYPE:
	case MPI_ERR_COMM:
	case MPI_ERR_RANK:
	case MPI_ERR_ROOT:
	case MPI_ERR_OP:
	case MPI_ERR_ARG:
		return true;
	default:
		return false;
	}
}

/* What was refused this rank may make again, and the others have made once. */
void oc_comm_counted(const struct oc_call *call, int err)
{
	/* The program's error handler may have freed it. */
	if (err && call->freed == __atomic_load_n(&oc_comm_freed, __ATOMIC_ACQUIRE) &&
	    is_refusal(err))
		call->counted->credit -= call->credit;
}
