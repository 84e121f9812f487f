/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_ARENA_FIND_H
#define OC_ARENA_FIND_H

/*
 * The arena of a process that is in no node with this one, and is not asked. The kernel hands over
 * the descriptor (pidfd_getfd(2)), on the very terms of process_vm_readv(2) and its twin, so nobody
 * gets at anything that he could not read and write already. /proc says where that process has the
 * file mapped: what the file holds is its memory there then, whoever has made it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/file.h"

struct oc_arena_found {
	int fd;		     /* the caller's */
	uint64_t base;	     /* where its owner has it mapped, */
	uint64_t size;	     /* all of it, shared */
	uint32_t number;     /* of its owner in /proc, */
	uint32_t descriptor; /* which has the file open as this */
	struct oc_file file;
};

/* What @pid has, a process of the same user. 0 or -errno: -ENOENT when it has none, -EPERM when the
 * kernel or the user says no. Waits for nobody. Any thread; none is cancelled in here. */
int oc_arena_find(pid_t pid, struct oc_arena_found *found);

/* Whether it still is there: its owner has not ended, executed another program or closed the
 * descriptor. Any thread; none is cancelled in here. */
bool oc_arena_stands(const struct oc_arena_found *found);

#endif
