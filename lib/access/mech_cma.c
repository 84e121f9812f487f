// SPDX-License-Identifier: BSD-3-Clause
/* CMA as a mechanism: what access/cma.c does, for targets. */
#include "access/mech.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "access/cma.h"
#include "base/file.h"
#include "segment/alive.h"

#define LIVED_MS 1

/*
 * A seccomp filter may kill whoever makes these calls, and a rank must not find
 * that out on itself: a child tries them first. Made by the bare system call,
 * so that no fork handler runs; it does nothing but system calls. Its end raises no
 * signal, so that no handler sees it, and nobody who ignores SIGCHLD or waits for any
 * child takes its status.
 */
static int cma_ready(const struct oc_node *node)
{
	int status = 0;
	pid_t child;

	if (prctl(PR_GET_SECCOMP) != SECCOMP_MODE_FILTER)
		return 0;
	child = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	if (child == 0) {
		oc_cma_call(OC_GET, getpid(), NULL, 0, NULL, 0, 0);
		oc_cma_call(OC_PUT, getpid(), NULL, 0, NULL, 0, 0);
		_exit(0);
	}
	if (child < 0)
		return -ENOSYS;
	while (waitpid(child, &status, __WCLONE) < 0)
		if (errno != EINTR)
			return -ENOSYS;
	return WIFEXITED(status) ? 0 : -ENOSYS;
}

/* kernel.yama.ptrace_scope, or -1 without Yama. */
static int read_yama(void)
{
	char text[16];

	return oc_file_read_text("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text)) > 0
		       ? atoi(text)
		       : -1;
}

static void cma_explain(const struct oc_node *node, uint32_t peer, char *why, size_t size)
{
	int err = node->peers[peer].refusal[oc_mech_index(OC_MECH_CMA)], scope;

	why[0] = '\0';
	if (!err)
		return;
	/* Whoever has that number here may well be somebody else's to refuse. */
	if (node->ranks[peer].pidns != node->ranks[node->rank].pidns)
		err = ESRCH;
	switch (err) {
	case EPERM:
	case EACCES:
		scope = read_yama();
		if (scope > 0)
			snprintf(why, size,
				 "Yama forbids it: kernel.yama.ptrace_scope is %d, 0 allows it",
				 scope);
		else
			snprintf(why, size,
				 "ptrace access refused (user namespace, seccomp or not dumpable)");
		return;
	case ENOSYS:
		snprintf(why, size, "process_vm_readv is missing or filtered by seccomp");
		return;
	case ESRCH: /* what is there has another token; or there is no such memory, or process */
	case EFAULT:
	case EPIPE:
		snprintf(why, size, "PID %u is not the peer here (another PID namespace)",
			 node->peers[peer].pid);
		return;
	default:
		snprintf(why, size, "the probe failed: %s", strerror(err));
	}
}

/* A refusal on grounds of policy will not change its mind: ask no more. */
static void note_refusal(struct oc_node_peer *it, enum oc_direction direction, ssize_t err)
{
	if (err != -EPERM && err != -ENOSYS && err != -EACCES)
		return;
	it->refusal[oc_mech_index(OC_MECH_CMA)] = (int)-err;
	atomic_fetch_and_explicit(direction == OC_GET ? &it->gets : &it->puts,
				  ~(uint32_t)OC_MECH_CMA, memory_order_relaxed);
}

static ssize_t cma_move(struct oc_node *node, const struct oc_target *target,
			enum oc_direction direction, uint64_t offset, struct oc_cursor *local,
			size_t len)
{
	struct oc_node_peer *it = &node->peers[target->owner];
	struct oc_cursor remote;
	ssize_t moved;

	if (!(atomic_load_explicit(direction == OC_GET ? &it->gets : &it->puts,
				   memory_order_relaxed) &
	      OC_MECH_CMA))
		return -EOPNOTSUPP;
	/* Whoever has its number by now may have memory there. */
	if (direction == OC_PUT && !oc_node_peer_lived(node, target->owner, LIVED_MS))
		return -EPIPE;
	oc_cursor_init(&remote, target->segs, target->nsegs, offset);
	moved = oc_cma_move(node, target->owner, direction, local, &remote, len);
	if (moved < 0)
		note_refusal(it, direction, moved);
	return moved;
}

/*
 * Two copies past the caches took half the time of one by CMA, which takes hold of
 * the pages one by one, wherever that was measured: docs/tuning.md. So CMA is for
 * whom staging is forbidden to.
 *
 * A copy into a slot is as good as one out of the peer's, so its peer can do its share.
 * What goes to all at once would be read once for each, and what is folded would be
 * copied once more: there the owner had better pull.
 */
static uint32_t cma_offer(struct oc_node *node, const struct oc_want *want, int *place)
{
	if (want->staged || want->bytes < OC_MECH_CALL_MIN || (want->write && !want->plain))
		return 0;
	return OC_MECH_CMA;
}

const struct oc_mech oc_mech_cma = {
	.means = "CMA",
	.bit = OC_MECH_CMA,
	.tried = true,
	.ready = cma_ready,
	.explain = cma_explain,
	.offer = cma_offer,
	.move = cma_move,
};
