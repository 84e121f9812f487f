// SPDX-License-Identifier: BSD-3-Clause
/* Windows of peers' arenas, small ones (conform/small_windows.c): that they show the
 * right bytes while they are used, and what is mapped and resident stays within bounds. */
#include "access/window.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../peers.h"
#include "../../random.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

enum { RANKS = 5, ROOM = 32, RESIDENT = 4, THREADS = 3, TURNS = 400, ASKS = 6 };

static const uint64_t arena = 5 * GIB + 64 * MIB;

/* [off, off + len) is memory in one piece, and that of the peer's file. */
static int check_place(struct peers *peers, uint32_t rank, uint64_t off, size_t len)
{
	static _Atomic uint64_t stamps;
	uint64_t stamp = ++stamps, seen[2] = {0};
	struct oc_node *node = &peers->node;
	int fd = peers->fd[rank % PEERS_FILES];
	struct oc_window_use use;
	char *at;

	oc_window_begin(&use, node);
	at = oc_window_at(&use, node, rank, off, len);
	CHECK(at && !(((uintptr_t)at ^ off) % (2 * MIB)));
	memcpy(at, &stamp, sizeof(stamp));
	memcpy(at + len - sizeof(stamp), &stamp, sizeof(stamp));
	CHECK(pread(fd, &seen[0], sizeof(seen[0]), (off_t)off) == sizeof(seen[0]));
	CHECK(pread(fd, &seen[1], sizeof(seen[1]), (off_t)(off + len - sizeof(stamp))) ==
	      sizeof(seen[1]));
	CHECK(seen[0] == stamp && seen[1] == stamp);
	oc_window_end(&use);
	return 0;
}

static int check_places(struct peers *peers)
{
	static const struct {
		uint64_t off;
		size_t len;
	} places[] = {
		{0, 8},
		{arena - 8, 8},
		{arena - 2 * MIB, 2 * MIB},
		{2 * MIB - 8, 16},
		{GIB - 100, 200},
		{GIB - 3 * MIB, 10 * MIB},
		{5 * GIB, 24 * MIB},
		{GIB, 8},
	};
	struct oc_window_use use;

	for (uint32_t rank = 1; rank < RANKS; rank++)
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
			if (check_place(peers, rank, places[i].off, places[i].len))
				return 1;
	oc_window_begin(&use, &peers->node);
	CHECK(!oc_window_at(&use, &peers->node, 1, arena, 1));
	CHECK(!oc_window_at(&use, &peers->node, 1, arena - 1, 2));
	CHECK(!oc_window_at(&use, &peers->node, 1, UINT64_MAX - 1, 4));
	oc_window_end(&use);
	return 0;
}

/* One use may have three quarters of the room, in windows that stay until it ends. */
static int check_room(struct peers *peers)
{
	struct oc_window_use use;
	uint64_t most = 0;
	bool apart;

	for (int turn = 0; turn < 3; turn++) {
		char *at[ROOM] = {NULL};
		size_t n = 0;

		oc_window_begin(&use, &peers->node);
		while (n < ROOM && (at[n] = oc_window_at(&use, &peers->node, 1 + n % 2,
							 (turn * ROOM + n) * 4 * MIB, 4096)))
			*at[n++] = (char)turn;
		CHECK(n == ROOM / 2 / 4 * 3);
		use.urgent = true;
		CHECK(oc_window_at(&use, &peers->node, 3, 0, 4096));
		for (size_t i = 0; i < n; i++)
			CHECK(*at[i] == turn);
		oc_window_end(&use);
		most = peers_mapped(&apart);
		CHECK(apart && most <= ROOM * MIB + RANKS * 8 * 4096);
	}
	return 0;
}

/* What was touched and rests is dropped: page tables and RssShmem stay small. */
static int check_resident(struct peers *peers)
{
	uint64_t before = peers_status("RssShmem");

	for (uint64_t off = 0; off < 96 * MIB; off += MIB) {
		struct oc_window_use use;
		char *at;

		oc_window_begin(&use, &peers->node);
		at = oc_window_at(&use, &peers->node, 1 + off / (8 * MIB) % 3, off, MIB);
		CHECK(at);
		memset(at, 1, MIB);
		oc_window_end(&use);
	}
	CHECK(peers_status("RssShmem") <= before + 2 * RESIDENT * MIB);
	return 0;
}

struct storm {
	struct peers *peers;
	uint64_t seed;
	int failed;
};

/* What a use was given stays what it is until it ends, whatever others do. */
static int run_storm(struct peers *peers, uint64_t seed)
{
	uint64_t *at[ASKS], off[ASKS], state = seed;
	uint32_t rank[ASKS];

	for (int turn = 0; turn < TURNS; turn++) {
		struct oc_window_use use;

		oc_window_begin(&use, &peers->node);
		use.urgent = turn % 2;
		for (int i = 0; i < ASKS; i++) {
			rank[i] = 1 + (uint32_t)(random_next(&state) % (RANKS - 1));
			/* Each thread has words of its own. */
			off[i] = random_next(&state) % 64 * MIB + seed * 64;
			at[i] = (uint64_t *)oc_window_at(&use, &peers->node, rank[i], off[i],
							 4 * MIB - 4096);
			if (at[i])
				*at[i] = seed;
		}
		for (int i = 0; i < ASKS; i++) {
			uint64_t seen = 0;

			if (!at[i])
				continue;
			CHECK(*at[i] == seed);
			CHECK(pread(peers->fd[rank[i] % PEERS_FILES], &seen, sizeof(seen),
				    (off_t)off[i]) == sizeof(seen));
			CHECK(seen == seed);
		}
		oc_window_end(&use);
	}
	return 0;
}

static void *storm_thread(void *arg)
{
	struct storm *storm = arg;

	storm->failed = run_storm(storm->peers, storm->seed);
	return NULL;
}

static int check_storm(struct peers *peers)
{
	struct storm storms[THREADS];
	pthread_t threads[THREADS];
	bool apart;
	int failed = 0;

	for (uint64_t i = 0; i < THREADS; i++) {
		storms[i] = (struct storm){.peers = peers, .seed = i + 1};
		CHECK(!pthread_create(&threads[i], NULL, storm_thread, &storms[i]));
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		failed |= storms[i].failed;
	}
	CHECK(!failed);
	CHECK(peers_mapped(&apart) <= ROOM * MIB + RANKS * 8 * 4096);
	return 0;
}

int main(void)
{
	struct peers peers;
	bool apart;

	CHECK(peers_create(&peers, RANKS, arena) && peers.node.windows);
	if (check_places(&peers) || check_room(&peers) || check_resident(&peers) ||
	    check_storm(&peers))
		return 1;
	/* No descriptor is needed. */
	for (int i = 0; i < PEERS_FILES; i++)
		peers.fd[i] = dup2(peers.fd[i], 100 + i);
	for (int fd = 3; fd < 100; fd++)
		close(fd);
	if (check_places(&peers))
		return 1;
	peers_destroy(&peers);
	CHECK(!peers_mapped(&apart));
	return 0;
}
