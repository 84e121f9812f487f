// SPDX-License-Identifier: BSD-3-Clause
/* Who a call is on, and which calls the system gets without another look. */
#include "../../../procvm/peers.h"

#include <stdint.h>
#include <sys/mman.h>

#include "../expect.h"

#define RANKS  5
#define ARENA  ((uint64_t)0x100000000000)
#define STATIC ((uint64_t)0x400000)
#define BYTES  ((uint64_t)1 << 20)

static struct iovec here, there; /* static data of the program is known to be there */

static const struct oc_procvm_peer *peers(void)
{
	static const struct {
		uint32_t pid;
		uint64_t pidns;
	} as[RANKS] = {{500, 1}, {400, 1}, {300, 2}, {200, 1}, {600, 1}};
	static struct oc_segment_rank ranks[RANKS];
	static struct oc_node_peer mapped[RANKS];
	struct oc_node node = {.ranks = ranks, .peers = mapped, .rank = 1, .nranks = RANKS};

	for (int i = 0; i < RANKS; i++) {
		ranks[i].pid = as[i].pid;
		ranks[i].pidns = as[i].pidns;
	}
	EXPECT(!oc_procvm_peer_of(500));
	EXPECT(!oc_procvm_peers_are(&node));
	EXPECT(oc_procvm_peer_of(500) && !oc_procvm_peer_of(500)->rank);
	EXPECT(oc_procvm_peer_of(200) && oc_procvm_peer_of(200)->rank == 3);
	EXPECT(oc_procvm_peer_of(600) && oc_procvm_peer_of(600)->rank == 4);
	EXPECT(!oc_procvm_peer_of(300)); /* in another PID namespace it means someone else */
	EXPECT(!oc_procvm_peer_of(400)); /* this process */
	EXPECT(!oc_procvm_peer_of(0) && !oc_procvm_peer_of(-1));

	ranks[0].arena_base = ARENA;
	mapped[0].arena_size = BYTES;
	ranks[0].static_base = STATIC;
	ranks[0].static_size = BYTES;
	EXPECT(!oc_procvm_peers_are(&node));
	return oc_procvm_peer_of(500);
}

static bool is_private(const struct oc_procvm_peer *peer, uint64_t at, uint64_t bytes)
{
	struct oc_procvm_call call = {
		.direction = OC_GET,
		.pid = 500,
		.local = &here,
		.nlocal = 1,
		.remote = &there,
		.nremote = 1,
	};

	there.iov_base = (char *)NULL + at;
	there.iov_len = bytes;
	return oc_procvm_is_private(peer, &call);
}

static void ranges(const struct oc_procvm_peer *peer, uint64_t from)
{
	EXPECT(is_private(peer, from - 64, 64));
	EXPECT(!is_private(peer, from - 64, 65));
	EXPECT(!is_private(peer, from - 64, BYTES + 128));
	EXPECT(!is_private(peer, from - 64, UINT64_MAX));
	EXPECT(!is_private(peer, from, 1));
	EXPECT(!is_private(peer, from + BYTES - 1, 64));
	EXPECT(is_private(peer, from + BYTES, 64));
	EXPECT(is_private(peer, from - 64, 0));
}

static void lists(const struct oc_procvm_peer *peer)
{
	struct iovec *bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec two[2] = {{(char *)NULL + 64, 64}, {(char *)NULL + ARENA, 64}};
	struct oc_procvm_call call = {.pid = 500, .local = &here, .nlocal = 1};

	EXPECT(bad != MAP_FAILED);
	call.remote = bad;
	call.nremote = 1;
	EXPECT(!oc_procvm_is_private(peer, &call));
	call.remote = two;
	call.nremote = 2;
	EXPECT(!oc_procvm_is_private(peer, &call));
	munmap(bad, 4096);
}

int main(void)
{
	const struct oc_procvm_peer *peer = peers();

	ranges(peer, ARENA);
	ranges(peer, STATIC);
	EXPECT(!is_private(oc_procvm_peer_of(500), ARENA, 64));
	EXPECT(is_private(oc_procvm_peer_of(600), ARENA, 64));
	lists(peer);
	return 0;
}
