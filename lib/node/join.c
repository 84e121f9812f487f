// SPDX-License-Identifier: BSD-3-Clause
/*
 * Joining and leaving a node. A join is three votes over the bootstrap
 * sockets, so that a failure of any rank becomes the same answer on all:
 *
 *   1. everybody is here, and rank 0 has made the control segment;
 *   2. everybody has mapped it, can reach all arenas, and has said who it is in it.
 *      An arena that does not fit into one rank's address space is no failure:
 *      then nobody maps any, and the other mechanisms serve;
 *   3. everybody has probed its peers, whose memory had to stay until now.
 */
#include "segment/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <onecopy/onecopy.h>

#include "access/kdev.h"
#include "access/map_cache.h"
#include "access/pin_cache.h"
#include "access/window.h"
#include "base/cpus.h"
#include "base/env.h"
#include "base/futex.h"
#include "base/quiet.h"
#include "heap/heap.h"
#include "node/bootstrap.h"
#include "node/probe.h"
#include "region/region.h"
#include "access/stage.h"
#include "segment/alive.h"
#include "segment/segment.h"

#define OC_NAME_MAX 64
#define OC_SPIN	    2000

#define FLAG_NO_ARENAS 1u /* of a vote: an arena could not be mapped */

#define BARRIER_BROKEN	 0x80000000u
#define BARRIER_SLEEP_NS 20000000 /* between looks at who is still alive */
#define BARRIER_LOOKS	 16

static int check_attr(const struct oc_node_attr *attr)
{
	if (!attr || attr->size != sizeof(*attr) || attr->flags || attr->nranks < 1 ||
	    attr->nranks > OC_MAX_RANKS || attr->rank >= attr->nranks)
		return -EINVAL;
	if (attr->name) {
		size_t len = strnlen(attr->name, OC_NAME_MAX + 1);

		return len >= 1 && len <= OC_NAME_MAX ? 0 : -EINVAL;
	}
	if (attr->nranks == 1)
		return 0;
	if (attr->rank == 0)
		return attr->peer_fds ? 0 : -EINVAL;
	return attr->fd >= 0 ? 0 : -EINVAL;
}

/* One page that fork hands to the child as zeros: see oc_node_mine(). */
static const uint32_t *map_mine(void)
{
	uint32_t *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	if (oc_quiet_madvise(page, sizeof(*page), MADV_WIPEONFORK)) {
		munmap(page, sizeof(*page));
		return NULL;
	}
	*page = 1;
	return page;
}

/* What there is of the kernel module, if anybody may use it. */
static void open_kdev(struct oc_node *node)
{
	if (!(node->mech_mask & (OC_MECH_MAP | OC_MECH_KCOPY)))
		return;
	node->kdev_err = oc_kdev_open();
	node->kdev = !node->kdev_err;
	if (node->kdev)
		oc_pin_cache_create(node);
}

static void close_kdev(struct oc_node *node)
{
	if (!node->kdev)
		return;
	oc_pin_cache_destroy(node);
	/* In a forked child neither is open: see lib/access/kdev.c. */
	if (oc_node_mine(node)) {
		oc_map_cache_drop();
		oc_kdev_close();
	}
	node->kdev = false;
}

static void destroy_node(struct oc_node *node)
{
	oc_region_table_destroy(node);
	oc_stage_stop(node);
	oc_probe_retract(node);
	close_kdev(node);
	oc_windows_destroy(node);
	oc_segment_close(node);
	if (node->mine)
		munmap((void *)node->mine, sizeof(*node->mine));
	free(node->peers);
	free(node);
}

static struct oc_node *create_node(const struct oc_node_attr *attr)
{
	struct oc_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->segment_fd = -1;
	node->rank = attr->rank;
	node->nranks = attr->nranks;
	node->pid = (uint32_t)getpid();
	node->mine = map_mine();
	node->mech_mask = oc_env()->mech;
	node->peers = calloc(attr->nranks, sizeof(*node->peers));
	if (!node->peers || oc_region_table_create(node)) {
		destroy_node(node);
		return NULL;
	}
	open_kdev(node);
	return node;
}

/* A heap without its descriptor is no arena: nobody else could map it. */
static void offer_arena(struct oc_node *node, struct oc_arrival *mine)
{
	struct oc_node_peer *self = &node->peers[node->rank];

	if (oc_heap_init())
		return;
	mine->arena_fd = oc_heap_fd();
	if (mine->arena_fd < 0)
		return;
	mine->arena_size = oc_heap_range.size;
	self->arena = (char *)oc_heap_range.base;
	self->arena_size = oc_heap_range.size;
}

/* Maps an arena, or asks for a node without any. */
static void map_arena(struct oc_node *node, uint32_t rank, int fd, uint32_t *flags)
{
	int err = oc_window_open(node, rank, fd);

	if (!err)
		return;
	oc_note("the heap of rank %u cannot be mapped: %s", rank, strerror(-err));
	*flags |= FLAG_NO_ARENAS;
}

