/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PROCVM_LONE_H
#define OC_PROCVM_LONE_H

/*
 * A program that talks to others by UCX or libfabric without an MPI: started by itself, in no job,
 * so it joins no node. It makes one of its own, whose ranks are the processes that its calls have
 * named and that have an arena (lib/access/arena_find.h); they are not asked and do not know. Where
 * there is none, or the kernel does not let this process at it, calls are the system's, as they
 * are in the second before the next look.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "segment/node.h"

/* The node of this process, which has nobody in it yet. It has no control segment. Once. */
struct oc_node *oc_procvm_lone_begin(void);

/* The rank that @pid has or is given here, false without. Its arena stays mapped until
 * oc_procvm_lone_drop(). Any thread. */
bool oc_procvm_lone_hold(pid_t pid, uint32_t *rank);
void oc_procvm_lone_drop(uint32_t rank);

/* No rank is given any more, and all are forgotten that nobody holds. */
void oc_procvm_lone_end(void);

#endif
