// SPDX-License-Identifier: BSD-3-Clause
#include "adapter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "env.h"

/* The communicator looked up last. Handles are used again after MPI_Comm_free,
 * so a count of freed ones says whether it still holds. */
static _Thread_local struct {
	MPI_Comm comm;
	struct oc_comm *oc;
	unsigned int freed;
} last;
static unsigned int freed;

static void drive_progress(void)
{
	int flag;

	/* Nothing is ever sent on this communicator: the look alone makes the
	 * MPI move what is in flight. */
	pmpi()->Iprobe(0, 0, oc_adapter.probe, &flag, MPI_STATUS_IGNORE);
}

/* A duplicate gets a group of its own. */
static int comm_copied(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
	*flag = 0;
	return MPI_SUCCESS;
}

static int comm_deleted(MPI_Comm comm, int keyval, void *value, void *extra)
{
	struct oc_comm *oc = value;

	__atomic_add_fetch(&freed, 1, __ATOMIC_RELEASE);
	/* A communicator the program never freed may outlive the node. */
	if (oc->group && oc_adapter.node)
		oc_group_destroy(oc->group);
	free(oc);
	return MPI_SUCCESS;
}

int oc_comm_setup(void)
{
	if (pmpi()->Comm_create_keyval(comm_copied, comm_deleted, &oc_adapter.keyval, NULL))
		return -EIO;
	if (pmpi()->Comm_dup(oc_abi.comm_self, &oc_adapter.probe)) {
		pmpi()->Comm_free_keyval(&oc_adapter.keyval);
		return -EIO;
	}
	return 0;
}

void oc_comm_teardown(void)
{
	struct oc_comm *oc;
	int found = 0;

	/* MPI_COMM_WORLD is never freed. */
	if (!pmpi()->Comm_get_attr(oc_abi.comm_world, oc_adapter.keyval, &oc, &found) && found)
		pmpi()->Comm_delete_attr(oc_abi.comm_world, oc_adapter.keyval);
	pmpi()->Comm_free(&oc_adapter.probe);
	pmpi()->Comm_free_keyval(&oc_adapter.keyval);
}

/* Node ranks of the communicator's members; false if one is elsewhere. */
static bool members_on_node(MPI_Comm comm, int size, int *node_ranks)
{
	int *ranks = calloc(2 * (size_t)size, sizeof(*ranks));
	MPI_Group group;
	bool here = false;

	if (!ranks)
		return false;
	if (pmpi()->Comm_group(comm, &group))
		goto out;
	for (int i = 0; i < size; i++)
		ranks[i] = i;
	here = !pmpi()->Group_translate_ranks(group, size, ranks, oc_adapter.world_group,
					      ranks + size);
	for (int i = 0; i < size && here; i++) {
		int world = ranks[size + i];

		here = world >= 0 && world < oc_adapter.world_size &&
		       oc_adapter.node_of_world[world] >= 0;
		if (here)
			node_ranks[i] = oc_adapter.node_of_world[world];
	}
	pmpi()->Group_free(&group);
out:
	free(ranks);
	return here;
}

/* Collective: every member comes here at the same call. */
static void create_group(MPI_Comm comm, struct oc_comm *oc)
{
	struct oc_group_card *cards = NULL;
	int *node_ranks = NULL;

	oc->tried = true;
	if (oc->size < 2 || oc->size > OC_MAX_RANKS)
		return;
	node_ranks = calloc((size_t)oc->size, sizeof(*node_ranks));
	cards = calloc((size_t)oc->size, sizeof(*cards));
	if (!node_ranks || !cards) {
		/* The peers wait in the exchange below. */
		oc_comm_fail(comm, -ENOMEM);
		goto out;
	}
	if (!members_on_node(comm, oc->size, node_ranks))
		goto out;
	oc_group_offer(oc_adapter.node, &cards[oc->rank]);
	if (pmpi()->Allgather(MPI_IN_PLACE, 0, oc_abi.byte, cards, (int)sizeof(*cards), oc_abi.byte,
			      comm))
		goto out;
	if (oc_group_create(oc_adapter.node, cards, (uint32_t)oc->size, (uint32_t)oc->rank,
			    &oc->group) == 0)
		oc->group->progress = drive_progress;
	else
		oc_note("a communicator of %d ranks is left to the MPI: a member has no endpoint "
			"or no shared heap",
			oc->size);
out:
	free(node_ranks);
	free(cards);
}

static struct oc_comm *lookup(MPI_Comm comm)
{
	struct oc_comm *oc = NULL;
	unsigned int now = __atomic_load_n(&freed, __ATOMIC_ACQUIRE);
	int found = 0, inter = 0;

	if (last.comm == comm && last.freed == now && last.oc)
		return last.oc;
	if (!comm || comm == oc_abi.comm_null)
		return NULL;
	if (pmpi()->Comm_get_attr(comm, oc_adapter.keyval, &oc, &found))
		return NULL;
	if (!found) {
		if (pmpi()->Comm_test_inter(comm, &inter) || inter)
			return NULL;
		oc = calloc(1, sizeof(*oc));
		if (!oc || pmpi()->Comm_size(comm, &oc->size) ||
		    pmpi()->Comm_rank(comm, &oc->rank) ||
		    pmpi()->Comm_set_attr(comm, oc_adapter.keyval, oc)) {
			free(oc);
			return NULL;
		}
	}
	last.comm = comm;
	last.oc = oc;
	last.freed = now;
	return oc;
}

struct oc_comm *oc_comm_get(MPI_Comm comm, size_t bytes)
{
	struct oc_comm *oc;

	if (!oc_adapter.active)
		return NULL;
	oc = lookup(comm);
	if (!oc)
		return NULL;
	if (!oc->tried) {
		oc->credit += bytes;
		if (oc->credit >= oc_adapter.agreed.credit)
			create_group(comm, oc);
	}
	return oc->group ? oc : NULL;
}

int oc_comm_fail(MPI_Comm comm, int err)
{
	const char *what = err == -EPIPE      ? "a rank of the communicator died"
			   : err == -EMSGSIZE ? "ranks passed different amounts of data"
			   : err == -ENOMEM   ? "out of memory"
					      : "internal error";
	int code = err == -EMSGSIZE ? MPI_ERR_TRUNCATE
		   : err == -ENOMEM ? MPI_ERR_NO_MEM
				    : MPI_ERR_OTHER;

	fprintf(stderr, "onecopy: %s, in a collective call\n", what);
	pmpi()->Comm_call_errhandler(comm, code);
	return code;
}
