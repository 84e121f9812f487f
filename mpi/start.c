// SPDX-License-Identifier: BSD-3-Clause
/*
 * Where a rank begins, in MPI_Init or in its first session: the ranks of MPI_COMM_WORLD, or of
 * mpi://WORLD, on this machine that run under us form a node. Every step that can fail is voted on,
 * so that either all of them are served or none.
 */
#include "start.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <onecopy/onecopy.h>

#include "../preload/malloc.h"
#include "../procvm/procvm.h"
#include "adapter.h"
#include "base/env.h"
#include "buffer.h"
#include "call.h"
#include "comm.h"
#include "discovery.h"
#include "exec/group.h"
#include "heap/heap.h"
#include "inter.h"
#include "look.h"
#include "operator.h"
#include "record.h"
#include "rma_window.h"
#include "tell.h"
#include "tune.h"
#include "typemap.h"

#define VERSION ((uint32_t)ONECOPY_VERSION_MAJOR << 16 | ONECOPY_VERSION_MINOR)

#define DISCOVERY_TAG 1 /* of the communicator's making, not of messages */

static const char cannot_tell[] = "the MPI cannot tell this machine's ranks";
static const char not_found[] = "this machine's ranks did not all find each other";

/* Logical and over the node's ranks. */
static bool all_agree(MPI_Comm node_comm, bool mine)
{
	int in = mine, out = 0;

	if (pmpi()->Allreduce(&in, &out, 1, oc_abi.integer, oc_abi.land, node_comm))
		return false;
	return out;
}

/* Only an MPI that takes pointers to a GPU's memory is ever given them, and
 * nothing would tell us which ones they are. */
static bool takes_device_pointers(void)
{
	static const struct {
		const char *query, *device;
	} kinds[] = {
		{"MPIX_Query_cuda_support", "/dev/nvidiactl"},
		{"MPIX_Query_rocm_support", "/dev/kfd"}, /* Open MPI */
		{"MPIX_Query_hip_support", "/dev/kfd"},	 /* MPICH */
		{"MPIX_Query_ze_support", "/dev/dri"},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int (*query)(void) = oc_pmpi_symbol(kinds[i].query);

		if (query && query() && !access(kinds[i].device, F_OK))
			return true;
	}
	return false;
}

/* Open MPI 5 then lets a rank take a communicator away under calls of the others (ULFM's revoke),
 * which nobody who waits for a peer in ours would hear of. */
static bool outlives_ranks(void)
{
	const bool *enabled = oc_pmpi_symbol("ompi_ftmpi_enabled");

	return enabled && *enabled;
}

static const char *unwilling(void)
{
	if (oc_env()->off && !oc_env()->profile)
		return "ONECOPY=off";
	if (!oc_env()->mech)
		return "ONECOPY_MECH names no mechanism";
	if (takes_device_pointers())
		return "this MPI takes pointers to GPU memory, and there is a GPU";
	if (outlives_ranks())
		return "this MPI goes on after ranks have died (mpirun --with-ft)";
	if (oc_buffer_setup())
		return "this MPI packs data in a form of its own";
	if (!oc_env()->profile && (oc_heap_init() || oc_heap_fd() < 0))
		return oc_heap_reason();
	return NULL;
}

static int map_world(MPI_Comm node_comm, int node_size)
{
	MPI_Group node_group;
	int *ranks;
	int err = -ENOMEM;

	ranks = calloc(2 * (size_t)node_size, sizeof(*ranks));
	oc_adapter.node_of_world = malloc((size_t)oc_adapter.world_size * sizeof(int));
	if (!ranks || !oc_adapter.node_of_world)
		goto out;
	memset(oc_adapter.node_of_world, -1, (size_t)oc_adapter.world_size * sizeof(int));
	for (int i = 0; i < node_size; i++)
		ranks[i] = i;
	err = -EIO;
	if (pmpi()->Comm_group(node_comm, &node_group))
		goto out;
	if (!pmpi()->Group_translate_ranks(node_group, node_size, ranks, oc_adapter.world_group,
					   ranks + node_size)) {
		for (int i = 0; i < node_size; i++)
			oc_adapter.node_of_world[ranks[node_size + i]] = i;
		err = 0;
	}
	pmpi()->Group_free(&node_group);
out:
	free(ranks);
	return err;
}

/* Rank 0 of the node decides what has to be alike on all of them. */
static int agree(MPI_Comm node_comm, int node_rank, int ranks)
{
	struct oc_agreed *agreed = &oc_adapter.agreed;
	uint64_t key[2];

	if (node_rank == 0) {
		/* On failure the name is merely guessable; peers check uids. */
		if (getrandom(key, sizeof(key), 0) != sizeof(key))
			key[0] = key[1] = (uint64_t)getpid();
		snprintf(agreed->name, sizeof(agreed->name), "%016llx%016llx",
			 (unsigned long long)key[0], (unsigned long long)key[1]);
		oc_tune_defaults(agreed, oc_env(), ranks);
		agreed->operators = oc_operator_digest();
		agreed->version = VERSION;
		agreed->profile = oc_env()->profile;
	}
	return pmpi()->Bcast(agreed, (int)sizeof(*agreed), oc_abi.byte, 0, node_comm) ? -EIO : 0;
}

