/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_NODE_H
#define OC_NODE_H

/*
 * The node: the processes of one job on one machine. They share one control
 * segment (a memfd made by rank 0, handed out by SCM_RIGHTS) and each maps
 * every other's heap arena. Layout of the control segment:
 *
 *   struct oc_ctl | struct oc_ctl_rank x nranks | per-rank areas (struct oc_area)
 *
 * All-zero memory is a valid initial state of everything in it.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OC_CACHELINE 64
#define OC_MAX_RANKS 1024

enum oc_rank_state { OC_RANK_ABSENT, OC_RANK_JOINED, OC_RANK_LEFT };

struct oc_ctl_rank {
	_Alignas(OC_CACHELINE) _Atomic uint32_t state;
	uint32_t pid; /* in the owner's PID namespace */
	uint64_t pidns; /* inode of that namespace, 0 unknown */
	uint64_t starttime; /* field 22 of /proc/self/stat: tells a PID reused */
	uint64_t arena_size; /* 0: no arena */
	uint64_t probe_token; /* random; what a CMA probe must read back */
	uint64_t probe_addr; /* where the owner keeps it (and its write-probe word) */
	uint64_t cpus[16]; /* affinity mask of the owner, 1024 CPUs */
};

struct oc_ctl {
	uint32_t magic;
	uint32_t abi;
	uint32_t nranks;
	uint32_t reserved;
	uint64_t bytes; /* of the whole segment */
	uint64_t rank_off; /* of struct oc_ctl_rank[0] */
	uint64_t area_off; /* of rank 0's area */
	uint64_t area_bytes; /* of each */
	_Atomic uint32_t barrier_count; /* join and leave only */
	_Atomic uint32_t barrier_gen;
};

struct oc_node_peer {
	char *arena; /* mapping of the peer's arena in this process, or NULL */
	size_t arena_size;
	uint32_t pid;
	bool cma_read; /* probed by a real copy in this direction */
	bool cma_write;
	int cma_err; /* errno of the refusal */
};

struct oc_node {
	int ctl_fd;
	struct oc_ctl *ctl;
	struct oc_ctl_rank *ranks;
	uint32_t rank;
	uint32_t nranks;
	uint32_t ncpus; /* distinct CPUs the ranks may run on */
	bool oversubscribed; /* nranks > ncpus */
	struct oc_node_peer *peers; /* [nranks]; [rank] is this process */
	uint32_t spin; /* polls before yielding, 0 when oversubscribed */
};

struct oc_node_attr;

/* This rank's private part of the control segment: written by its owner,
 * read by peers; who uses which bytes is settled by lib/area.h. */
static inline char *oc_node_area(const struct oc_node *node, uint32_t rank)
{
	return (char *)node->ctl + node->ctl->area_off + rank * node->ctl->area_bytes;
}

/* False only when the peer's process is known to be gone without having left.
 * Costs a system call or two: for slow paths. Any thread. */
bool oc_node_peer_alive(const struct oc_node *node, uint32_t peer);

#endif
