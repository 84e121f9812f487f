// SPDX-License-Identifier: BSD-3-Clause
#include "node/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "access/access.h"
#include "access/kdev.h"
#include "access/map_cache.h"
#include "access/window.h"
#include "base/env.h"
#include "heap/heap.h"
#include "heap/static_data.h"
#include "uapi/onecopy.h"

struct oc_probe {
	_Atomic uint64_t token;
	_Atomic uint64_t echo[]; /* [nranks], each written by that rank */
};

/* Whole pages, for peers may map it: they get to see nothing else. */
static size_t probe_bytes(const struct oc_node *node)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = sizeof(struct oc_probe) + node->nranks * sizeof(uint64_t);

	return (bytes + page - 1) / page * page;
}

static void publish_kernel(struct oc_node *node)
{
	struct iovec iov = {.iov_base = node->probe, .iov_len = probe_bytes(node)};
	struct oc_kdev_region region;
	int err;

	if (!node->kdev)
		return;
	err = oc_kdev_region_create(&iov, 1, ONECOPY_REGION_READ | ONECOPY_REGION_WRITE, &region);
	if (err)
		oc_note("no map, no kcopy: memory cannot be pinned: %s%s", strerror(-err),
			err == -ENOMEM ? " (see ulimit -l)" : "");
	else
		node->ranks[node->rank].probe_kernel = region.cookie;
}

int oc_probe_publish(struct oc_node *node)
{
	struct oc_segment_rank *self = &node->ranks[node->rank];
	size_t bytes = probe_bytes(node), page = (size_t)sysconf(_SC_PAGESIZE);
	bool in_heap = node->peers[node->rank].arena;
	void *probe_at = in_heap ? oc_heap_memalign(page, bytes) : NULL;
	struct oc_probe *probe = probe_at;

	if (!in_heap && !posix_memalign(&probe_at, page, bytes))
		probe = probe_at;
	if (!probe)
		return -ENOMEM;
	memset(probe, 0, bytes);
	node->probe = probe;
	if (getrandom(&self->probe_token, sizeof(self->probe_token), 0) !=
	    sizeof(self->probe_token))
		return -EIO;
	atomic_store(&probe->token, self->probe_token);
	self->probe_addr = (uintptr_t)probe;
	self->arena_base = in_heap ? oc_heap_range.base : 0;
	oc_heap_static_look();
	if (in_heap && oc_heap_static.bytes) {
		self->static_base = oc_heap_static.from;
		self->static_size = oc_heap_static.bytes;
		self->static_off = (uintptr_t)oc_heap_static.at - oc_heap_range.base;
	}
	publish_kernel(node);
	return 0;
}

/* One mechanism tried with one peer's block. */
struct trial {
	struct oc_node *node;
	const struct oc_mech *mech;
	struct oc_target target;
	uint64_t token;
	uint64_t echo;
	uint64_t echo_at; /* in the block */
};

static int move_word(const struct trial *it, enum oc_direction direction, uint64_t offset,
		     uint64_t *word)
{
	struct iovec iov = {.iov_base = word, .iov_len = sizeof(*word)};
	struct oc_cursor local;
	ssize_t moved;

	oc_cursor_init(&local, &iov, 1, 0);
	moved = it->mech->move(it->node, &it->target, direction, offset, &local, sizeof(*word));
	if (moved < 0)
		return (int)moved;
	return moved == sizeof(*word) ? 0 : -EIO;
}

/* No process of that number, or not the one meant: its PID belongs to another
 * namespace. Never write to it. */
static int try_read(const struct trial *it)
{
	uint64_t token = 0;
	int err = move_word(it, OC_GET, 0, &token);

	return err ? err : token == it->token ? 0 : -ESRCH;
}

static int try_write(const struct trial *it)
{
	uint64_t echo = it->echo, back = 0;
	int err = move_word(it, OC_PUT, it->echo_at, &echo);

	if (!err)
		err = move_word(it, OC_GET, it->echo_at, &back);
	return err ? err : back == it->echo ? 0 : -EIO;
}

static int try_pointer(const struct trial *it)
{
	struct oc_view view = {.mech = it->mech};
	_Atomic uint64_t *token, *echo;
	int err = it->mech->at(it->node, &it->target, OC_PUT, 0, it->target.bytes, &view);

	if (err)
		return err;
	token = (_Atomic uint64_t *)view.at;
	echo = (_Atomic uint64_t *)(view.at + it->echo_at);
	if (atomic_load(token) != it->token)
		err = -ESRCH;
	else
		atomic_store(echo, it->echo);
	if (!err && atomic_load(echo) != it->echo)
		err = -EIO;
	oc_access_release(&view);
	return err;
}