static bool is_agreed(void)
{
	return oc_adapter.agreed.version == VERSION &&
	       oc_adapter.agreed.operators == oc_operator_digest() &&
	       oc_adapter.agreed.profile == oc_env()->profile;
}

/* Gives each rank a connection that breaks when another one gives up, so that nobody waits
 * for it in the join. Collective, with one answer. */
static bool meet(MPI_Comm node_comm, int node_rank, int node_size)
{
	int all[OC_MAX_RANKS], found[OC_MAX_RANKS];
	const int *peer_fds;
	int fd;

	if (oc_discovery_sockets(&fd, &peer_fds))
		return true;
	if (!all_agree(node_comm, oc_discovery_announce_as(oc_adapter.agreed.name, node_rank)))
		return false;
	for (int i = 0; i < node_size; i++)
		all[i] = i;
	if (oc_discovery_find(node_size, found, OC_MAX_RANKS) == node_size)
		return oc_discovery_agree(all, node_size, true);
	oc_discovery_withdraw();
	return false;
}

static int join(int node_rank, int node_size)
{
	struct oc_node_attr attr = {
		.size = sizeof(attr),
		.rank = (uint32_t)node_rank,
		.nranks = (uint32_t)node_size,
		.timeout_ms = 20000,
	};
	int err;

	oc_discovery_sockets(&attr.fd, &attr.peer_fds);
	err = oc_node_join(&attr, &oc_adapter.node);
	if (!err) {
		oc_heap_share((unsigned int)node_size);
		return 0;
	}
	/* So that those who are still in it hear of it. */
	oc_discovery_withdraw();
	oc_note("cannot join the node's processes: %s", strerror(-err));
	return err;
}

/* The MPI's own messages. */
static void begin_messages(void)
{
	struct oc_procvm_counts counts = {NULL};

	if (oc_record)
		counts = (struct oc_procvm_counts){
			oc_record->message_calls,
			oc_record->message_bytes,
			&oc_record->helped_bytes,
		};
	if (oc_env()->messages_off || !(oc_env()->mech & OC_MECH_HEAP))
		return;
	if (oc_procvm_begin(oc_adapter.node, (size_t)oc_adapter.agreed.stream, &counts))
		oc_note("no memory to answer for messages");
	else
		oc_look_begin();
}

/* All or nothing. */
static bool set_up(MPI_Comm node_comm, int node_size)
{
	if (map_world(node_comm, node_size) || oc_typemap_setup())
		return false;
	if (oc_comm_setup())
		goto out_typemap;
	if (oc_inter_setup())
		goto out_comm;
	if (oc_rma_setup())
		goto out_inter;
	return true;
out_inter:
	oc_inter_teardown();
out_comm:
	oc_comm_teardown();
out_typemap:
	oc_typemap_teardown();
	return false;
}

static void take_down(void)
{
	oc_rma_teardown();
	oc_inter_teardown();
	oc_comm_teardown();
	oc_typemap_teardown();
}

static void leave(void)
{
	oc_group_forget(oc_adapter.node);
	oc_node_leave(oc_adapter.node);
	oc_adapter.node = NULL;
	free(oc_adapter.node_of_world);
	oc_adapter.node_of_world = NULL;
}

/*
 * Programs a rank executes are no ranks: let them start without this library.
 * Takes our own entry out of LD_PRELOAD and leaves the others.
 */
static void spare_children(void)
{
	const char *list = getenv("LD_PRELOAD");
	Dl_info self;
	char *rest, *to;

	if (!list || !dladdr(&oc_adapter, &self))
		return;
	rest = to = malloc(strlen(list) + 1);
	if (!rest)
		return;
	while (*list) {
		size_t len = strcspn(list, " :");

		if (len && (strlen(self.dli_fname) != len || strncmp(list, self.dli_fname, len))) {
			if (to != rest)
				*to++ = ':';
			memcpy(to, list, len);
			to += len;
		}
		list += len + (list[len] != '\0');
	}
	*to = '\0';
	if (*rest)
		setenv("LD_PRELOAD", rest, 1);
	else
		unsetenv("LD_PRELOAD");
	free(rest);
}

