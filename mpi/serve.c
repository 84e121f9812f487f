// SPDX-License-Identifier: BSD-3-Clause
#include "adapter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <onecopy/onecopy.h>

#include "env.h"
#include "heap.h"
#include "../preload/malloc.h"

struct oc_counter oc_counters[OC_COLL_COUNT];

struct oc_shape oc_shape_of(const struct oc_comm *oc, enum oc_coll coll, int root, size_t bytes)
{
	struct oc_shape shape;

	memset(&shape, 0, sizeof(shape));
	shape.coll = (uint16_t)coll;
	shape.rank = (uint16_t)oc->rank;
	shape.size = (uint16_t)oc->size;
	shape.root = (uint16_t)root;
	shape.granule = 1;
	shape.bytes = bytes;
	/* With a CPU for each rank, a copy more costs what a wait less saves. */
	shape.eager = oc_adapter.node->oversubscribed &&
		      oc_coll_eager_bytes(&shape) <= oc_adapter.agreed.eager;
	return shape;
}

bool oc_streams(size_t bytes)
{
	return bytes >= oc_adapter.agreed.stream;
}

static struct oc_plan *generate(const struct oc_shape *shape)
{
	if (shape->eager)
		return oc_coll_eager(shape);
	switch (shape->coll) {
	case OC_COLL_BCAST:
		return oc_coll_bcast(shape);
	case OC_COLL_SCATTER:
		return oc_coll_scatter(shape);
	case OC_COLL_GATHER:
		return oc_coll_gather(shape);
	case OC_COLL_ALLGATHER:
		return oc_coll_allgather(shape);
	case OC_COLL_ALLTOALL:
		return oc_coll_alltoall(shape);
	case OC_COLL_REDUCE:
		return oc_coll_reduce(shape);
	case OC_COLL_ALLREDUCE:
		return oc_coll_allreduce(shape);
	case OC_COLL_BARRIER:
		return oc_coll_barrier(shape);
	default:
		return NULL;
	}
}

/* The plan for @shape, made at most once while it stays in its cache slot. */
static struct oc_plan *cached_plan(struct oc_group *group, const struct oc_shape *shape)
{
	uint64_t hash = (shape->bytes * 31 + shape->root) * 31 + shape->coll * 7 + shape->granule +
			shape->in_place;
	struct oc_plan **slot;

	hash *= 0x9e3779b97f4a7c15u;
	slot = &group->plans[(hash >> 32) % OC_GROUP_PLANS];
	if (*slot && !memcmp(&(*slot)->shape, shape, sizeof(*shape)))
		return *slot;
	oc_plan_destroy(*slot);
	*slot = generate(shape);
	if (*slot && (*slot)->failed) {
		oc_plan_destroy(*slot);
		*slot = NULL;
	}
	return *slot;
}

/*
 * How peers get at a send buffer outside the heap that the module could copy and
 * has not mapped. One reader is served soonest by a pipeline; where every rank
 * reads every other, staging would double the traffic of all of them.
 */
static bool reads_by_call(const struct oc_shape *shape)
{
	if (!(oc_env()->mech & OC_MECH_STAGED))
		return true;
	switch (shape->coll) {
	case OC_COLL_ALLGATHER:
	case OC_COLL_ALLGATHERV:
	case OC_COLL_ALLTOALL:
	case OC_COLL_ALLTOALLV:
	case OC_COLL_GATHER:
	case OC_COLL_GATHERV:
		return true;
	default:
		return false;
	}
}

static int run(struct oc_comm *oc, MPI_Comm comm, int prepared, const struct oc_plan *plan,
	       struct oc_bind *bind)
{
	struct oc_counter *counter;
	int err;

	if (prepared || !plan || plan->failed) {
		oc_exec_decline(oc->group);
		return oc_comm_raise(comm, prepared ? prepared : MPI_ERR_NO_MEM);
	}
	counter = &oc_counters[plan->shape.coll];
	bind->call = reads_by_call(&plan->shape);
	err = oc_exec_inline(oc->group, plan, bind);
	if (err)
		return oc_comm_fail(comm, err);
	counter->served++;
	counter->bytes += plan->shape.bytes;
	return MPI_SUCCESS;
}

int oc_serve(struct oc_comm *oc, MPI_Comm comm, int prepared, const struct oc_shape *shape,
	     struct oc_bind *bind)
{
	return run(oc, comm, prepared, cached_plan(oc->group, shape), bind);
}

