// SPDX-License-Identifier: BSD-3-Clause
/*
 * placement NODES: pages of a block are on the NUMA node of the thread that touches them
 * first, and those of a receive buffer on its rank's, whoever writes it. A thread's node
 * is where it asks for memory. What lies between the blocks of a Gatherv nobody touches: of
 * that alone there is something to see on one node. Exits 77 where there are not so many.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pattern.h"

#define BYTES ((size_t)12 << 20) /* shares no huge page with other blocks */
#define BLOCK ((size_t)6 << 20)	 /* of a rank, in buffers of one for each */
#define HUGE  ((size_t)2 << 20)
#define WIDE  ((size_t)64 << 10) /* of columns */
#define PAGE  ((size_t)4096)
#define BATCH 512
#define ROOT  1

static int nodes, rank, size;
static size_t all;
static char *in, *out; /* of @all bytes: filled, and touched by nobody */

static bool use_node(int node)
{
	unsigned long mask = 1ul << node;

	return nodes == 1 || !syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 8 * sizeof(mask));
}

static size_t count_batch(const void **pages, unsigned long n, int node)
{
	int status[BATCH];
	size_t wrong = 0;

	if (nodes == 1)
		return 0;
	if (syscall(SYS_move_pages, 0, n, pages, NULL, status, 0))
		pattern_fail("move_pages");
	for (unsigned long i = 0; i < n; i++)
		wrong += status[i] != node;
	return wrong;
}

/* Pages of [p, p + bytes) that are elsewhere. Page tables are filled first: what a peer
 * wrote may not be in this rank's. */
static size_t count_elsewhere(const char *p, size_t bytes, int node)
{
	const void *pages[BATCH];
	unsigned long n = 0;
	size_t wrong = 0;

	for (size_t i = 0; i < bytes; i += PAGE) {
		*(volatile const char *)(p + i);
		pages[n++] = p + i;
		if (n < BATCH && i + PAGE < bytes)
			continue;
		wrong += count_batch(pages, n, node);
		n = 0;
	}
	return wrong;
}

static void *touch_half(void *arg)
{
	if (!use_node(1))
		pattern_fail("set_mempolicy");
	memset(arg, 1, BYTES / 2);
	return NULL;
}

static void check_threads(void)
{
	char *block = malloc(BYTES);
	char *half = (char *)(((uintptr_t)block + BYTES / 2) & ~(HUGE - 1));
	pthread_t thread;

	if (pthread_create(&thread, NULL, touch_half, half))
		pattern_fail("a thread");
	use_node(0);
	memset(block, 1, (size_t)(half - block));
	pthread_join(thread, NULL);
	if (count_elsewhere(block + PAGE, (size_t)(half - block) - PAGE, 0) ||
	    count_elsewhere(half, BYTES / 4, 1))
		pattern_fail("a thread's pages are elsewhere");
	free(block);
}

static void check_receive(const char *what, const char *buffer, size_t bytes)
{
	size_t wrong = count_elsewhere(buffer, bytes, rank % nodes);

	if (!wrong)
		return;
	fprintf(stderr, "%s: %zu of %zu pages\n", what, wrong, bytes / PAGE);
	pattern_fail("a receive buffer is elsewhere");
}

/* Each receives at @out, and returns how much. */
static size_t bcast(void)
{
	MPI_Bcast(rank == ROOT ? in : out, (int)all, MPI_BYTE, ROOT, MPI_COMM_WORLD);
	return rank == ROOT ? 0 : all;
}

static size_t gather(void)
{
	MPI_Gather(in, BLOCK, MPI_BYTE, out, BLOCK, MPI_BYTE, ROOT, MPI_COMM_WORLD);
	return rank == ROOT ? all : 0;
}

/* What each rank has is a column of the root's matrix. */
static size_t gather_columns(void)
{
	MPI_Datatype rows, column;

	MPI_Type_vector(BLOCK / WIDE, WIDE, (int)WIDE * size, MPI_BYTE, &rows);
	MPI_Type_create_resized(rows, 0, WIDE, &column);
	MPI_Type_commit(&column);
	MPI_Gather(in, BLOCK, MPI_BYTE, out, 1, column, ROOT, MPI_COMM_WORLD);
	MPI_Type_free(&rows);
	MPI_Type_free(&column);
	return rank == ROOT ? all : 0;
}

static void gather_blocks(int count)
{
	int counts[size], displs[size];

	for (int i = 0; i < size; i++) {
		counts[i] = count;
		displs[i] = i * (int)BLOCK;
	}
	MPI_Gatherv(in, count, MPI_BYTE, out, counts, displs, MPI_BYTE, ROOT, MPI_COMM_WORLD);
}

static size_t gatherv(void)
{
	gather_blocks(BLOCK);
	return rank == ROOT ? all : 0;
}

