/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PROCVM_ANSWER_H
#define OC_PROCVM_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/cursor.h"
#include "between.h"
#include "counts.h"
#include "segment/node.h"

/* A call as it came in. */
struct oc_procvm_call {
	enum oc_direction direction;
	pid_t pid;
	const struct iovec *local;
	unsigned long nlocal;
	const struct iovec *remote;
	unsigned long nremote;
	unsigned long flags;
};

/* The system call, with its errno. The second counts it. */
ssize_t oc_procvm_by_system(const struct oc_procvm_call *call);
ssize_t oc_procvm_leave(const struct oc_procvm_call *call, const struct oc_procvm_counts *counts);

#define OC_PROCVM_FEW 16

/* Room for copies: of many pieces it is mapped. */
struct oc_procvm_lists {
	struct iovec local[OC_PROCVM_FEW];
	struct iovec remote[OC_PROCVM_FEW];
	struct iovec *many[2]; /* NULL or IOV_MAX of them */
};

/* Before anything else looks at a call: its lists become ones that can be read, those of the
 * caller or copies in @lists. False, and the call is the system's, where that cannot be. Makes use
 * of errno. */
bool oc_procvm_take_lists(struct oc_procvm_call *call, struct oc_procvm_lists *lists);

/* When the call is done, and also after false. */
void oc_procvm_drop_lists(struct oc_procvm_lists *lists);

/* Whether any of a call on rank @peer can be done here. It is well-formed then. */
bool oc_procvm_can_answer(const struct oc_node *node, uint32_t peer,
			  const struct oc_procvm_call *call);

/* Does it, after oc_procvm_can_answer() and with the peer alive, what can be done here and what
 * the system has to. As the system call: how much, or -1 with errno. Stores of @stream bytes and
 * more may go past the caches. */
ssize_t oc_procvm_answer(struct oc_node *node, uint32_t peer, const struct oc_procvm_call *call,
			 size_t stream, const struct oc_procvm_counts *counts);

/* The copy of oc_procvm_copy(), with the peer alive. */
bool oc_procvm_answer_between(struct oc_node *node, uint32_t peer,
			      const struct oc_procvm_between *it, size_t stream);

#endif
