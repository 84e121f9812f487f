// SPDX-License-Identifier: BSD-3-Clause
/*
 * placement NODES: pages of a block are on the NUMA node of the thread that touches them
 * first, and those of a receive buffer on its rank's, whoever writes it. A thread's node
 * is where it asks for memory. Exits 77 where there are not so many nodes.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pattern.h"

#define BYTES ((size_t)12 << 20) /* shares no huge page with other blocks */
#define PAGE  ((size_t)4096)

static int nodes;

static bool use_node(int node)
{
	unsigned long mask = 1ul << node;

	return !syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 8 * sizeof(mask));
}

/* Pages of [p, p + bytes) that are elsewhere. Page tables are filled first: what a peer
 * wrote may not be in this rank's. */
static size_t count_elsewhere(const char *p, size_t bytes, int node)
{
	size_t wrong = 0;

	for (size_t i = 0; i < bytes; i += PAGE) {
		const void *page = p + i;
		int status = -1;

		*(volatile const char *)page;
		if (syscall(SYS_move_pages, 0, 1ul, &page, NULL, &status, 0))
			pattern_fail("move_pages");
		wrong += status != node;
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
	char *half = (char *)(((uintptr_t)block + BYTES / 2) & ~(((uintptr_t)2 << 20) - 1));
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

static void check_receive(const char *what, const char *buffer, size_t bytes, int rank)
{
	size_t wrong = count_elsewhere(buffer, bytes, rank % nodes);

	if (!wrong)
		return;
	fprintf(stderr, "%s: %zu of %zu pages\n", what, wrong, bytes / PAGE);
	pattern_fail("a receive buffer is elsewhere");
}

int main(int argc, char **argv)
{
	char *in, *out, *all;
	int rank, size;

	nodes = argc > 1 ? atoi(argv[1]) : 2;
	if (!use_node(nodes - 1))
		return 77;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	check_threads();

	use_node(rank % nodes);
	in = malloc(BYTES);
	memset(in, 1, BYTES);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int turn = 0; turn < 2; turn++) {
		out = malloc(BYTES);
		all = malloc(BYTES * (size_t)size);
		MPI_Bcast(rank ? out : in, (int)BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
		if (rank)
			check_receive("bcast", out, BYTES, rank);
		MPI_Allgather(in, (int)BYTES, MPI_BYTE, all, (int)BYTES, MPI_BYTE, MPI_COMM_WORLD);
		check_receive("allgather", all, BYTES * (size_t)size, rank);
		/* They are kept: the next ones are fresh. */
	}
	MPI_Finalize();
	return 0;
}