/* The next ranks from *@rank on that have an arena @reader wants. */
static size_t next_arenas(const struct oc_node *node, uint32_t reader, uint32_t *rank,
			  uint32_t *list)
{
	size_t n = 0;

	for (; *rank < node->nranks && n < OC_WIRE_FDS; (*rank)++)
		if (*rank != reader && node->ranks[*rank].arena_size)
			list[n++] = *rank;
	return n;
}

static int give_all(struct oc_node *node, struct oc_bootstrap *boot, uint32_t peer,
		    const struct oc_arrival *all)
{
	uint32_t list[OC_WIRE_FDS], rank = 0;
	int fds[OC_WIRE_FDS];
	size_t n;
	int err = oc_bootstrap_give(boot, peer, &node->segment_fd, 1);

	while (!err && (n = next_arenas(node, peer, &rank, list))) {
		for (size_t i = 0; i < n; i++)
			fds[i] = all[list[i]].arena_fd;
		err = oc_bootstrap_give(boot, peer, fds, n);
	}
	return err;
}

static int share(struct oc_node *node, struct oc_bootstrap *boot, const struct oc_arrival *all,
		 uint32_t *flags)
{
	int err = 0;

	for (uint32_t i = 0; i < node->nranks; i++)
		node->ranks[i].arena_size = all[i].arena_size;
	err = oc_windows_create(node);
	for (uint32_t i = 1; i < node->nranks; i++) {
		/* One rank's failure must not leave the next without its due:
		 * it would take the vote for it. */
		int one = give_all(node, boot, i, all);

		err = err ? err : one;
		if (!err && all[i].arena_fd >= 0)
			map_arena(node, i, all[i].arena_fd, flags);
	}
	return err;
}

static int receive(struct oc_node *node, struct oc_bootstrap *boot, uint32_t *flags)
{
	uint32_t list[OC_WIRE_FDS], rank = 0;
	int fds[OC_WIRE_FDS], fd;
	size_t n;
	int err = oc_bootstrap_take(boot, &fd, 1);

	if (!err)
		err = oc_segment_open(node, fd);
	if (!err)
		err = oc_windows_create(node);
	while (!err && (n = next_arenas(node, node->rank, &rank, list))) {
		err = oc_bootstrap_take(boot, fds, n);
		for (size_t i = 0; !err && i < n; i++) {
			map_arena(node, list[i], fds[i], flags);
			close(fds[i]);
		}
	}
	return err;
}

static int introduce(struct oc_node *node)
{
	int err = oc_probe_publish(node);

	oc_cpus_allowed(node->ranks[node->rank].cpus);
	if (node->rank == 0)
		node->segment->cpu_quota = oc_cpus_quota();
	if (!err)
		err = oc_node_declare(node);
	return err;
}

static void drop_arenas(struct oc_node *node)
{
	for (uint32_t i = 0; i < node->nranks; i++)
		if (i != node->rank)
			oc_window_close(node, i);
}

static void count_cpus(struct oc_node *node)
{
	uint32_t ncpus = 0;

	for (int word = 0; word < OC_CPUS_WORDS; word++) {
		uint64_t any = 0;

		for (uint32_t i = 0; i < node->nranks; i++)
			any |= node->ranks[i].cpus[word];
		ncpus += (uint32_t)__builtin_popcountll(any);
	}
	if (node->segment->cpu_quota && node->segment->cpu_quota < ncpus)
		ncpus = node->segment->cpu_quota;
	node->ncpus = ncpus ? ncpus : 1;
	node->oversubscribed = node->nranks > node->ncpus;
	node->spin = node->oversubscribed ? 0 : OC_SPIN;
}

static int join_connected(struct oc_node *node, struct oc_bootstrap *boot,
			  const struct oc_arrival *all)
{
	uint32_t flags = 0;
	int err;

	err = node->rank == 0 ? oc_segment_create(node) : 0;
	err = oc_bootstrap_agree(boot, err, &flags);
	if (err)
		return err;

	flags = 0;
	err = node->rank == 0 ? share(node, boot, all, &flags) : receive(node, boot, &flags);
	if (!err)
		err = introduce(node);
	err = oc_bootstrap_agree(boot, err, &flags);
	if (err)
		return err;
	if (flags & FLAG_NO_ARENAS)
		drop_arenas(node);
	for (uint32_t i = 0; i < node->nranks; i++)
		node->peers[i].pid = node->ranks[i].pid;
	count_cpus(node);
	flags = oc_probe_peers(node) ? 0 : FLAG_NO_ARENAS;
	atomic_store_explicit(&node->ranks[node->rank].state, OC_RANK_JOINED, memory_order_release);
	err = oc_bootstrap_agree(boot, 0, &flags);
	if (err)
		return err;
	if (flags & FLAG_NO_ARENAS)
		drop_arenas(node);
	oc_probe_retract(node);
	return 0;
}

