// SPDX-License-Identifier: BSD-3-Clause
/* Who a call is on, and which calls the system gets without another look. */
#include "../../../procvm/peers.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

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

static bool means_stranger(pid_t pid, uint64_t first, uint64_t second)
{
	static struct iovec two[2]; /* as the program's data */
	struct oc_procvm_call call = {.direction = OC_GET,
				      .pid = pid,
				      .local = &here,
				      .nlocal = 1,
				      .remote = two,
				      .nremote = 2};
	bool means;

	two[0] = (struct iovec){(char *)NULL + first, 64};
	two[1] = (struct iovec){(char *)NULL + second, 64};
	errno = EXDEV;
	means = oc_procvm_means_stranger(&call);
	EXPECT(errno == EXDEV);
	return means;
}

static void *wait_for_end(void *end)
{
	pthread_barrier_wait(end); /* it lives */
	pthread_barrier_wait(end);
	return NULL;
}

/* The thread that was made last. */
static pid_t newest_thread(void)
{
	DIR *tasks = opendir("/proc/self/task");
	pid_t newest = 0;

	EXPECT(tasks);
	for (struct dirent *task = readdir(tasks); task; task = readdir(tasks))
		if (atoi(task->d_name) > newest)
			newest = atoi(task->d_name);
	closedir(tasks);
	return newest;
}

/* Ranks in another PID namespace: one whose number is nobody's here, one whose number is that of a
 * thread, one that has this process's. */
static void strangers(void)
{
	static struct oc_segment_rank ranks[5] = {{.pidns = 1}, {.pidns = 1, .pid = 501}};
	static struct oc_node_peer mapped[5];
	struct oc_node node = {.ranks = ranks, .peers = mapped, .rank = 0, .nranks = 5};
	pthread_barrier_t end;
	pthread_t thread;

	pthread_barrier_init(&end, NULL, 2);
	pthread_create(&thread, NULL, wait_for_end, &end);
	pthread_barrier_wait(&end);
	ranks[0].pid = (uint32_t)getpid();
	ranks[2] = (struct oc_segment_rank){.pidns = 2, .pid = 500, .arena_base = ARENA};
	ranks[3] = ranks[4] = ranks[2];
	ranks[3].pid = (uint32_t)newest_thread();
	ranks[4].pid = (uint32_t)getpid();
	mapped[2].arena_size = mapped[3].arena_size = mapped[4].arena_size = BYTES;
	EXPECT(ranks[3].pid != ranks[4].pid);
	EXPECT(!oc_procvm_peers_are(&node));
	EXPECT(!means_stranger(500, 64, 4096) && means_stranger(500, 64, ARENA));
	EXPECT(!means_stranger(600, ARENA, ARENA));
	EXPECT(!means_stranger(getpid(), 64, 4096) && means_stranger(getpid(), ARENA, 64));
	EXPECT(means_stranger((pid_t)ranks[3].pid, 64, 4096));
	pthread_barrier_wait(&end);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct oc_procvm_peer *peer = peers();

	ranges(peer, ARENA);
	ranges(peer, STATIC);
	EXPECT(!is_private(oc_procvm_peer_of(500), ARENA, 64));
	EXPECT(is_private(oc_procvm_peer_of(600), ARENA, 64));
	lists(peer);
	strangers();
	return 0;
}
