// SPDX-License-Identifier: BSD-3-Clause
/*
 * The two functions themselves. A process is known by its PID, as to the kernel: ranks in other PID
 * namespaces have numbers there that mean others here, so calls on them are the system's. So are
 * those on this process, for the kernel says what copies between overlapping ranges do.
 */
#include "procvm.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "access/private_pages.h"
#include "answer.h"
#include "base/env.h"
#include "heap/promote.h"
#include "help.h"
#include "lone.h"
#include "peers.h"
#include "segment/alive.h"

#define EXPORT __attribute__((visibility("default")))

#define LEFT_MS 10000 /* longer than any copy */

/* Turns of waiting before a rank helps: in a loop of MPI_Get and MPI_Win_flush it has its own to
 * copy sooner, and helping the peer first would only change who comes first. */
#define PATIENCE 32

static struct oc_node *_Atomic served; /* NULL: no call is answered */
static _Atomic uint32_t inside;	       /* calls that may be using it, */
/* 1: one of them is this thread's */
static __thread uint32_t mine __attribute__((tls_model("initial-exec")));
/* Looks for work of others since it had its own: each costs a short message its time. */
static __thread uint32_t waited __attribute__((tls_model("initial-exec")));
static size_t stream_from;
static struct oc_procvm_counts counts;

/* procvm/lone.h's, whose ranks are found as calls name them. */
static bool is_lone(const struct oc_node *node)
{
	return !node->segment;
}

void oc_procvm_begin_alone(size_t stream, const struct oc_procvm_counts *to)
{
	stream_from = stream;
	counts = *to;
	atomic_store(&served, oc_procvm_lone_begin());
}

int oc_procvm_begin(struct oc_node *node, size_t stream, const struct oc_procvm_counts *to)
{
	int err = oc_procvm_peers_are(node);

	if (err)
		return err;
	/* It may have begun by itself. */
	if (atomic_exchange(&served, NULL))
		oc_procvm_lone_end();
	stream_from = stream;
	counts = *to;
	atomic_store(&served, node);
	return 0;
}

bool oc_procvm_end(void)
{
	struct oc_node *node = atomic_exchange(&served, NULL);

	if (!node || !oc_node_mine(node))
		return true;
	oc_procvm_help_end(node);
	for (int ms = 0; atomic_load(&inside) > mine; ms++) {
		if (ms == LEFT_MS)
			return false;
		usleep(1000);
	}
	return true;
}

/*
 * Whether its PID still is that rank, and it lives: from then on its memory would be no more. The
 * first look is cheap, and does not see one that nobody has waited for, nor a PID used again; the
 * second is made once in a while.
 */
static bool is_alive(const struct oc_node *node, pid_t pid, uint32_t rank)
{
	if (kill(pid, 0) && errno == ESRCH)
		return false;
	return oc_node_peer_lived(node, rank, 1);
}

/* The system has copied @done bytes of @rank's; @tell as oc_private_pages_count() has said. */
static void look_at_pages(const struct oc_node *node, uint32_t rank,
			  const struct oc_procvm_call *call, size_t done, bool tell)
{
	if (is_lone(node) || !oc_node_mine(node))
		return;
	if (tell)
		oc_private_pages_tell(node, rank, call->remote, call->nremote, done);
	oc_private_pages_look(node);
}

/* A call on a rank that is there. */
static ssize_t answer(struct oc_node *node, uint32_t rank, const struct oc_procvm_call *call)
{
	struct oc_procvm_call readable = *call;
	struct oc_procvm_lists lists;
	int saved = errno;
	bool taken, alive;
	ssize_t done;

	taken = oc_procvm_take_lists(&readable, &lists);
	alive = taken && oc_procvm_can_answer(node, rank, &readable) &&
		(is_lone(node) || is_alive(node, call->pid, rank));
	errno = saved;
	done = alive ? oc_procvm_answer(node, rank, &readable, stream_from, &counts)
		     : oc_procvm_leave(call, &counts);
	if (taken && !alive && done > 0)
		look_at_pages(node, rank, &readable, (size_t)done,
			      oc_private_pages_count((size_t)done));
	if (done >= 0)
		errno = saved;
	saved = errno;
	oc_procvm_drop_lists(&lists);
	errno = saved;
	oc_heap_promote_look(done > 0 ? (size_t)done : 0);
	return done;
}

static ssize_t answer_found(struct oc_node *node, const struct oc_procvm_call *call)
{
	int saved = errno;
	uint32_t rank;
	ssize_t done;
	bool held = oc_procvm_lone_hold(call->pid, &rank);

	errno = saved;
	if (!held)
		return oc_procvm_leave(call, &counts);
	done = answer(node, rank, call);
	saved = errno;
	oc_procvm_lone_drop(rank);
	errno = saved;
	return done;
}

