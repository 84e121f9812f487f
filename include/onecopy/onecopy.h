/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ONECOPY_H
#define ONECOPY_H

/*
 * onecopy: moving bytes between the processes of one node, once.
 *
 * Every function returns 0 (or a count where it says so) on success and
 * -errno on failure; out-parameters are written only on success. Sizes and
 * offsets are bytes. Unless a comment says otherwise a function may be called
 * from any thread, and a node handle may be shared by threads.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define ONECOPY_VERSION_MAJOR 0
#define ONECOPY_VERSION_MINOR 1

/* major << 16 | minor of the library that runs. */
unsigned int oc_version(void);

/* ---- node -------------------------------------------------------------- */

typedef struct oc_node oc_node;

/*
 * How to join. Zero the struct, set size to sizeof(struct oc_node_attr).
 *
 * Either @fd is a connected AF_UNIX stream socket inherited from a common
 * parent (rank 0 holds one end per peer in @peer_fds, the others one end in
 * @fd), or @name is a bootstrap name: rank 0 listens on an abstract AF_UNIX
 * address made from it, the others connect. Both ends must have one effective
 * uid (SO_PEERCRED), else the join fails with -EPERM.
 */
struct oc_node_attr {
	size_t size;
	const char *name;    /* bootstrap, at most 64 bytes; NULL: descriptors */
	int fd;		     /* used by ranks > 0 when name is NULL */
	const int *peer_fds; /* rank 0 when name is NULL: [nranks], [0] unused */
	uint32_t rank;	     /* 0 .. nranks - 1, each used once */
	uint32_t nranks;     /* 1 .. 1024 */
	uint32_t timeout_ms; /* for everyone to arrive; 0: 60,000 */
	uint32_t flags;	     /* must be 0 */
};

/*
 * Collective over the node's processes. The handle belongs to the caller until
 * oc_node_leave(). A join that fails anywhere fails everywhere. -EINVAL bad attr,
 * processes disagree about nranks, or a rank is used twice; -EPERM another uid;
 * -ETIMEDOUT a peer did not come; -EPIPE one died while joining; -EPROTO the other
 * end is not a onecopy library of this version; -EADDRINUSE the name is taken;
 * -EMFILE too few descriptors; -EFBIG RLIMIT_FSIZE of rank 0 is too small; -ENOMEM;
 * or what the system said.
 */
int oc_node_join(const struct oc_node_attr *attr, oc_node **node);

/* Not collective: peers that still use this rank's regions get -EPIPE or
 * finish, never fault. Destroys this rank's regions. NULL is allowed. */
void oc_node_leave(oc_node *node);

uint32_t oc_node_rank(const oc_node *node);
uint32_t oc_node_size(const oc_node *node);

/* 1 alive, 0 died or left, -EINVAL no such rank or no handle of this process. */
int oc_node_alive(const oc_node *node, uint32_t peer);

/* Waits for every rank. One thread a process. -EPIPE when one died or left, then and
 * ever after; -EINVAL no handle of this process. */
int oc_node_barrier(oc_node *node);

/* ---- shared heap -------------------------------------------------------- */

/* Memory every peer of the process reaches by a plain pointer. NULL when there
 * is none (see oc_heap_why). Freed by oc_free from any thread of this process. */
void *oc_alloc(size_t bytes);
void oc_free(void *p);

/* "" when the heap works, else one line that says why not, or why processes that
 * join from now on cannot map it. Static storage. */
const char *oc_heap_why(void);

/* ---- regions ------------------------------------------------------------ */

#define OC_REGION_READ	    0x1u /* peers may get from it */
#define OC_REGION_WRITE	    0x2u /* peers may put to it */
#define OC_REGION_SINGLEUSE 0x4u /* gone after the first successful look-up */

/*
 * Names a region in every process of its node, and nowhere else. Never 0.
 *
 * A cookie holds 42 random bits beside the numbers of its owner and its slot.
 * It keeps mistakes out: a wrong or outdated one is refused, but for one in
 * 2^42. It is no secret among the processes of a node, which have the tables of
 * all regions mapped, so guesses are not limited; a process outside the node
 * cannot look one up at all.
 */
typedef uint64_t oc_cookie;

