// SPDX-License-Identifier: BSD-3-Clause
/*
 * How addresses are divided, on machines of all sizes; and what that comes to in one
 * process that has 511 peers, on a machine of 4 TiB.
 */
#include "base/space.h"

#include <sys/mman.h>
#include <unistd.h>

#include "access/window.h"
#include "../peers.h"

#define GIB ((size_t)1 << 30)
#define TIB ((size_t)1 << 40)

enum { RANKS = 512 };

static const struct oc_space large = {
	.span = (size_t)1 << 47, .memory = 4 * TIB, .limit = SIZE_MAX};

/* This test's machine. */
void oc_space_measure(struct oc_space *space)
{
	*space = large;
}

static int check_bounds(const struct oc_space *space, uint32_t nranks)
{
	size_t arena = oc_space_arena(space), tables = arena / 256, sum;
	struct oc_space_windows bounds;

	oc_space_windows(space, nranks, &bounds);
	/* A window is made of a mapping that begins up to a step before it. */
	sum = arena + tables + bounds.total + (bounds.step < arena ? bounds.step : arena);
	CHECK(sum < space->span / 8);
	CHECK(sum <= 20 * space->memory);
	CHECK(sum <= space->limit);
	CHECK(!(bounds.chunk & (bounds.chunk - 1)) && !(bounds.step % bounds.chunk));
	/* A program of which each rank uses its share, in two parts of its arena. */
	CHECK(space->limit < SIZE_MAX || space->memory > space->span / 64 ||
	      bounds.total / 4 * 3 >= space->memory + (size_t)nranks * 4 * bounds.chunk);
	/* Page tables of all ranks together, 8 bytes for 4 KiB. */
	CHECK(bounds.resident == 256 << 20 || bounds.resident / 512 * nranks <= space->memory / 64);
	return 0;
}

static int check_all_bounds(void)
{
	static const int spans[] = {39, 42, 47, 48};

	for (size_t s = 0; s < sizeof(spans) / sizeof(spans[0]); s++)
		for (size_t memory = GIB;
		     memory <= 4 * TIB && memory <= (size_t)1 << (spans[s] - 4);
		     memory = memory / 2 * 3)
			for (uint32_t n = 2; n <= 1024; n *= 2) {
				struct oc_space space = {.span = (size_t)1 << spans[s],
							 .memory = memory,
							 .limit = SIZE_MAX};

				if (check_bounds(&space, n))
					return 1;
				space.limit = 8 * GIB;
				if (check_bounds(&space, n))
					return 1;
			}
	return check_bounds(&large, RANKS);
}

/* Every peer is read and written in many places, by one use or by many. */
static int use_peers(struct peers *peers, uint64_t arena, uint32_t places, bool at_once)
{
	struct oc_node *node = &peers->node;
	struct oc_window_use use;

	oc_window_begin(&use, node);
	for (uint32_t i = 0; i < places; i++)
		for (uint32_t rank = 1; rank < node->nranks; rank++) {
			uint64_t off = (arena / places * i + rank * 8) & ~(uint64_t)7, seen = 0;
			uint64_t *at = (uint64_t *)oc_window_at(&use, node, rank, off, 4096);

			CHECK(at);
			*at = off + rank;
			CHECK(pread(peers->fd[rank % PEERS_FILES], &seen, sizeof(seen),
				    (off_t)off) == sizeof(seen));
			CHECK(seen == off + rank);
			if (!at_once) {
				oc_window_end(&use);
				oc_window_begin(&use, node);
			}
		}
	oc_window_end(&use);
	return 0;
}

int main(void)
{
	size_t arena = oc_space_arena(&large);
	struct peers peers;
	uint64_t mapped;
	bool apart;
	void *own;
	int fd;

	if (check_all_bounds())
		return 1;
	if (peers_status("VmSize") > TIB) {
		fprintf(stderr, "skipped: a sanitizer's shadow takes the addresses\n");
		return 77;
	}
	CHECK(peers_create(&peers, RANKS, arena));
	fd = memfd_create("own-arena", MFD_CLOEXEC);
	CHECK(fd >= 0 && !ftruncate(fd, (off_t)arena));
	own = mmap(NULL, arena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	CHECK(own != MAP_FAILED);

	if (use_peers(&peers, arena, 2, true))
		return 1;
	mapped = peers_mapped(&apart);
	CHECK(apart && mapped > 2ull * RANKS << 20);
	if (use_peers(&peers, arena, 30, false))
		return 1;
	mapped = peers_mapped(&apart);
	printf("own arena %zu GiB, peers' %llu GiB, VmSize %llu GiB\n", arena / GIB,
	       (unsigned long long)mapped / GIB, (unsigned long long)peers_status("VmSize") / GIB);
	CHECK(apart && mapped > TIB);
	CHECK(peers_status("VmPeak") < large.span / 8);
	peers_destroy(&peers);
	CHECK(!peers_mapped(&apart));
	return 0;
}