static void probe_mech(struct oc_node *node, uint32_t peer, const struct oc_mech *mech, int err)
{
	const struct oc_segment_rank *rank = &node->ranks[peer];
	struct oc_node_peer *it = &node->peers[peer];
	struct iovec block = {.iov_base = (void *)(uintptr_t)rank->probe_addr,
			      .iov_len = probe_bytes(node)};
	struct trial trial = {.node = node,
			      .mech = mech,
			      .target = {.owner = peer,
					 .mech = mech->bit,
					 .flags = OC_REGION_READ | OC_REGION_WRITE,
					 .kept = true,
					 .bytes = block.iov_len,
					 .segs = &block,
					 .nsegs = 1,
					 .kernel = rank->probe_kernel,
					 .kernel_bytes = block.iov_len},
			      .token = rank->probe_token,
			      /* Of each mechanism its own. */
			      .echo = rank->probe_token + ((uint64_t)mech->bit << 32) + node->rank,
			      .echo_at = offsetof(struct oc_probe, echo) +
					 node->rank * sizeof(uint64_t)};
	bool reads = false;

	/* A mechanism asks of nobody for whom it is not said to work. */
	atomic_fetch_or(&it->gets, mech->bit);
	atomic_fetch_or(&it->puts, mech->bit);
	if (!err)
		err = mech->at ? try_pointer(&trial) : -EOPNOTSUPP;
	if (err == -EOPNOTSUPP) {
		err = try_read(&trial);
		reads = !err;
		if (!err)
			err = try_write(&trial);
	}
	if (err && !reads)
		atomic_fetch_and(&it->gets, ~mech->bit);
	if (err)
		atomic_fetch_and(&it->puts, ~mech->bit);
	it->refusal[oc_mech_index(mech->bit)] = -err;
}

static bool probe_arena(struct oc_node *node, uint32_t peer)
{
	const struct oc_segment_rank *rank = &node->ranks[peer];
	uint64_t off = rank->probe_addr - rank->arena_base;
	struct oc_window_use use;
	struct oc_probe *probe;
	bool good;

	if (!node->peers[peer].arena_size || peer == node->rank)
		return true;
	oc_window_begin(&use, node);
	probe = (struct oc_probe *)oc_window_at(&use, node, peer, off, probe_bytes(node));
	good = probe && atomic_load(&probe->token) == rank->probe_token;
	if (good)
		atomic_store(&probe->echo[node->rank], rank->probe_token);
	oc_window_end(&use);
	return good;
}

/* One line where it is the same with all the others, which is then the same on all ranks,
 * perhaps; else one for each. */
static void tell(const struct oc_node *node, const struct oc_mech *mech)
{
	char first[120] = "", why[120];
	bool same = true;

	for (uint32_t i = 0; i < node->nranks; i++) {
		mech->explain(node, i, why, sizeof(why));
		if (i == node->rank)
			continue;
		if (!*first)
			memcpy(first, why, sizeof(first));
		same = same && *why && !strcmp(first, why);
	}
	if (same && *first)
		oc_note("%s: %s", mech->means, first);
	for (uint32_t i = 0; i < node->nranks && !(same && *first); i++) {
		mech->explain(node, i, why, sizeof(why));
		if (*why)
			oc_note("%s with rank %u: %s", mech->means, i, why);
	}
}

bool oc_probe_peers(struct oc_node *node)
{
	int ready[OC_MECH_COUNT] = {0};
	bool arenas = true;

	for (uint32_t m = 0; m < OC_MECH_COUNT; m++)
		if (oc_mech_table[m]->ready)
			ready[m] = oc_mech_table[m]->ready(node);
	for (uint32_t i = 0; i < node->nranks; i++) {
		for (uint32_t m = 0; m < OC_MECH_COUNT; m++)
			if (oc_mech_table[m]->tried)
				probe_mech(node, i, oc_mech_table[m], ready[m]);
		if (!probe_arena(node, i)) {
			oc_note("the heap of rank %u cannot be mapped, or shows other bytes", i);
			arenas = false;
		}
	}
	for (uint32_t m = 0; m < OC_MECH_COUNT; m++)
		if (oc_mech_table[m]->means && ready[m] != -ENODEV)
			tell(node, oc_mech_table[m]);
	/* The blocks are on their way out. */
	if (node->kdev)
		oc_map_cache_drop();
	return arenas;
}

void oc_probe_retract(struct oc_node *node)
{
	if (!node->probe)
		return;
	if (node->kdev && node->ranks && node->ranks[node->rank].probe_kernel && oc_node_mine(node))
		oc_kdev_region_destroy(node->ranks[node->rank].probe_kernel);
	if (oc_heap_contains(node->probe, 1))
		oc_heap_free(node->probe);
	else
		free(node->probe);
	node->probe = NULL;
}
