/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ONECOPY_PLAN_H
#define ONECOPY_PLAN_H

/*
 * Plan format 1.
 *
 * A plan says what one rank does in one collective, as a graph of steps with
 * dependency edges (the collective activity descriptor of KACC, Nomura and
 * Ishikawa). It names slots, not addresses, and is bound to buffers when it is
 * issued, so it is made once for a group, a shape and a root. An offset in a slot counts
 * the bytes of the buffer in their order, in however many pieces they lie there.
 *
 *   COPY   dst <- src, len bytes; dst may be every rank's receive slot, and then
 *          src is one's own slot or a receive slot, and left out as destination
 *   CALC   dst <- fold over its operands in their order, len bytes of each; operator and
 *          type are bound. dst may be an operand exactly
 *   STAGE  makes this rank's send slot readable by peers, if it is not yet, but for
 *          src.off, len of it, which nobody reads (once in a plan); in an eager
 *          plan copies src.off, len of it to where it stays readable
 *   POST   an event of this rank: all that the step depends on is done
 *   WAIT   for an event of a peer; of a pair, see OC_STEP_PAIR
 *   SEND   POST, then WAIT for the peer's event: a message from the sender's view
 *   RECV   WAIT, COPY, POST: the same from the receiver's
 *
 * Edges lead from step to step of one rank, events from a rank's step to those of its peers that
 * wait for it. An event says nothing of any other: each is posted by one step at most, and any
 * number of ranks may wait for it. Steps stand in an order that respects the edges; an executor
 * may run any step whose dependencies are done.
 *
 * The image is one piece of memory, aligned to 8 bytes: struct oc_plan, and after it the
 * arrays it tells of, in that order and without gaps. There are no pointers in it and no
 * type whose width depends on the process, so that it may be copied, kept in a file and
 * handed to the kernel; numbers are in the byte order of the machine. Reserved members
 * are zero, and so are those that a kind of step makes no use of; each edge and operand belongs
 * to one step, in the order of the steps. Who gets an image from elsewhere checks it before
 * anything else, and where nobody can write it any more (lib/plan/check.h).
 */

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

#define OC_PLAN_MAGIC	0x6e616c70u /* "plan" where bytes of a number stand lowest first */
#define OC_PLAN_VERSION 1u

/* The first event of every rank, which the executor posts: its descriptor is there, its buffers may
 * be used. The lowest numbers are the cheapest. */
#define OC_EVENT_READY 1u
#define OC_EVENT_END   256u /* events are below */

/* Every rank's slot: as dst of COPY and CALC, and as operand, which stands for one of each
 * rank, 0 first. */
#define OC_RANK_ALL 0xffffu

#define OC_OPERANDS_MAX 1024u /* of a CALC, an operand of all counted as those it stands for */

/* What an eager plan stages is in the first bytes of the send slot, so many at most. */
#define OC_EAGER_MAX 65536u

enum oc_step_kind {
	OC_STEP_COPY,
	OC_STEP_CALC,
	OC_STEP_STAGE,
	OC_STEP_POST,
	OC_STEP_WAIT,
	OC_STEP_SEND,
	OC_STEP_RECV,
};

enum oc_slot { OC_SLOT_SEND, OC_SLOT_RECV, OC_SLOT_SCRATCH, OC_SLOT_COUNT };

/* Whether a step applies, known once the rank in cond_rank is READY. Two steps
 * with opposite conditions are two ways to the same end: a peer helps if it
 * can reach the receive slot, else the slot's owner does it alone. */
enum oc_cond {
	OC_COND_ALWAYS,
	OC_COND_DIRECT, /* the receive slot of cond_rank (or of ALL) is reachable */
	OC_COND_INDIRECT,
};

enum {
	/* src.off is looked up in the source rank's scratch slot, which begins with a table
	 * of uint64_t offsets indexed by the reader's rank; dst.off likewise. */
	OC_STEP_SRC_INDEXED = 1 << 0,
	OC_STEP_DST_INDEXED = 1 << 1,
	/*
	 * A WAIT for the other end of a pair whose length no third rank knows. The peer's
	 * length is at src, if that is in its scratch slot, else that of its shape. If it is
	 * not len, or the peer takes no part in the operation, no other step about this pair
	 * applies; its other end, if it is there, finds the same. Two ranks may be
	 * two pairs: OC_STEP_OUT is on all steps of the one to the peer.
	 */
	OC_STEP_PAIR = 1 << 2,
	OC_STEP_OUT = 1 << 3,
	/* What a CALC writes is read again by the next steps: not past the caches. */
	OC_STEP_NEAR = 1 << 4,
};

struct oc_ref {
	uint16_t slot;
	uint16_t rank;
	uint32_t reserved;
	uint64_t off; /* bytes */
};

struct oc_step {
	uint8_t kind;
	uint8_t cond;
	uint16_t cond_rank;
	uint16_t flags;
	uint16_t peer;	    /* WAIT, SEND, RECV */
	uint16_t event;	    /* POST, SEND: posted; WAIT, RECV: waited for */
	uint16_t reply;	    /* SEND: waited for; RECV: posted after the copy */
	uint16_t nedges;    /* steps that must be done before */
	uint16_t noperands; /* CALC */
	uint32_t edge;	    /* the first of its edges */
	uint32_t operand;   /* the first of its operands */
	uint64_t len;
	struct oc_ref dst;
	struct oc_ref src; /* COPY, RECV, STAGE, WAIT */
};

/* What a plan was made for. */
struct oc_shape {
	uint16_t coll;	   /* of whose making it is: no executor needs to know */
	uint16_t in_place; /* of this rank, as the collective needs it */
	uint16_t rank;
	uint16_t size;
	uint16_t root;
	uint16_t granule; /* bytes no slice boundary may cut */
	uint16_t stream;  /* receive slots are long: may be written past the caches */
	uint16_t eager;	  /* STAGE steps come before READY, nobody waits for readers */
	uint64_t bytes;	  /* of a block; of the whole vector in bcast, (all)reduce */
};

struct oc_plan {
	uint32_t magic;
	uint16_t version;
	uint16_t reserved;
	uint32_t size;	/* bytes of the image */
	uint32_t steps; /* where the struct oc_step begin, from the image's first byte */
	uint32_t nsteps;
	uint32_t operands; /* where the struct oc_ref begin that CALC steps fold */
	uint32_t noperands;
	uint32_t edges; /* where the edges begin: uint32_t, numbers of steps */
	uint32_t nedges;
	uint32_t reserved2;
	struct oc_shape shape;
	uint64_t need[OC_SLOT_COUNT]; /* bytes that this rank's own slots must have at least */
};

#endif
