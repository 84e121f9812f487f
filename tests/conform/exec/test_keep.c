// SPDX-License-Identifier: BSD-3-Clause
/* What memory of the arena operations take, and how long. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "coll.h"
#include "exec/inline.h"
#include "heap/heap.h"
#include "../members.h"
#include "../share.h"

enum { GROUPS = 600, BYTES = 256 << 10, LONG_BYTES = 24 << 20 };

/* Of the arena, in use or kept for later. */
static size_t arena_bytes(void)
{
	struct stat st;

	CHECK(!fstat(oc_heap_fd(), &st));
	return (size_t)st.st_blocks * 512;
}

/* Memory no peer can reach. */
static void *foreign(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static struct oc_plan *plan_allreduce(const struct job *job, uint64_t bytes)
{
	struct oc_shape shape = {.coll = OC_COLL_ALLREDUCE,
				 .rank = (uint16_t)job->rank,
				 .size = (uint16_t)job->nranks,
				 .granule = sizeof(double),
				 .bytes = bytes};
	struct oc_plan *plan = oc_coll_allreduce(&shape);

	CHECK(plan);
	return plan;
}

/* Sums ranks and places, and checks the sums. */
static void sum(struct job *job, struct oc_group *group, double *send, double *recv, size_t bytes)
{
	struct oc_plan *plan = plan_allreduce(job, bytes);
	struct oc_bind bind = {.send = send,
			       .send_bytes = bytes,
			       .recv = recv,
			       .recv_bytes = bytes,
			       .scratch_bytes = oc_coll_slice_max(&plan->shape, bytes),
			       .op = OC_SUM,
			       .type = OC_DOUBLE};
	size_t n = bytes / sizeof(double);
	double ranks = job->nranks * (job->nranks - 1) / 2.0;

	for (size_t i = 0; i < n; i++)
		send[i] = job->rank + (double)i;
	CHECK_EQ(oc_exec_inline(group, plan, &bind), 0);
	for (size_t i = 0; i < n; i++)
		CHECK(recv[i] == ranks + (double)(i * job->nranks));
	free(plan);
}

/* Hundreds of communicators stage and reduce in the memory that one needs. */
static void test_groups(struct job *job)
{
	static struct oc_group *groups[GROUPS];
	oc_node *node = job_join(job);
	double *send = foreign(BYTES), *recv = foreign(BYTES);

	for (int i = 0; i < GROUPS; i++) {
		groups[i] = members_join(job, node);
		sum(job, groups[i], send, recv, BYTES);
	}
	/* Each operation stages BYTES and has a scratch slot of at most half of that; mimalloc 3
	 * may have another block for the one just freed. */
	CHECK(arena_bytes() <= 4 * (size_t)BYTES);
	CHECK_EQ(oc_node_barrier(node), 0);
	for (int i = 0; i < GROUPS; i++)
		oc_group_destroy(groups[i]);
	oc_node_leave(node);
}

/* Where peers reach the receive slots, no scratch slot is taken. */
static void test_direct(struct job *job)
{
	oc_node *node = job_join(job);
	struct oc_group *group = members_join(job, node);
	double *send = oc_alloc(LONG_BYTES), *recv = oc_alloc(LONG_BYTES);
	size_t before, after;

	CHECK(send && recv);
	memset(send, 1, LONG_BYTES);
	memset(recv, 1, LONG_BYTES);
	before = arena_bytes();
	for (int i = 0; i < 3; i++) {
		sum(job, group, send, recv, LONG_BYTES);
		CHECK_EQ(oc_group_line(group, group->seq, job->rank)->scratch, 0);
	}
	after = arena_bytes();
	/* Parcels, where windows are too small. */
	CHECK(after - before <= (128u << 10));
	CHECK_EQ(oc_node_barrier(node), 0);
	oc_free(send);
	oc_free(recv);
	oc_group_destroy(group);
	oc_node_leave(node);
}

/* What an operation that failed has staged serves the next one: it returns when no member
 * may still read it. */
static void test_failed(struct job *job)
{
	oc_node *node = job_join(job);
	struct oc_group *group = members_join(job, node), *other = members_join(job, node);
	double *send = foreign(BYTES), *recv = foreign(BYTES);
	struct oc_plan *plan = plan_allreduce(job, job->rank ? BYTES / 2 : BYTES);
	struct oc_bind bind = {.send = send,
			       .send_bytes = plan->shape.bytes,
			       .recv = recv,
			       .recv_bytes = plan->shape.bytes,
			       .scratch_bytes = BYTES,
			       .op = OC_SUM,
			       .type = OC_DOUBLE};

	for (int i = 0; i < 20; i++)
		CHECK_EQ(oc_exec_inline(group, plan, &bind), -EMSGSIZE);
	sum(job, other, send, recv, BYTES);
	CHECK(arena_bytes() <= 3 * (size_t)BYTES);
	free(plan);
	CHECK_EQ(oc_node_barrier(node), 0);
	oc_group_destroy(group);
	oc_group_destroy(other);
	oc_node_leave(node);
}

int main(int argc, char **argv)
{
	static const struct job_case cases[] = {
		{"groups", 2, 3, test_groups},
		{"direct", 2, 4, test_direct},
		{"failed", 2, 2, test_failed},
	};

	return job_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
