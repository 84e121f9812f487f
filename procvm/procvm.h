/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PROCVM_H
#define OC_PROCVM_H

/*
 * The adapter of process_vm_readv(2) and process_vm_writev(2), with which every open MPI ends a
 * large message, UCX and libfabric too. Where both ends are memory that this process can use as
 * such, the peer's in its arena, ours known to be there, they are answered by a copy; any part
 * that is not, and any call that would fail, is left to the kernel, which says what it always
 * said. So their callers need not know, and matching, order and completion stay theirs.
 *
 * procvm/procvm.c has the two functions, procvm/peers.c knows whom they name and leaves the system
 * what is nobody's but theirs, procvm/answer.c splits and copies, procvm/known.c says
 * which memory of this process is certain to be mapped, procvm/help.c has both ends copy,
 * procvm/lone.c finds the peers of programs that are in no job. procvm/between.h is for those who
 * make no call at all.
 */

#include <stdbool.h>
#include <stddef.h>

#include "counts.h"
#include "segment/node.h"

/* Calls on ranks of @node are answered from now on, with stores that may go past the caches from
 * @stream bytes on. 0 or -ENOMEM, and then none is. */
int oc_procvm_begin(struct oc_node *node, size_t stream, const struct oc_procvm_counts *counts);

/* The same for a program without an MPI, which nobody tells who its peers are: calls are answered
 * on whatever process has an arena that the kernel lets this one at. Once, after the heap is there,
 * and over when oc_procvm_begin() is called. */
void oc_procvm_begin_alone(size_t stream, const struct oc_procvm_counts *counts);

/* From now on this process helps with copies that ranks of the node make from or to its memory,
 * unless that would do harm, and looks after its pages: it calls the second while it waits for
 * messages. False where it need not. The second says whether it has done anything; a few ns if
 * not; any thread. */
bool oc_procvm_look(void);
int oc_procvm_help(void);

/* None is any more. True if none is under way either, or this thread's alone; false if one of
 * another thread does not end, that was left by a jump, say: then the node has to stay. For the
 * thread that began. */
bool oc_procvm_end(void);

/* One of the two calls, made by its number: as syscall(2) has it (procvm/number_x86.c). */
__attribute__((used)) long oc_procvm_by_number(long number, long pid, long local, long nlocal,
					       long remote, long nremote, long flags);

#endif