/* Rank 0 holds a socket and an arena of every rank for a moment, the others
 * one message's worth of arenas. */
static void raise_nofile(uint32_t nranks, struct rlimit *old)
{
	struct rlimit more;

	if (getrlimit(RLIMIT_NOFILE, old)) {
		old->rlim_cur = RLIM_INFINITY;
		return;
	}
	more = *old;
	if (more.rlim_cur < 2 * (rlim_t)nranks + 2 * OC_WIRE_FDS)
		more.rlim_cur = more.rlim_max;
	setrlimit(RLIMIT_NOFILE, &more);
}

int oc_node_join(const struct oc_node_attr *attr, oc_node **out)
{
	struct oc_arrival *all = NULL, mine = {.arena_fd = -1};
	struct oc_bootstrap boot = {0};
	struct oc_node *node;
	struct rlimit nofile;
	int err = check_attr(attr);

	if (err)
		return err;
	if (!out)
		return -EINVAL;
	node = create_node(attr);
	all = calloc(attr->nranks, sizeof(*all));
	if (!node || !all) {
		err = -ENOMEM;
		goto free_all;
	}
	offer_arena(node, &mine);
	raise_nofile(attr->nranks, &nofile);
	err = oc_bootstrap_open(&boot, attr, &mine, all);
	if (!err) {
		err = join_connected(node, &boot, all);
		for (uint32_t i = 1; node->rank == 0 && i < node->nranks; i++)
			if (all[i].arena_fd >= 0)
				close(all[i].arena_fd);
	}
	oc_bootstrap_close(&boot);
	if (nofile.rlim_cur != RLIM_INFINITY)
		setrlimit(RLIMIT_NOFILE, &nofile);
	if (err)
		goto free_all;
	free(all);
	*out = node;
	return 0;

free_all:
	free(all);
	if (node)
		destroy_node(node);
	return err;
}

void oc_node_leave(oc_node *node)
{
	if (!node)
		return;
	if (!oc_node_mine(node)) {
		/* A forked child: nothing of the node is mapped here. */
		node->segment = NULL;
	} else {
		atomic_store_explicit(&node->ranks[node->rank].state, OC_RANK_LEFT,
				      memory_order_release);
		/* Who waits in a barrier looks up and sees. */
		oc_futex_wake(&node->segment->barrier_gen);
	}
	destroy_node(node);
}

uint32_t oc_node_rank(const oc_node *node)
{
	return node->rank;
}

uint32_t oc_node_size(const oc_node *node)
{
	return node->nranks;
}

/* Who left is seen at once, who died when its turn comes: asking about a
 * thousand ranks a thousand times over would cost more than the barrier. */
static bool anyone_gone(const struct oc_node *node, uint32_t *turn)
{
	uint32_t looks = node->nranks < BARRIER_LOOKS ? node->nranks : BARRIER_LOOKS;

	for (uint32_t i = 0; i < node->nranks; i++)
		if (atomic_load_explicit(&node->ranks[i].state, memory_order_acquire) ==
		    OC_RANK_LEFT)
			return true;
	while (looks--)
		if (!oc_node_peer_alive(node, (*turn)++ % node->nranks))
			return true;
	return false;
}

/*
 * A central counter: joins and benchmarks need no more, collectives have their
 * own. Once a rank is missing the count can never be trusted again, so the
 * barrier is broken for good, by one compare-and-swap against its completion.
 */
int oc_node_barrier(oc_node *node)
{
	struct oc_segment *segment;
	uint32_t gen, polls = 0, turn = 0;

	if (!node || !oc_node_mine(node))
		return -EINVAL;
	segment = node->segment;
	gen = atomic_load(&segment->barrier_gen);
	if (gen & BARRIER_BROKEN)
		return -EPIPE;
	if (atomic_fetch_add(&segment->barrier_count, 1) == node->nranks - 1) {
		bool ended;

		atomic_store(&segment->barrier_count, 0);
		ended = atomic_compare_exchange_strong(&segment->barrier_gen, &gen,
						       (gen + 1) & ~BARRIER_BROKEN);
		oc_futex_wake(&segment->barrier_gen);
		return ended ? 0 : -EPIPE;
	}
	while (atomic_load(&segment->barrier_gen) == gen) {
		uint32_t seen = gen;

		if (polls++ < node->spin) {
			oc_cpu_relax();
			continue;
		}
		oc_futex_wait(&segment->barrier_gen, gen, BARRIER_SLEEP_NS);
		/* A rank that left after the barrier ended changed the
		 * generation first: then this exchange fails. */
		if (anyone_gone(node, &turn) &&
		    atomic_compare_exchange_strong(&segment->barrier_gen, &seen,
						   gen | BARRIER_BROKEN))
			oc_futex_wake(&segment->barrier_gen);
	}
	return atomic_load(&segment->barrier_gen) == (gen | BARRIER_BROKEN) ? -EPIPE : 0;
}
