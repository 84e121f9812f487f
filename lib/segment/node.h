/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_NODE_H
#define OC_NODE_H

/*
 * The node: the processes of one job on one machine. They share one control
 * segment (a memfd made by rank 0, handed out by SCM_RIGHTS) and each reaches
 * every other's heap arena. Layout of the control segment:
 *
 *   struct oc_segment | struct oc_segment_rank x nranks | per-rank areas (struct oc_area)
 *
 * All-zero memory is a valid initial state of everything in it.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include <onecopy/onecopy.h>

#include "base/file.h"

#define OC_CACHELINE 64
#define OC_MAX_RANKS 1024

enum oc_rank_state { OC_RANK_ABSENT, OC_RANK_JOINED, OC_RANK_LEFT };

struct oc_segment_rank {
	_Alignas(OC_CACHELINE) _Atomic uint32_t state;
	uint32_t pid;		  /* in the owner's PID namespace */
	uint64_t pidns;		  /* inode of that namespace, 0 unknown */
	uint64_t starttime;	  /* field 22 of /proc/self/stat: tells a PID reused */
	uint64_t arena_size;	  /* 0: no arena */
	uint64_t arena_base;	  /* where the owner has it */
	uint64_t static_base;	  /* where the owner has static data, too, */
	uint64_t static_size;	  /* 0: not in the arena, */
	uint64_t static_off;	  /* and where that is in it */
	uint64_t probe_token;	  /* random; what a CMA probe must read back */
	uint64_t probe_addr;	  /* where the owner keeps it (and its write-probe word) */
	uint64_t probe_kernel;	  /* the same as a kernel region: its cookie, or 0 */
	uint64_t cpus[16];	  /* affinity mask of the owner, 1024 CPUs */
	_Atomic uint32_t mourned; /* some rank has said that this one is dead */
};

struct oc_segment {
	uint32_t magic;
	uint32_t abi;
	uint32_t nranks;
	uint32_t cpu_quota;		/* CPUs the cgroup of rank 0 may use at once, 0: no limit */
	uint64_t bytes;			/* of the whole segment */
	uint64_t rank_off;		/* of struct oc_segment_rank[0] */
	uint64_t area_off;		/* of rank 0's area */
	uint64_t area_bytes;		/* of each */
	uint64_t cookie_mask;		/* random; hides owner and slot in a cookie */
	_Atomic uint32_t barrier_count; /* oc_node_barrier() only */
	_Atomic uint32_t barrier_gen;	/* futex; top bit: broken for good */
};

struct oc_node_peer {
	/* Mapping of all of the peer's arena in this process, or NULL. [rank]:
	 * the arena itself. */
	char *arena;
	char *seeds;	   /* else what windows of it are made of: lib/access/window.h */
	size_t arena_size; /* 0: not reachable. A rank's arena is so for all or for none */
	uint32_t pid;
	/* OC_MECH_* by which it is read and written from here, tried by real copies, of those
	 * that are tried; and the errno of each that refused, by index of the bit. */
	_Atomic uint32_t gets;
	_Atomic uint32_t puts;
	int refusal[OC_MECH_COUNT];
	_Atomic uint64_t seen_ms; /* when a copy last asked whether it is alive */
};

/* What was taken from other ranks or to them, by index of the OC_MECH_* bit:
 * lib/access/access.h counts. */
struct oc_moved {
	_Atomic uint64_t calls[OC_MECH_COUNT];
	_Atomic uint64_t bytes[OC_MECH_COUNT];
	_Atomic uint64_t demotions; /* mechanisms that should have and refused */
};

struct oc_pin_cache;
struct oc_region_table;
struct oc_stage_service;

struct oc_node {
	int segment_fd;
	struct oc_segment *segment;
	struct oc_segment_rank *ranks;
	uint32_t rank;
	uint32_t nranks;
	uint32_t ncpus;		    /* distinct CPUs the ranks may run on */
	bool oversubscribed;	    /* nranks > ncpus */
	struct oc_node_peer *peers; /* [nranks]; [rank] is this process */
	uint32_t spin;		    /* polls before yielding, 0 when oversubscribed */
	uint32_t pid;		    /* of the process that joined */
	/* A page that fork empties: tells a child in no time that the handle is
	 * not its own. NULL on kernels without MADV_WIPEONFORK. */
	const uint32_t *mine;
	struct oc_file segment_file;	  /* of the control segment: is segment_fd still ours? */
	void *probe;			  /* what peers read and write to probe */
	bool kdev;			  /* /dev/onecopy is open: lib/access/kdev.c */
	int kdev_err;			  /* else why: -errno, 0 nobody asked for it */
	struct oc_windows *windows;	  /* NULL: peers' arenas are mapped whole */
	struct oc_pin_cache *pin_cache;	  /* this rank's memory as kernel regions */
	struct oc_region_table *table;	  /* this rank's regions: lib/region/region.c */
	struct oc_stage_service *service; /* the thread behind it: lib/access/stage.c */
	_Atomic uint32_t mech_mask;	  /* OC_MECH_* this process may use */
	struct oc_moved moved;		  /* by oc_get() and the like */
};

struct oc_node_attr;

/* This rank's private part of the control segment: written by its owner,
 * read by peers; who uses which bytes is settled by lib/segment/area.h. */
static inline char *oc_node_area(const struct oc_node *node, uint32_t rank)
{
	return (char *)node->segment + node->segment->area_off + rank * node->segment->area_bytes;
}

/* False in a child forked from the process that joined: there the control
 * segment and the arenas are not mapped. */
static inline bool oc_node_mine(const struct oc_node *node)
{
	if (node->mine)
		return *node->mine != 0;
	return (uint32_t)getpid() == node->pid;
}

#endif
