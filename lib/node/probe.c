// SPDX-License-Identifier: BSD-3-Clause
#include "node/probe.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "access/cma.h"
#include "access/kdev.h"
#include "access/map_cache.h"
#include "access/window.h"
#include "base/env.h"
#include "heap/heap.h"
#include "access/mech_kcopy.h"
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
	publish_kernel(node);
	return 0;
}

static int probe_read(struct oc_node *node, uint32_t peer)
{
	const struct oc_segment_rank *rank = &node->ranks[peer];
	uint64_t token = 0;
	int err = oc_cma_read(node, peer, &token, rank->probe_addr, sizeof(token));

	/* No process of that number, or not the one meant: its PID belongs to
	 * another namespace. Never write to it. */
	if (err)
		return err == -EPIPE || err == -EFAULT ? -ESRCH : err;
	return token == rank->probe_token ? 0 : -ESRCH;
}

static int probe_write(struct oc_node *node, uint32_t peer)
{
	const struct oc_segment_rank *rank = &node->ranks[peer];
	uint64_t echo = rank->probe_token + node->rank + 1, back = 0;
	uint64_t addr =
		rank->probe_addr + offsetof(struct oc_probe, echo) + node->rank * sizeof(echo);
	int err = oc_cma_write(node, peer, &echo, addr, sizeof(echo));

	if (!err)
		err = oc_cma_read(node, peer, &back, addr, sizeof(back));
	if (err)
		return err;
	return back == echo ? 0 : -EIO;
}

/*
 * A seccomp filter may kill whoever makes these calls, and a rank must not find
 * that out on itself: a child tries them first. Made by the bare system call,
 * so that no fork handler runs; it does nothing but system calls.
 */
static bool cma_kills(void)
{
	int status = 0;
	pid_t child;

	if (prctl(PR_GET_SECCOMP) != SECCOMP_MODE_FILTER)
		return false;
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0) {
		process_vm_readv(getpid(), NULL, 0, NULL, 0, 0);
		process_vm_writev(getpid(), NULL, 0, NULL, 0, 0);
		_exit(0);
	}
	if (child < 0)
		return true;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return false; /* reaped by the program's own handler */
	return !WIFEXITED(status);
}

static void probe_cma(struct oc_node *node, uint32_t peer, bool kills)
{
	struct oc_node_peer *it = &node->peers[peer];
	int err = kills ? -ENOSYS : probe_read(node, peer);

	it->cma_read = !err;
	if (!err)
		err = probe_write(node, peer);
	it->cma_write = it->cma_read && !err;
	it->cma_err = -err;
}

/* Reads the token, then writes an echo and reads it back: once by the kernel's
 * copy, once through a mapping. */
static int probe_kcopy(const struct oc_node *node, uint32_t peer)
{
	const struct oc_segment_rank *rank = &node->ranks[peer];
	uint64_t seen = 0, echo = rank->probe_token ^ (node->rank + 1), back = 0;
	uint64_t offset = offsetof(struct oc_probe, echo) + node->rank * sizeof(echo);
	const struct {
		enum oc_direction direction;
		uint64_t *word;
		uint64_t offset;
	} moves[] = {{OC_GET, &seen, 0}, {OC_PUT, &echo, offset}, {OC_GET, &back, offset}};

	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		struct iovec iov = {.iov_base = moves[i].word, .iov_len = sizeof(uint64_t)};
		struct oc_cursor local;
		ssize_t moved;

		oc_cursor_init(&local, &iov, 1, 0);
		moved = oc_kdev_copy(moves[i].direction, rank->probe_kernel, moves[i].offset,
				     &local, sizeof(uint64_t));
		if (moved != sizeof(uint64_t))
			return moved < 0 ? (int)moved : -EIO;
		if (seen != rank->probe_token)
			return -EIO;
	}
	return back == echo ? 0 : -EIO;
}

static int probe_map(const struct oc_node *node, uint32_t peer)
{
	const struct oc_segment_rank *rank = &node->ranks[peer];
	struct oc_probe *probe;
	struct oc_map_cache *map;
	char *at;
	int err = oc_map_cache_get(rank->probe_kernel, 0, probe_bytes(node), true, &map, &at);

	if (err)
		return err;
	probe = (struct oc_probe *)at;
	err = atomic_load(&probe->token) == rank->probe_token ? 0 : -EIO;
	if (!err)
		atomic_store(&probe->echo[node->rank], ~rank->probe_token);
	if (!err && atomic_load(&probe->echo[node->rank]) != ~rank->probe_token)
		err = -EIO;
	oc_map_cache_put(map);
	return err;
}

static void probe_kernel(struct oc_node *node, uint32_t peer)
{
	struct oc_node_peer *it = &node->peers[peer];
	int err = node->ranks[peer].probe_kernel ? probe_kcopy(node, peer) : -ENODEV;

	if (!err) {
		it->kernel |= OC_MECH_KCOPY;
		err = probe_map(node, peer);
	}
	if (!err)
		it->kernel |= OC_MECH_MAP;
	it->kernel_err = -err;
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

static bool refused_cma(struct oc_node *node, uint32_t peer, char *why, size_t len)
{
	oc_cma_explain(node, peer, why, len);
	return node->peers[peer].cma_err;
}

static bool refused_kernel(struct oc_node *node, uint32_t peer, char *why, size_t len)
{
	oc_kcopy_probe(node, peer, OC_MECH_MAP, why, len);
	return node->peers[peer].kernel_err;
}

/* One line where it is the same with all the others, which is then the same on all ranks,
 * perhaps; else one for each. */
static void tell(struct oc_node *node, const char *what,
		 bool (*refused)(struct oc_node *, uint32_t, char *, size_t))
{
	char first[120] = "", why[120];
	bool same = true;

	for (uint32_t i = 0; i < node->nranks; i++) {
		bool is = refused(node, i, why, sizeof(why));

		if (i == node->rank)
			continue;
		if (is && !*first)
			memcpy(first, why, sizeof(first));
		same = same && is && !strcmp(first, why);
	}
	if (same && *first)
		oc_note("%s: %s", what, first);
	for (uint32_t i = 0; i < node->nranks && !(same && *first); i++)
		if (refused(node, i, why, sizeof(why)))
			oc_note("%s with rank %u: %s", what, i, why);
}

bool oc_probe_peers(struct oc_node *node)
{
	bool kills = cma_kills();
	bool arenas = true;

	for (uint32_t i = 0; i < node->nranks; i++) {
		probe_cma(node, i, kills);
		if (node->kdev)
			probe_kernel(node, i);
		if (!probe_arena(node, i)) {
			oc_note("the heap of rank %u cannot be mapped, or shows other bytes", i);
			arenas = false;
		}
	}
	tell(node, "CMA", refused_cma);
	if (node->kdev)
		tell(node, "kernel module", refused_kernel);
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