/* NULL, or why the ranks of @node_comm are left to the MPI. */
static const char *start_node(MPI_Comm node_comm)
{
	const char *why;
	int rank, size;
	bool ready;

	if (pmpi()->Comm_size(node_comm, &size) || pmpi()->Comm_rank(node_comm, &rank))
		return cannot_tell;
	if (size < 2)
		return "one rank on this machine";
	if (size > OC_MAX_RANKS)
		return "too many ranks on this machine";
	oc_adapter.first = rank == 0;
	why = unwilling();
	if (!all_agree(node_comm, !why))
		return why ? why : "another rank of this machine cannot take part";
	if (agree(node_comm, rank, size) || !all_agree(node_comm, is_agreed()))
		return "this machine's ranks have different versions of onecopy or the MPI, or "
		       "not all ONECOPY=profile";
	if (!oc_env()->profile && !meet(node_comm, rank, size))
		return not_found;
	if (!oc_env()->profile && !all_agree(node_comm, join(rank, size) == 0)) {
		leave();
		return "this machine's ranks cannot join";
	}
	ready = set_up(node_comm, size);
	if (!all_agree(node_comm, ready)) {
		if (ready)
			take_down();
		leave();
		return "the MPI refused what has to be set up";
	}
	return NULL;
}

/* A communicator of the ranks @present[@count]; none of the others has to take part. */
static const char *comm_of(bool session, const int *present, int count, MPI_Comm *comm)
{
	MPI_Group group;
	int err = pmpi()->Group_incl(oc_adapter.world_group, count, present, &group);

	/* The last moment at which one rank may fail: the rest of it is the MPI's. */
	if (!oc_discovery_agree(present, count, !err)) {
		if (!err)
			pmpi()->Group_free(&group);
		return not_found;
	}
	err = session ? pmpi()->Comm_create_from_group(group, "onecopy", oc_abi.info_null,
						       oc_abi.errors_return, comm)
		      : pmpi()->Comm_create_group(oc_abi.comm_world, group, DISCOVERY_TAG, comm);
	pmpi()->Group_free(&group);
	return err ? cannot_tell : NULL;
}

/* NULL, with a communicator of this machine's ranks that run under us, or why there is none. */
static const char *find_node(bool session, MPI_Comm *node_comm)
{
	int present[OC_MAX_RANKS], count;

	count = oc_discovery_find(oc_adapter.world_size, present, OC_MAX_RANKS);
	/* Of a session nobody can be asked who may not know of us. */
	if (count < 0)
		return session || pmpi()->Comm_split_type(oc_abi.comm_world, MPI_COMM_TYPE_SHARED,
							  0, oc_abi.info_null, node_comm)
			       ? cannot_tell
			       : NULL;
	if (oc_adapter.world_size < 2)
		return "one rank on this machine";
	if (count < 1)
		return "this rank cannot find the others";
	if (count < 2)
		return "no other rank on this machine runs under onecopy";
	if (count > OC_MAX_RANKS)
		return "too many ranks on this machine";
	return comm_of(session, present, count, node_comm);
}

static const char *not_used(const char *why)
{
	oc_note("not used: %s", why);
	return why;
}

static const char *start(const struct oc_start_session *session)
{
	MPI_Comm node_comm;
	const char *why;

	if (oc_abi_init() || oc_operator_setup())
		return not_used("this MPI library lacks symbols of its ABI");
	oc_adapter.alone = session ? session->alone : oc_abi.comm_self;
	if (session)
		oc_adapter.world_group = session->world;
	else if (pmpi()->Comm_group(oc_abi.comm_world, &oc_adapter.world_group))
		return not_used(cannot_tell);
	if (pmpi()->Group_rank(oc_adapter.world_group, &oc_adapter.world_rank) ||
	    pmpi()->Group_size(oc_adapter.world_group, &oc_adapter.world_size))
		return not_used(cannot_tell);
	oc_adapter.knows_types = true;
	oc_note_rank(oc_adapter.world_rank);
	why = find_node(session, &node_comm);
	if (why)
		return not_used(why);
	oc_note_keep();
	why = start_node(node_comm);
	if (why)
		not_used(why);
	oc_tell_notes(node_comm, oc_adapter.world_rank);
	pmpi()->Comm_free(&node_comm);
	return why;
}

void oc_start_before(void)
{
	oc_discovery_announce();
	if (oc_record_open())
		oc_call_count_anew();
}

void oc_start(const struct oc_start_session *session)
{
	spare_children();
	if (oc_pmpi_is_ours()) {
		oc_adapter.idle = start(session);
	} else {
		oc_adapter.idle = not_used("the MPI is not the one that onecopy's " OC_ABI_NAME
					   " library is made for");
	}
	oc_adapter.active = !oc_adapter.idle;
	/* Where nothing is served the heap would be a cost and no more. */
	if (oc_adapter.active)
		oc_malloc_activate();
	else
		oc_malloc_retire();
	oc_discovery_withdraw();
	oc_record_start();
	if (oc_adapter.node)
		begin_messages();
	if (oc_adapter.active && oc_adapter.first)
		oc_tell_start();
}

void oc_stop(void)
{
	bool quiet;

	if (oc_adapter.active) {
		oc_adapter.active = false;
		take_down();
		oc_look_end();
		quiet = oc_procvm_end();
		oc_record_finish();
		if (quiet)
			leave();
	} else if (oc_adapter.idle) {
		oc_record_finish();
		oc_adapter.idle = NULL;
	}
}
