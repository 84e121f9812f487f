/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_COPY_H
#define OCK_COPY_H

/*
 * A copy: two ends and a bound. An end is a region from an offset on, or the
 * current process's memory, as it is (each access may fault) or pinned (then
 * the copy may run in any thread, or by DMA).
 *
 *	ock_copy_init(&copy);
 *	err = ock_end_region(&copy.source, cookie, offset, ONECOPY_REGION_READ);
 *	...
 *	err = ock_end_local(&copy.destination, vec, nr);
 *	...
 *	err = ock_copy_run(&copy, &copied);
 * out:
 *	ock_copy_deinit(&copy);
 *
 * One thread at a time works on a copy.
 */

#include "pin.h"
#include "table.h"

enum ock_end_kind {
	OCK_END_NONE,
	OCK_END_REGION,
	OCK_END_LOCAL,	/* faultable: only in the process that made it */
	OCK_END_PINNED, /* local, pinned */
};

struct ock_end {
	enum ock_end_kind kind;
	u64 offset;	    /* where the copy starts in it */
	u64 length;	    /* of the whole end */
	struct ock_ref ref; /* REGION */
	union {
		const struct ock_vec *vec; /* LOCAL: the caller's, kept until deinit */
		struct ock_pages *pages;   /* REGION: ref's; PINNED: the end's own */
	};
	u32 nr; /* LOCAL: of vec */
};

struct ock_copy {
	struct ock_end source;
	struct ock_end destination;
	u64 length;	  /* bound; U64_MAX at first */
	const bool *stop; /* set when the copy is to be broken off; NULL at first */
};

void ock_copy_init(struct ock_copy *copy);

/* Looks up and holds. @need: the ABI's READ for a source, WRITE for a destination.
 * Errors of ock_region_get(). */
int ock_end_region(struct ock_end *end, u64 cookie, u64 offset, u32 need);

/* @vec stays the caller's, to be kept until ock_copy_deinit(). -EOVERFLOW. */
int ock_end_local(struct ock_end *end, const struct ock_vec *vec, u32 nr);

/* @vec is not needed afterwards. @writable for a destination. Errors of ock_pages_pin(). */
int ock_end_pin(struct ock_end *end, const struct ock_vec *vec, u32 nr, bool writable,
		const struct ock_limits *limits);

/* The same for an end of @copy, whose other end, a region of another file than @owner's, is not
 * held while the memory is waited for. Errors of ock_copy_resume(), too. */
int ock_copy_pin(struct ock_copy *copy, struct ock_end *end, const struct ock_vec *vec, u32 nr,
		 bool writable, const struct ock_owner *owner);

/* For traces: the end's region, 0 if it is none, or was gone. */
u64 ock_end_cookie(const struct ock_end *end);

/* Bytes that ock_copy_run() will move if nothing fails. */
u64 ock_copy_bytes(const struct ock_copy *copy);

/*
 * Moves them. *copied (may be NULL) says how many, also on error: -EFAULT local
 * memory, -EINTR killed or stopped, -ENOENT or -ESTALE the region went while local memory had to
 * be waited for. Without a LOCAL end any thread may run it, and errors are -EINTR
 * only. Sleeps, reschedules.
 */
int ock_copy_run(struct ock_copy *copy, u64 *copied);

/*
 * For a copy that has to wait for its turn: regions of other files than @owner's may be
 * destroyed meanwhile, and their pages given back. To be followed by ock_copy_resume(), whose
 * 0 says that they are there; -ENOENT, -ESTALE: the copy cannot be made any more.
 */
void ock_copy_pause(struct ock_copy *copy, const struct ock_owner *owner);
int ock_copy_resume(struct ock_copy *copy);

/* Whether somebody wants it to end early: -EINTR. */
bool ock_copy_stopped(const struct ock_copy *copy);

/* Gives everything back. Any thread; may sleep. A copy that was only
 * initialised, or is paused, is fine. */
void ock_copy_deinit(struct ock_copy *copy);

#endif
