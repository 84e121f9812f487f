/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_EXEC_H
#define OC_EXEC_H

#include <stdbool.h>
#include <stddef.h>

#include "calc.h"
#include "group.h"
#include "plan.h"

/* How the other end of a pair turned out to be (OC_STEP_PAIR): nothing was done but where
 * they are together. */
enum oc_pair {
	OC_PAIR_TOGETHER, /* also as long as nothing is known */
	OC_PAIR_ABSENT,	  /* knows of no such pair */
	OC_PAIR_LESS,	  /* has fewer bytes than this one */
	OC_PAIR_MORE,
};

/* The buffers and the operator one issue of a plan works on. */
struct oc_bind {
	const void *send; /* this rank's send slot, or NULL */
	size_t send_bytes;
	void *recv; /* this rank's receive slot, or NULL */
	size_t recv_bytes;
	size_t scratch_bytes;	  /* wanted; the executor provides it */
	const void *scratch_init; /* copied to the scratch slot first, or NULL; a table that peers
				   * may read until they have retired the operation, at most
				   * OC_EAGER_MAX */
	uint8_t *
		pair; /* enum oc_pair, [size] of each peer, [size] of OC_STEP_OUT; NULL: no pairs */
	enum oc_op op;
	enum oc_type type;
	bool call;	 /* let the module copy a foreign send slot rather than stage it */
	bool recv_whole; /* every page of the receive slot will be written */
	bool recv_hole;	 /* pages of the receive slot may be none of the program's: do not pin it */
};

/*
 * Runs @plan in the calling thread, all of it, as the group's next operation.
 * On return the send buffer may be written and the receive buffer read, and after a
 * failure too no living member is at either of them. 0; -EPIPE a member died;
 * -ENOMEM; -EMSGSIZE the members bound different amounts; what another member gave up for.
 * After a failure the operation has failed on every member that needed this one,
 * perhaps on others, and the group is in step again.
 */
int oc_exec_inline(struct oc_group *group, const struct oc_plan *plan, const struct oc_bind *bind);

/* Takes the place of oc_exec_inline() for a member that cannot take part in the
 * group's next operation: those that need it fail for the reason @err, -errno, too. */
void oc_exec_decline(struct oc_group *group, int err);

#endif
