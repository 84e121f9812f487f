/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_CMA_H
#define OC_CMA_H

/* Cross Memory Attach: process_vm_readv(2) and process_vm_writev(2). */

#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "segment/node.h"

/* The system call itself, with its errno: the C library's name for it may be the program's
 * (procvm/procvm.h). */
ssize_t oc_cma_call(enum oc_direction direction, pid_t pid, const struct iovec *local,
		    unsigned long nlocal, const struct iovec *remote, unsigned long nremote,
		    unsigned long flags);

/*
 * Moves @len bytes between cursors and advances both, resuming short copies. Returns the bytes
 * moved, fewer when the rest was refused, or an error when all was: -EFAULT memory not mapped at
 * either end, -EPERM ptrace access refused, -ENOSYS no such call, -EPIPE the peer is gone. Whether
 * a peer may be asked at all is in node->peers[].gets and .puts. Any thread.
 */
ssize_t oc_cma_move(const struct oc_node *node, uint32_t peer, enum oc_direction direction,
		    struct oc_cursor *local, struct oc_cursor *remote, size_t len);

#endif