static ssize_t answer_or_leave(struct oc_node *node, const struct oc_procvm_peer *peer,
			       const struct oc_procvm_call *call)
{
	if (!oc_node_mine(node))
		return oc_procvm_by_system(call);
	if (is_lone(node) && (uint32_t)call->pid != node->pid)
		return answer_found(node, call);
	return peer ? answer(node, peer->rank, call) : oc_procvm_by_system(call);
}

static struct oc_node *enter(void)
{
	mine++;
	atomic_fetch_add(&inside, 1);
	return atomic_load(&served);
}

static void leave(void)
{
	atomic_fetch_sub(&inside, 1);
	mine--;
}

/* A call on memory of @rank's of which nothing can be done here. */
static ssize_t copy_private(uint32_t rank, const struct oc_procvm_call *call)
{
	ssize_t done = oc_procvm_by_system(call);
	const struct oc_node *node;
	bool tell;

	if (done <= 0)
		return done;
	tell = oc_private_pages_count((size_t)done);
	if (!tell && !oc_private_pages_are_due())
		return done;
	node = enter();
	if (node)
		look_at_pages(node, rank, call, (size_t)done, tell);
	leave();
	return done;
}

static ssize_t call_on(const struct oc_procvm_call *call)
{
	const struct oc_procvm_peer *peer;
	struct oc_node *node;
	ssize_t done;

	/* The handler of a signal that came in the middle of one may hold what it would want. */
	if (mine || !atomic_load_explicit(&served, memory_order_acquire))
		return oc_procvm_by_system(call);
	waited = 0;
	peer = oc_procvm_peer_of(call->pid);
	if (!peer && oc_procvm_means_stranger(call)) {
		errno = ESRCH;
		return -1;
	}
	if (peer && !counts.calls && oc_procvm_is_private(peer, call))
		return copy_private(peer->rank, call);
	node = enter();
	done = node ? answer_or_leave(node, peer, call) : oc_procvm_by_system(call);
	leave();
	return done;
}

bool oc_procvm_copy(uint32_t rank, const struct oc_procvm_between *it)
{
	int saved = errno;
	struct oc_node *node;
	bool done;

	if (mine || !atomic_load_explicit(&served, memory_order_acquire))
		return false;
	waited = 0;
	node = enter();
	done = node && !is_lone(node) && oc_node_mine(node) && rank != node->rank &&
	       oc_node_peer_lived(node, rank, 1) &&
	       oc_procvm_answer_between(node, rank, it, stream_from);
	leave();
	oc_heap_promote_look(done ? it->bytes : 0);
	errno = saved;
	return done;
}

bool oc_procvm_look(void)
{
	struct oc_node *node = atomic_load(&served);

	return node && (oc_procvm_help_begin(node) || oc_env()->thp != OC_ENV_THP_NEVER);
}

static __attribute__((noinline)) int help(void)
{
	bool asked = oc_procvm_is_asked();
	int saved = errno;
	struct oc_node *node;
	uint64_t bytes = 0;

	if ((!asked && !oc_private_pages_are_due()) || mine)
		return 0;
	if (!asked)
		oc_heap_promote_look(0);
	node = enter();
	if (node && oc_node_mine(node)) {
		if (asked)
			bytes = oc_procvm_give_help(node);
		else
			oc_private_pages_look(node);
	}
	leave();
	if (bytes && counts.helped)
		__atomic_fetch_add(counts.helped, bytes, __ATOMIC_RELAXED);
	errno = saved;
	return bytes > 0;
}

int oc_procvm_help(void)
{
	return ++waited < PATIENCE ? 0 : help();
}

EXPORT ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long nlocal,
				const struct iovec *remote, unsigned long nremote,
				unsigned long flags)
{
	struct oc_procvm_call call = {OC_GET, pid, local, nlocal, remote, nremote, flags};

	return call_on(&call);
}

EXPORT ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long nlocal,
				 const struct iovec *remote, unsigned long nremote,
				 unsigned long flags)
{
	struct oc_procvm_call call = {OC_PUT, pid, local, nlocal, remote, nremote, flags};

	return call_on(&call);
}

long oc_procvm_by_number(long number, long pid, long local, long nlocal, long remote, long nremote,
			 long flags)
{
	struct oc_procvm_call call = {
		.direction = number == SYS_process_vm_readv ? OC_GET : OC_PUT,
		.pid = (pid_t)pid,
		.local = (const struct iovec *)local,
		.nlocal = (unsigned long)nlocal,
		.remote = (const struct iovec *)remote,
		.nremote = (unsigned long)nremote,
		.flags = (unsigned long)flags,
	};

	return call_on(&call);
}