/*
 * Declares memory of this process as a region: @iovcnt segments seen as one
 * run of bytes. The memory stays the caller's and must stay mapped until
 * oc_region_destroy(). Nothing is copied. If the kernel module is loaded and
 * RLIMIT_MEMLOCK, which all processes of a user share, and the module's limits
 * allow it, memory of regions of 32 KiB and more outside the heap is pinned
 * while they exist; otherwise nothing is pinned. -EINVAL bad flags, no segments
 * (0 bytes in all are fine), overflow, or no handle of this process; -ENOSPC too many
 * regions or segments; -EIO the kernel gave no random numbers.
 */
int oc_region_create(oc_node *node, const struct iovec *iov, size_t iovcnt, uint32_t flags,
		     oc_cookie *cookie);

/* Owner only. Returns when no peer is inside a copy on it. A region for single
 * use that has been used need not be destroyed; doing so waits for that copy,
 * or says -EINVAL once its place has been used again. -EINVAL unknown, or no handle
 * of this process. */
int oc_region_destroy(oc_node *node, oc_cookie cookie);

/*
 * Copies between local segments and a region (get: region to local), starting
 * at @offset of the region, as many bytes as both sides have. Returns the
 * bytes copied: 0 past the region's end. The data is there when the call
 * returns. -EINVAL unknown cookie, overflow, or no handle of this process; -EACCES
 * protection; -EPIPE the owner is gone; -EFAULT a local segment or the owner's
 * memory is not mapped; -EOPNOTSUPP every mechanism that reaches the region is
 * forbidden. After an error any part of the destination may have been written.
 * Where heap or map serves, a local segment that is not mapped faults, as memcpy()
 * would.
 */
ssize_t oc_get(oc_node *node, oc_cookie src, uint64_t offset, const struct iovec *local,
	       size_t iovcnt);
ssize_t oc_put(oc_node *node, oc_cookie dst, uint64_t offset, const struct iovec *local,
	       size_t iovcnt);

/* Copies @len bytes between two regions, either of which may belong to
 * anybody. Returns and errors as oc_get. Overlap within one region: -EINVAL; -ENOMEM
 * for a copy between two regions neither of which this process can map. */
ssize_t oc_copy(oc_node *node, oc_cookie dst, uint64_t dst_offset, oc_cookie src,
		uint64_t src_offset, uint64_t len);

/* ---- mechanisms --------------------------------------------------------- */

#define OC_MECH_HEAP   0x01u
#define OC_MECH_MAP    0x02u
#define OC_MECH_KCOPY  0x04u
#define OC_MECH_CMA    0x08u
#define OC_MECH_STAGED 0x10u

#ifndef OC_MECH_COUNT	/* onecopy's own tests have one more */
#define OC_MECH_COUNT 5 /* arrays below: index i is bit 1 << i */
/* Their words in ONECOPY_MECH, by index: for an array of const char *. */
#define OC_MECH_NAMES "heap", "map", "kcopy", "cma", "staged"
#endif

/* What was found for one peer, direction this process -> peer. */
struct oc_mech_report {
	uint32_t usable;	      /* OC_MECH_* bits: probed by a real copy, not forbidden */
	uint32_t forbidden;	      /* by ONECOPY_MECH or oc_mech_allow */
	char why[OC_MECH_COUNT][120]; /* per bit: "" or why it is not usable */
};

/* -EINVAL no such peer, or no handle of this process. */
int oc_mech_query(const oc_node *node, uint32_t peer, struct oc_mech_report *report);

/* Only the mechanisms in @mask may be used from now on by this process. The
 * same as ONECOPY_MECH=heap,map,kcopy,cma,staged. -EINVAL for 0 or unknown bits, or
 * no handle of this process. */
int oc_mech_allow(oc_node *node, uint32_t mask);

/* Bytes and calls each mechanism has served in this process, since join. */
struct oc_mech_stats {
	uint64_t calls[OC_MECH_COUNT];
	uint64_t bytes[OC_MECH_COUNT];
	uint64_t demotions; /* run-time failures that moved on to the next one */
};

/* -EINVAL no handle of this process. */
int oc_mech_stats(const oc_node *node, struct oc_mech_stats *stats);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
