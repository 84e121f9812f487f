// SPDX-License-Identifier: BSD-3-Clause
/*
 * Who is alive. Each rank holds a POSIX write lock on byte [rank] of the
 * control segment. The kernel drops it when the process is gone, whatever it
 * died of, and fork does not hand it on. So one F_GETLK answers for any PID
 * namespace, and a PID used again cannot fool it.
 *
 * Such locks have one trap (fcntl(2)): closing any descriptor of the file in
 * the process drops them all. So nothing here ever opens or duplicates the
 * control segment's descriptor. A program that closes descriptors it does not
 * know still may; hence an unlocked byte is only a suspicion, confirmed by the
 * PID and its start time where the PID means anything to us. Where it does not, a
 * rank that has lost its own descriptor takes others to be as it is; one that has not
 * takes those that hold no lock for dead.
 */
#include "segment/alive.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <onecopy/onecopy.h>

#include "base/clock.h"
#include "base/file.h"

static uint64_t read_pidns(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

/*
 * Whether a process has ended, and its start time (fields 3 and 22 of proc(5) stat). One whose
 * first thread has ended is a zombie too, but has others yet (field 20). The command name before
 * them may hold anything: look for its last parenthesis.
 */
static int read_stat(uint32_t pid, bool *ended, uint64_t *starttime)
{
	unsigned long long start;
	long threads;
	char state;
	char path[32], buf[1024], *at;
	long len;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	len = oc_file_read_text(path, buf, sizeof(buf));
	if (len <= 0)
		return len < 0 ? (int)len : -ESRCH;
	at = strrchr(buf, ')');
	if (!at || sscanf(at + 1,
			  " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			  "%ld %*s %llu",
			  &state, &threads, &start) != 3)
		return -EINVAL;
	*ended = (state == 'Z' || state == 'X') && threads <= 1;
	*starttime = start;
	return 0;
}

int oc_node_declare(struct oc_node *node)
{
	struct oc_segment_rank *self = &node->ranks[node->rank];
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = node->rank, .l_len = 1};
	bool ended;

	if (fcntl(node->segment_fd, F_SETLK, &lock))
		return -errno;
	self->pid = node->pid;
	self->pidns = read_pidns();
	if (read_stat(node->pid, &ended, &self->starttime))
		self->starttime = 0;
	return 0;
}

bool oc_node_owns_fd(const struct oc_node *node)
{
	return oc_file_is(&node->segment_file, node->segment_fd);
}

/* What cannot be known, for lack of descriptors, say, is taken for life. */
static bool process_alive(const struct oc_node *node, const struct oc_segment_rank *peer)
{
	uint64_t starttime;
	bool ended;
	int err;

	if (!peer->pidns || peer->pidns != node->ranks[node->rank].pidns)
		return !oc_node_owns_fd(node);
	if (kill((pid_t)peer->pid, 0) && errno == ESRCH)
		return false;
	err = read_stat(peer->pid, &ended, &starttime);
	if (err)
		return err != -ENOENT && err != -ESRCH;
	return starttime == peer->starttime && !ended;
}

bool oc_node_peer_alive(const struct oc_node *node, uint32_t peer)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = peer, .l_len = 1};

	if (atomic_load_explicit(&node->ranks[peer].state, memory_order_acquire) == OC_RANK_LEFT)
		return false;
	if (peer == node->rank)
		return true;
	/* Of the program's own file, which may have the number now, the answer says nothing. */
	if (!fcntl(node->segment_fd, F_GETLK, &lock) && lock.l_type != F_UNLCK &&
	    oc_node_owns_fd(node))
		return true;
	return process_alive(node, &node->ranks[peer]);
}

bool oc_node_peer_lived(const struct oc_node *node, uint32_t peer, uint64_t ms)
{
	_Atomic uint64_t *seen = &node->peers[peer].seen_ms;
	uint64_t now;
	int cancel;
	bool alive;

	if (atomic_load_explicit(&node->ranks[peer].state, memory_order_acquire) == OC_RANK_LEFT)
		return false;
	if (peer == node->rank)
		return true;
	now = oc_clock_coarse_ms();
	if (now - atomic_load_explicit(seen, memory_order_relaxed) < ms)
		return true;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	alive = oc_node_peer_alive(node, peer);
	pthread_setcancelstate(cancel, NULL);
	if (!alive)
		return false;
	atomic_store_explicit(seen, now, memory_order_relaxed);
	return true;
}

int oc_node_alive(const oc_node *node, uint32_t peer)
{
	if (!node || !oc_node_mine(node) || peer >= node->nranks)
		return -EINVAL;
	return oc_node_peer_alive(node, peer);
}
