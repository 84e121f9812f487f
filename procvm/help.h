/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PROCVM_HELP_H
#define OC_PROCVM_HELP_H

/*
 * Both ends of a message copy it. One end has called process_vm_readv(2) or its twin; the other
 * mostly waits in the MPI meanwhile, whose progress engine may call functions of others (Open MPI:
 * opal_progress_register()). There it looks whether it is asked, and takes pieces of the copy until
 * none is left. Who asks goes on by itself and waits only for pieces that were taken, so a peer
 * that computes, or has died, costs it nothing.
 *
 * What is shared lies in the area of each rank (lib/segment/area.h): a word by which it is asked,
 * and one offer of its own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "bytes/store_policy.h"
#include "segment/node.h"

/* A copy between memory of this process and of a peer's arena. */
struct oc_procvm_share {
	uint32_t peer;
	enum oc_direction direction;
	char *here;
	char *there;	    /* where the peer's is mapped here, */
	uint64_t there_off; /* and where it is in its arena */
	size_t bytes;
};

/* This process may be asked from now on: it calls oc_procvm_help() while it waits. False where
 * that would not be good. */
bool oc_procvm_help_begin(struct oc_node *node);
void oc_procvm_help_end(struct oc_node *node);

/* Whether somebody asks; a few ns, for each turn of waiting. Any thread, in a forked child, too. */
bool oc_procvm_is_asked(void);

/* Does what it can of what is asked: how many bytes. Any thread. */
uint64_t oc_procvm_give_help(struct oc_node *node);

/* Copies all of it, alone or with the peer. */
void oc_procvm_copy_with_help(struct oc_node *node, const struct oc_procvm_share *share,
			      struct oc_store_turn *stores);

#endif