static size_t gatherv_apart(void)
{
	unsigned char there[(BLOCK - HUGE) / PAGE];

	gather_blocks(HUGE);
	for (int i = 0; i < size && rank == ROOT; i++) {
		char *block = out + (size_t)i * BLOCK;

		if (mincore(block + HUGE, BLOCK - HUGE, there) || memchr(there, 1, sizeof(there)))
			pattern_fail("what is between the blocks has been touched");
		check_receive("a block apart", block, HUGE);
	}
	return 0;
}

static size_t scatter(void)
{
	MPI_Scatter(in, BLOCK, MPI_BYTE, out, BLOCK, MPI_BYTE, ROOT, MPI_COMM_WORLD);
	return BLOCK;
}

static size_t allgather(void)
{
	MPI_Allgather(in, BLOCK, MPI_BYTE, out, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
	return all;
}

static size_t alltoall(void)
{
	MPI_Alltoall(in, BLOCK, MPI_BYTE, out, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
	return all;
}

static size_t alltoall_in_place(void)
{
	memset(out, 1, all);
	MPI_Alltoall(MPI_IN_PLACE, 0, MPI_BYTE, out, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
	return all;
}

static size_t reduce(void)
{
	MPI_Reduce(in, out, (int)(all / 4), MPI_INT, MPI_SUM, ROOT, MPI_COMM_WORLD);
	return rank == ROOT ? all : 0;
}

static size_t allreduce(void)
{
	MPI_Allreduce(in, out, (int)(all / 4), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	return all;
}

static size_t reduce_scatter(void)
{
	MPI_Reduce_scatter_block(in, out, BLOCK / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	return BLOCK;
}

static size_t scan(void)
{
	MPI_Scan(in, out, (int)(all / 4), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	return all;
}

/* To the root from all others. Only the fourth call or later is served. */
static size_t reduce_between(void)
{
	bool receives = rank == ROOT;
	MPI_Comm group, both;

	MPI_Comm_split(MPI_COMM_WORLD, receives, rank, &group);
	MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, receives ? 0 : ROOT, 0, &both);
	for (int i = 0; i < 8; i++)
		MPI_Reduce(receives ? NULL : in, receives ? in : NULL, (int)(WIDE / 4), MPI_INT,
			   MPI_SUM, receives ? MPI_ROOT : 0, both);
	MPI_Reduce(in, out, (int)(all / 4), MPI_INT, MPI_SUM, receives ? MPI_ROOT : 0, both);
	MPI_Comm_free(&both);
	MPI_Comm_free(&group);
	return receives ? all : 0;
}

/* Where ranks have a core each, the sender copies half. */
static size_t message(void)
{
	if (rank == 0)
		MPI_Send(in, (int)all, MPI_BYTE, ROOT, 0, MPI_COMM_WORLD);
	if (rank == ROOT)
		MPI_Recv(out, (int)all, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return rank == ROOT ? all : 0;
}

/* What has been touched stays. Where an origin puts what has not, it is the first. */
static size_t put(void)
{
	MPI_Win win;

	memset(out, 1, all);
	MPI_Win_create(out, (MPI_Aint)all, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_fence(0, win);
	MPI_Put(in, (int)all, MPI_BYTE, (rank + 1) % size, 0, (int)all, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
	return all;
}

static size_t get(void)
{
	MPI_Win win;

	MPI_Win_create(in, (MPI_Aint)all, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_fence(0, win);
	MPI_Get(out, (int)all, MPI_BYTE, (rank + 1) % size, 0, (int)all, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
	return all;
}

static const struct {
	const char *name;
	size_t (*make)(void);
} calls[] = {
	{"bcast", bcast},
	{"gather", gather},
	{"gather of columns", gather_columns},
	{"gatherv", gatherv},
	{"gatherv apart", gatherv_apart},
	{"scatter", scatter},
	{"allgather", allgather},
	{"alltoall", alltoall},
	{"alltoall in place", alltoall_in_place},
	{"reduce", reduce},
	{"allreduce", allreduce},
	{"reduce_scatter", reduce_scatter},
	{"scan", scan},
	{"reduce between groups", reduce_between},
	{"message", message},
	{"put", put},
	{"get", get},
};

/* Twice: the second time in pages that were given back. */
static void check_calls(void)
{
	for (size_t i = 0; i < 2 * sizeof(calls) / sizeof(*calls); i++) {
		size_t received;

		if (madvise(out, all, MADV_DONTNEED))
			pattern_fail("madvise");
		MPI_Barrier(MPI_COMM_WORLD);
		received = calls[i / 2].make();
		check_receive(calls[i / 2].name, out, received);
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	nodes = argc > 1 ? atoi(argv[1]) : 2;
	if (!use_node(nodes - 1))
		return 77;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (nodes > 1)
		check_threads();

	use_node(rank % nodes);
	all = BLOCK * (size_t)size;
	in = aligned_alloc(HUGE, all);
	out = aligned_alloc(HUGE, all);
	if (!in || !out)
		pattern_fail("no memory");
	memset(in, 1, all);
	check_calls();
	MPI_Finalize();
	return 0;
}
