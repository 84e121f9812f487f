// SPDX-License-Identifier: BSD-3-Clause
/*
 * CMA copies between two address spaces by one system call, and pays for it
 * with a page table walk and a reference on every remote page. The kernel asks
 * ptrace_may_access() (ptrace(2), "Ptrace access mode checking"): Yama, user
 * namespaces, seccomp filters and processes that are not dumpable refuse it.
 * Nothing here opens a process to others to get around that: refusals are
 * reported, and another mechanism serves.
 */
#include "access/cma.h"

#include <errno.h>
#include <sys/syscall.h>

#include "access/private_pages.h"
#include "base/raw_call.h"

/* Segments of a call. Far below IOV_MAX, where the call's own cost is gone. */
#define BATCH 256

ssize_t oc_cma_call(enum oc_direction direction, pid_t pid, const struct iovec *local,
		    unsigned long nlocal, const struct iovec *remote, unsigned long nremote,
		    unsigned long flags)
{
	long number = direction == OC_GET ? SYS_process_vm_readv : SYS_process_vm_writev;

	return oc_raw_call(number, pid, (long)local, (long)nlocal, (long)remote, (long)nremote,
			   (long)flags);
}

ssize_t oc_cma_move(const struct oc_node *node, uint32_t peer, enum oc_direction direction,
		    struct oc_cursor *local, struct oc_cursor *remote, size_t len)
{
	struct iovec here[BATCH], there[BATCH];
	pid_t pid = (pid_t)node->peers[peer].pid;
	size_t done = 0;

	while (done < len) {
		size_t nhere, nthere, bytes;
		ssize_t moved;

		nhere = oc_cursor_gather(local, here, BATCH, len - done, &bytes);
		nthere = oc_cursor_gather(remote, there, BATCH, bytes, &bytes);
		if (!bytes)
			return done ? (ssize_t)done : -EFAULT;
		moved = oc_cma_call(direction, pid, here, nhere, there, nthere, 0);
		if (moved < 0) {
			int err = errno;

			if (err == EINTR)
				continue;
			if (done)
				return (ssize_t)done;
			/* An exiting process loses its memory before its locks:
			 * it need not look dead to us yet. */
			return err == ESRCH ? -EPIPE : -err;
		}
		if (!moved)
			return done ? (ssize_t)done : -EFAULT;
		/* A short count is a page that was refused, or MAX_RW_COUNT:
		 * going on from there tells which. */
		if (oc_private_pages_count((size_t)moved))
			oc_private_pages_tell(node, peer, there, nthere, (size_t)moved);
		oc_cursor_skip(local, (uint64_t)moved);
		oc_cursor_skip(remote, (uint64_t)moved);
		done += (size_t)moved;
	}
	return (ssize_t)done;
}