int oc_serve_plan(struct oc_comm *oc, MPI_Comm comm, int prepared, struct oc_plan *plan,
		  struct oc_bind *bind)
{
	int err = run(oc, comm, prepared, plan, bind);

	oc_plan_destroy(plan);
	return err;
}

int oc_serve_absent(struct oc_comm *oc, MPI_Comm comm)
{
	struct oc_ep_line *line = oc_group_begin(oc->group);

	if (!line)
		return oc_comm_fail(comm, -EPIPE);
	atomic_store_explicit(&line->flags, 0, memory_order_relaxed);
	oc_group_post(oc->group, OC_STAGE_READY);
	return MPI_SUCCESS;
}

/* Appends to a line that is written in one piece, so that ranks do not mix. */
struct line {
	char text[4096];
	size_t used;
};

static void __attribute__((format(printf, 2, 3))) put(struct line *line, const char *fmt, ...)
{
	size_t left = sizeof(line->text) - line->used;
	__builtin_va_list args;
	int len;

	__builtin_va_start(args, fmt);
	len = vsnprintf(line->text + line->used, left, fmt, args);
	__builtin_va_end(args);
	if (len > 0)
		line->used += (size_t)len < left ? (size_t)len : left - 1;
}

static const char *heap_state(void)
{
	const char *declined = oc_malloc_declined();

	return declined ? declined : oc_heap_reason();
}

void oc_stats_write(void)
{
	static const char *const colls[OC_COLL_COUNT] = {
		[OC_COLL_BCAST] = "bcast",	   [OC_COLL_SCATTER] = "scatter",
		[OC_COLL_GATHER] = "gather",	   [OC_COLL_ALLGATHER] = "allgather",
		[OC_COLL_ALLTOALL] = "alltoall",   [OC_COLL_REDUCE] = "reduce",
		[OC_COLL_ALLREDUCE] = "allreduce", [OC_COLL_REDUCE_SCATTER] = "reduce_scatter",
		[OC_COLL_BARRIER] = "barrier",	   [OC_COLL_SCATTERV] = "scatterv",
		[OC_COLL_GATHERV] = "gatherv",	   [OC_COLL_ALLGATHERV] = "allgatherv",
		[OC_COLL_ALLTOALLV] = "alltoallv",
	};
	const struct oc_group_stats *moved = &oc_group_stats;
	const struct {
		const char *name;
		uint64_t calls, bytes;
	} mechs[] = {
		{"heap", moved->heap_calls, moved->heap_bytes},
		{"map", moved->map_calls, moved->map_bytes},
		{"kcopy", moved->kcopy_calls, moved->kcopy_bytes},
		{"cma", moved->cma_calls, moved->cma_bytes},
		{"staged", moved->staged_calls, moved->staged_bytes},
	};
	static struct line line;
	const struct oc_node *node = oc_adapter.node;
	const char *path = oc_env()->stats;
	const char *comma = "";
	int fd;

	if (!path)
		return;
	put(&line, "{\"rank\":%u,\"nranks\":%u,\"version\":\"%d.%d.0\",", node ? node->rank : 0,
	    node ? node->nranks : 1, ONECOPY_VERSION_MAJOR, ONECOPY_VERSION_MINOR);
	put(&line, "\"idle\":\"%s\",\"heap\":\"%s\",\"calls\":{",
	    oc_adapter.idle ? oc_adapter.idle : "", node ? heap_state() : "");
	for (int c = 0; c < OC_COLL_COUNT; c++) {
		const struct oc_counter *n = &oc_counters[c];

		if (!colls[c] || (!n->served && !n->passed))
			continue;
		put(&line, "%s\"%s\":{\"served\":%llu,\"passed\":%llu,\"bytes\":%llu}", comma,
		    colls[c], (unsigned long long)n->served, (unsigned long long)n->passed,
		    (unsigned long long)n->bytes);
		comma = ",";
	}
	put(&line, "},\"mech\":{");
	for (int m = 0; m < OC_MECH_COUNT; m++)
		put(&line, "%s\"%s\":{\"calls\":%llu,\"bytes\":%llu}", m ? "," : "", mechs[m].name,
		    (unsigned long long)mechs[m].calls, (unsigned long long)mechs[m].bytes);
	put(&line, "}}\n");
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, line.text, line.used) != (ssize_t)line.used)
		oc_note("cannot write statistics to %s", path);
	if (fd >= 0)
		close(fd);
}
