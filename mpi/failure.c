// SPDX-License-Identifier: BSD-3-Clause
/*
 * How a collective that failed is reported: by an error of the MPI's, through the
 * communicator's error handler. Where that ends the job, a line says what the MPI's
 * message cannot: which collective, and of a death whose.
 */
#include "failure.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "adapter.h"
#include "base/env.h"
#include "segment/alive.h"

#define LAUNCHER_MS 2000 /* in which it has noticed a death and ended the job */

static const char *name_of(enum oc_coll coll)
{
	static const char *const names[OC_COLL_COUNT] = {
		[OC_COLL_BCAST] = "MPI_Bcast",
		[OC_COLL_SCATTER] = "MPI_Scatter",
		[OC_COLL_GATHER] = "MPI_Gather",
		[OC_COLL_ALLGATHER] = "MPI_Allgather",
		[OC_COLL_ALLTOALL] = "MPI_Alltoall",
		[OC_COLL_REDUCE] = "MPI_Reduce",
		[OC_COLL_ALLREDUCE] = "MPI_Allreduce",
		[OC_COLL_REDUCE_SCATTER] = "MPI_Reduce_scatter",
		[OC_COLL_BARRIER] = "MPI_Barrier",
		[OC_COLL_SCATTERV] = "MPI_Scatterv",
		[OC_COLL_GATHERV] = "MPI_Gatherv",
		[OC_COLL_ALLGATHERV] = "MPI_Allgatherv",
		[OC_COLL_ALLTOALLV] = "MPI_Alltoallv",
		[OC_COLL_ALLTOALLW] = "MPI_Alltoallw",
		[OC_COLL_SCAN] = "MPI_Scan",
		[OC_COLL_EXSCAN] = "MPI_Exscan",
		[OC_COLL_NEIGHBOR_ALLGATHER] = "MPI_Neighbor_allgather",
		[OC_COLL_NEIGHBOR_ALLGATHERV] = "MPI_Neighbor_allgatherv",
		[OC_COLL_NEIGHBOR_ALLTOALL] = "MPI_Neighbor_alltoall",
		[OC_COLL_NEIGHBOR_ALLTOALLV] = "MPI_Neighbor_alltoallv",
		[OC_COLL_NEIGHBOR_ALLTOALLW] = "MPI_Neighbor_alltoallw",
	};

	return names[coll];
}

int oc_failure_of_code(int code)
{
	return code == MPI_ERR_NO_MEM ? -ENOMEM : code == MPI_ERR_TRUNCATE ? -EMSGSIZE : -EINVAL;
}

static bool is_fatal(MPI_Comm comm)
{
	MPI_Errhandler handler;
	bool fatal;

	if (pmpi()->Comm_get_errhandler(comm, &handler))
		return true;
	fatal = handler == oc_abi.errors_are_fatal;
	pmpi()->Errhandler_free(&handler);
	return fatal;
}

/* An error code with a text of its own; there is one, for the latest death. */
static int code_with(const char *text)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int code = MPI_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!code && pmpi()->Add_error_code(MPI_ERR_OTHER, &code))
		code = MPI_ERR_OTHER;
	if (code != MPI_ERR_OTHER)
		pmpi()->Add_error_string(code, text);
	pthread_mutex_unlock(&lock);
	return code;
}

static int world_rank(uint32_t node_rank)
{
	for (int i = 0; i < oc_adapter.world_size; i++)
		if (oc_adapter.node_of_world[i] == (int)node_rank)
			return i;
	return -1;
}

/* The launcher knows how a process ended and ends the others: it shall have the say. */
static void await_launcher(void)
{
	struct timespec turn = {.tv_nsec = 10000000};

	for (int ms = 0; ms < LAUNCHER_MS; ms += 10)
		nanosleep(&turn, NULL);
}

/* Who died, to @text; one of those who notice says it for all of the node. */
static void tell_death(const struct oc_comm *oc, enum oc_coll coll, char *text, size_t len)
{
	const struct oc_group *group = oc->group;
	int dead = oc_group_dead(group);
	char host[64] = "this host";
	uint32_t at;

	if (dead < 0) {
		snprintf(text, len, "a rank of the communicator died, noticed in %s",
			 name_of(coll));
		return;
	}
	gethostname(host, sizeof(host) - 1);
	at = group->node_rank[dead];
	snprintf(text, len,
		 "rank %d of MPI_COMM_WORLD (rank %d of the communicator, process %u on %s) died, "
		 "noticed in %s",
		 world_rank(at), dead, group->node->ranks[at].pid, host, name_of(coll));
	if (oc_node_mourn(group->node, at))
		fprintf(stderr, "onecopy: %s\n", text);
}

static int report_death(const struct oc_comm *oc, MPI_Comm comm, enum oc_coll coll)
{
	char text[MPI_MAX_ERROR_STRING];
	int code;

	tell_death(oc, coll, text, sizeof(text));
	code = code_with(text);
	if (is_fatal(comm))
		await_launcher();
	pmpi()->Comm_call_errhandler(comm, code);
	return code;
}

bool oc_failure_outlived(const struct oc_comm *oc, MPI_Comm comm, enum oc_coll coll, int failure)
{
	char text[MPI_MAX_ERROR_STRING];

	if (is_fatal(comm))
		return false;
	if (failure == -EPIPE)
		tell_death(oc, coll, text, sizeof(text));
	return true;
}

int oc_failure_report(const struct oc_comm *oc, MPI_Comm comm, enum oc_coll coll, int failure)
{
	const char *what = "internal error";
	int code = MPI_ERR_OTHER;

	if (failure == -EPIPE)
		return report_death(oc, comm, coll);
	if (failure == -EMSGSIZE || failure == MPI_ERR_TRUNCATE) {
		what = "ranks passed different amounts of data";
		code = MPI_ERR_TRUNCATE;
	} else if (failure == -ENOMEM || failure == MPI_ERR_NO_MEM) {
		what = failure < 0 ? "out of memory, here or on another rank" : "out of memory";
		code = MPI_ERR_NO_MEM;
	} else if (failure == -EINVAL) {
		what = "the MPI cannot convert the data of a buffer of another rank";
		code = MPI_ERR_TYPE;
	} else if (failure > 0) {
		what = "the MPI cannot convert the data of a buffer";
		code = failure;
	}
	if (is_fatal(comm) || oc_env()->verbose)
		fprintf(stderr, "onecopy: %s on rank %d of the communicator: %s\n", name_of(coll),
			oc->rank, what);
	pmpi()->Comm_call_errhandler(comm, code);
	return code;
}
