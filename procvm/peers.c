// SPDX-License-Identifier: BSD-3-Clause
#include "peers.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "known.h"

struct table {
	struct table *before; /* is kept, for any thread may be looking */
	uint32_t peers;
	uint32_t strangers;	      /* ranks of other PID namespaces, behind the peers */
	struct oc_procvm_peer peer[]; /* by PID */
};

static struct table *_Atomic known;

static int by_pid(const void *a, const void *b)
{
	uint32_t one = ((const struct oc_procvm_peer *)a)->pid;
	uint32_t other = ((const struct oc_procvm_peer *)b)->pid;

	return one < other ? -1 : one > other;
}

static struct oc_procvm_peer describe(const struct oc_node *node, uint32_t rank)
{
	const struct oc_segment_rank *self = &node->ranks[rank];

	return (struct oc_procvm_peer){
		.pid = self->pid,
		.rank = rank,
		.arena = {self->arena_base, node->peers[rank].arena_size},
		.static_data = {self->static_base, self->static_size},
	};
}

int oc_procvm_peers_are(const struct oc_node *node)
{
	const struct oc_segment_rank *self = &node->ranks[node->rank];
	struct table *table =
		malloc(sizeof(*table) + (size_t)node->nranks * sizeof(table->peer[0]));

	if (!table)
		return -ENOMEM;
	table->before = atomic_load(&known);
	table->peers = table->strangers = 0;
	for (uint32_t i = 0; i < node->nranks; i++)
		if (i != node->rank && self->pidns && node->ranks[i].pidns == self->pidns)
			table->peer[table->peers++] = describe(node, i);
	for (uint32_t i = 0; i < node->nranks; i++)
		if (self->pidns && node->ranks[i].pidns && node->ranks[i].pidns != self->pidns)
			table->peer[table->peers + table->strangers++] = describe(node, i);
	qsort(table->peer, table->peers, sizeof(table->peer[0]), by_pid);
	atomic_store_explicit(&known, table, memory_order_release);
	return 0;
}

const struct oc_procvm_peer *oc_procvm_peer_of(pid_t pid)
{
	const struct table *table = atomic_load_explicit(&known, memory_order_acquire);
	struct oc_procvm_peer wanted = {.pid = (uint32_t)pid};

	return table ? bsearch(&wanted, table->peer, table->peers, sizeof(wanted), by_pid) : NULL;
}

/* Whether any of the piece lies there; one that is longer than what follows it does, too. */
static bool touches(const struct iovec *piece, uint64_t from, uint64_t bytes)
{
	uint64_t at = (uintptr_t)piece->iov_base;

	return at - from < bytes || from - at < piece->iov_len;
}

static bool touches_shared(const struct iovec *piece, const struct oc_procvm_peer *peer)
{
	return touches(piece, peer->arena.from, peer->arena.bytes) ||
	       touches(piece, peer->static_data.from, peer->static_data.bytes);
}

bool oc_procvm_is_private(const struct oc_procvm_peer *peer, const struct oc_procvm_call *call)
{
	return call->nremote == 1 && oc_procvm_known(call->remote, sizeof(*call->remote)) &&
	       !touches_shared(call->remote, peer);
}

static bool touches_any(const struct oc_procvm_peer *peer, const struct oc_procvm_call *call)
{
	struct oc_procvm_call readable = *call;
	struct oc_procvm_lists lists;
	bool touched = false;

	if (oc_procvm_take_lists(&readable, &lists))
		for (unsigned long i = 0; i < readable.nremote && !touched; i++)
			touched = touches_shared(&readable.remote[i], peer);
	oc_procvm_drop_lists(&lists);
	return touched;
}

/* But for the first, whose number is the process's. */
static bool is_thread_here(pid_t pid)
{
	return pid != getpid() && !syscall(SYS_tgkill, getpid(), pid, 0);
}

bool oc_procvm_means_stranger(const struct oc_procvm_call *call)
{
	const struct table *table = atomic_load_explicit(&known, memory_order_acquire);
	const struct oc_procvm_peer *stranger;
	int saved = errno;
	bool means = false;

	if (!table || !table->strangers)
		return false;
	for (uint32_t i = 0; i < table->strangers && !means; i++) {
		stranger = &table->peer[table->peers + i];
		means = stranger->pid == (uint32_t)call->pid &&
			(is_thread_here(call->pid) || touches_any(stranger, call));
	}
	errno = saved;
	return means;
}
