// SPDX-License-Identifier: BSD-3-Clause
/*
 * How a collective that failed is reported: by an error of the MPI's, through the
 * communicator's error handler. Where that ends the job, a line says what the MPI's
 * message cannot: which collective, and of a death whose.
 */
#include "failure.h"

#include <ctype.h>
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

struct name {
	char text[32];
};

/* As the standard has it. */
static struct name name_of(enum oc_coll coll)
{
	const char *word = oc_call_name(coll);
	struct name name;

	snprintf(name.text, sizeof(name.text), "MPI_%c%s", toupper(word[0]), word + 1);
	return name;
}

/* Which group a rank of a communicator's is in, as this rank sees it, and its rank there. */
static const char *group_of(const struct oc_comm *oc, int rank)
{
	return !oc->there ? "the communicator" : oc->there[rank] ? "the other group" : "this group";
}

static int rank_in_group(const struct oc_comm *oc, int rank)
{
	int before = 0;

	if (!oc->there)
		return rank;
	for (int i = 0; i < rank; i++)
		before += oc->there[i] == oc->there[rank];
	return before;
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
	fatal = handler == oc_abi.errors_are_fatal || oc_abi_aborts(handler);
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
			 name_of(coll).text);
		return;
	}
	gethostname(host, sizeof(host) - 1);
	at = group->node_rank[dead];
	snprintf(text, len,
		 "rank %d of MPI_COMM_WORLD (rank %d of %s, process %u on %s) died, noticed in %s",
		 world_rank(at), rank_in_group(oc, dead), group_of(oc, dead),
		 group->node->ranks[at].pid, host, name_of(coll).text);
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
	} else if (failure == -EFAULT) {
		what = "a buffer is at no address, here or on another rank";
		code = MPI_ERR_BUFFER;
	} else if (failure == -EINVAL) {
		what = "wrong arguments on another rank, or data there that the MPI cannot convert";
		code = MPI_ERR_TYPE;
	} else if (failure > 0) {
		what = "the MPI cannot convert the data of a buffer";
		code = failure;
	}
	if (is_fatal(comm) || oc_env()->verbose)
		fprintf(stderr, "onecopy: %s on rank %d of %s: %s\n", name_of(coll).text,
			rank_in_group(oc, oc->rank), group_of(oc, oc->rank), what);
	pmpi()->Comm_call_errhandler(comm, code);
	return code;
}
