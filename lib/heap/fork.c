// SPDX-License-Identifier: BSD-3-Clause
/*
 * fork() must give the child its own copy of the arena, as it does of all other
 * memory, though the arena is MAP_SHARED. Most children exec or exit within a
 * millisecond and read little; so the copy is put off:
 *
 * - The arena is MADV_DONTFORK: whatever goes wrong, a child faults; it never
 *   writes into its parent's or a peer's data. That is what children get that
 *   the C library does not know of (raw clone, _Fork).
 * - The child maps the file's pages under live blocks MAP_PRIVATE (pieces.c). What it
 *   writes is its own from then on; what it has not written is still the
 *   parent's, so the parent must not go on. It sleeps on a pipe whose write end
 *   only the child has.
 * - After a millisecond a helper thread in the child (helper.h) makes all
 *   pages its own and ends. If the process execs, exits or is killed before,
 *   the thread ends too; either way the pipe closes and the parent goes on.
 *   Little data is copied at once, without the thread.
 * - Our handlers are registered first (preload/fork.c), so prepare runs after every
 *   other one, and the child's memory stands before any other child handler: what the
 *   program locks around fork is consistent in the child. Other threads of the
 *   parent run on; what they write without such a lock during fork(), the child
 *   sees or not, until fork() returns.
 * - Holes of the file become anonymous memory in the child: the parent may fill
 *   them later. Neither they nor dead blocks are ever touched on the child's behalf.
 * - Where the program has closed the file's descriptor, the child inherits a
 *   second mapping of the arena (view.h), copies out of it at once and
 *   drops it, while the parent waits as above; or copies nothing, when that
 *   would be much.
 * - A child that forks settles its own copy first.
 * - What the program wants children not to have (onfork.h) is taken from the copy.
 * - The child only reads, writes and frees its copy. mimalloc's state may have
 *   been caught in the midst of another thread's work, so nothing is allocated
 *   from it: new blocks come from the C library.
 *
 * vfork, posix_spawn, system and popen run no handlers and need none: their
 * child runs in the parent's memory until it calls exec, which closes the pipe
 * should another thread be forking.
 *
 * Limits. A child that is held before its copy is made (held.h) is not waited
 * for: it loses the heap, that is, faults when it uses it. So does
 * a child for which no descriptors, address space or memory are left, or that
 * would have much to copy without the file's descriptor. A child keeps the file
 * alive, so the parent's freed memory is not returned as long as peers or
 * children have it. Where another thread makes a process by a bare clone(2) that
 * never calls exec, at the same moment, fork() waits for that one. Until the
 * helper has copied a child has two threads as far as the kernel knows. Calls for which
 * that counts wait for it (preload/single.c). Those made past the C library do not: one
 * that enters a user namespace is refused, and a filter of system calls for all
 * threads may kill the process for what the helper does.
 */
#include "heap/fork.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/pages.h"
#include "base/quiet.h"
#include "base/signals.h"
#include "heap/arena.h"
#include "heap/held.h"
#include "heap/helper.h"
#include "heap/mimalloc.h"
#include "heap/onfork.h"
#include "heap/pieces.h"
#include "heap/span.h"
#include "heap/static_data.h"
#include "heap/view.h"

#define AT_ONCE ((size_t)64 << 10) /* costs less to copy than a thread */

/* Held by the forking thread from prepare to parent or child: two threads that
 * fork at once take turns, and no child inherits another's pipe. Signals wait
 * meanwhile, as their handlers may fork; but for the terminal's stop, which
 * should stop the parent with the child, unless the program handles or blocks it.
 * So does a cancellation, for fork() is no point of one, but calls here are. */
static struct {
	pthread_mutex_t lock;
	sigset_t mask; /* as it was */
	int cancel;    /* likewise */
	bool live;     /* anything to copy */
	int turn[2];
	int view_err; /* why there is no view, where the program has closed the arena's file */
	size_t bytes;
	struct oc_heap_copy copy;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_copy;
static bool has_copy; /* which has data */

static bool can_populate(void)
{
	return !oc_quiet_madvise(state.copy.mapping[0].base, 0, MADV_POPULATE_WRITE);
}

static int advise(const struct oc_heap_copy *copy, int advice)
{
	int err = 0;

	for (int i = 0; i < OC_HEAP_MAPPINGS; i++)
		if (oc_quiet_madvise(copy->mapping[i].base, copy->mapping[i].size, advice))
			err = -errno;
	return err;
}

/* Better no data than some. */
static void forbid(const struct oc_heap_copy *copy)
{
	for (int i = 0; i < OC_HEAP_MAPPINGS; i++)
		mprotect(copy->mapping[i].base, copy->mapping[i].size, PROT_NONE);
}

/* Nothing hides the rest: neither what the program has made read-only since, which must
 * not be touched, nor what the child is not to have. */
static void own(char *at, size_t bytes)
{
	size_t half = bytes / 2 & ~(OC_HEAP_PAGE - 1);

	if (!oc_quiet_madvise(at, bytes, MADV_POPULATE_WRITE) || !half)
		return;
	own(at, half);
	own(at + half, bytes - half);
}

/* Without changing: another thread may be writing. */
static void touch(const struct oc_heap_piece *piece)
{
	for (size_t i = 0; i < piece->bytes; i += OC_HEAP_PAGE)
		if (!oc_heap_onfork_lacks((char *)oc_heap_range.base + piece->off + i))
			__atomic_fetch_or(piece->at + i, 0, __ATOMIC_RELAXED);
}

static void settle(void)
{
	struct oc_heap_copy *copy = &state.copy;
	bool populate = can_populate();

	for (size_t i = 0; i < copy->count; i++)
		if (!copy->pieces[i].data)
			continue;
		else if (populate)
			own(copy->pieces[i].at, copy->pieces[i].bytes);
		else
			touch(&copy->pieces[i]);
	advise(copy, MADV_DOFORK);
	atomic_store(&copy->settled, true);
}

static bool found_live(char *run, size_t bytes, bool zeros, void *arg)
{
	state.live = true;
	return false;
}

/* For the child, as the program has closed the descriptor. */
static void open_view(void)
{
	static bool told;

	state.view_err = oc_heap_view_open();
	if (!told)
		oc_note("the descriptor of the shared heap is closed: fork copies it at once");
	told = true;
}

/* Past whoever listens to close(): quiet.h says why. */
static void shut(int fd)
{
	if (fd >= 0)
		syscall(SYS_close, fd);
}

/* What the child prints is not to be taken for its word: file.h. */
static bool open_turn(void)
{
	if (pipe2(state.turn, O_CLOEXEC | O_NONBLOCK))
		return false;
	state.turn[0] = oc_file_above(state.turn[0]);
	state.turn[1] = oc_file_above(state.turn[1]);
	if (state.turn[0] >= 0 && state.turn[1] >= 0)
		return true;
	shut(state.turn[0]);
	shut(state.turn[1]);
	state.turn[0] = state.turn[1] = -1;
	return false;
}

static void prepare(void)
{
	int saved = errno, cancel;
	sigset_t mask;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	oc_signals_hold(&mask);
	pthread_mutex_lock(&state.lock);
	state.mask = mask;
	state.cancel = cancel;
	state.turn[0] = state.turn[1] = -1;
	state.live = false;
	state.view_err = -EBADF;
	if (is_copy && !atomic_load(&state.copy.settled))
		settle();
	if (oc_heap_range.size && !is_copy)
		oc_heap_span_walk(found_live, NULL);
	if (state.live && !open_turn())
		oc_note("no descriptors to hand the shared heap to a forked child");
	if (state.turn[1] >= 0)
		state.copy.parent = getpid();
	if (state.turn[1] >= 0 && oc_heap_fd() < 0)
		open_view();
	errno = saved;
}

static void leave(void)
{
	sigset_t mask = state.mask;
	int cancel = state.cancel;

	pthread_mutex_unlock(&state.lock);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	pthread_setcancelstate(cancel, NULL);
}

/* Until the child has its own pages or needs none; at once if fork() failed. */
static void wait_turn(void)
{
	struct pollfd turn = {.fd = state.turn[0]}; /* POLLHUP alone */
	struct oc_heap_held held = {0};

	for (;;) {
		struct timespec limit = {.tv_nsec = OC_HEAP_HELD_MS * 1000000L};
		long n = syscall(SYS_ppoll, &turn, 1, &limit, NULL, 0);

		if (n > 0 || (n < 0 && errno != EINTR))
			return;
		if (!n && oc_heap_held(&held, state.turn[0]))
			return;
	}
}

static void parent(void)
{
	int saved = errno;

	oc_heap_view_close();
	if (state.turn[1] >= 0) {
		shut(state.turn[1]);
		wait_turn();
		shut(state.turn[0]);
	}
	leave();
	errno = saved;
}

static int fill_copy(void)
{
	int fd = oc_heap_fd(), err;

	if (fd < 0 && state.view_err)
		return state.view_err;
	state.bytes = 0;
	err = oc_heap_pieces_find(&state.copy, fd);
	if (!err)
		err = fd >= 0 ? oc_heap_pieces_map(&state.copy, fd, &state.bytes)
			      : oc_heap_view_copy(&state.copy);
	if (fd < 0)
		state.copy.count = 0; /* all of it is the child's own */
	return err ? err : oc_heap_onfork_apply();
}

/* It does when this process is held (held.h). If it died, nobody writes any more; in a PID
 * namespace of its own a child does not see that, and takes it for alive. */
static bool parent_went_on(void)
{
	struct pollfd turn = {.fd = state.copy.turn};
	pid_t parent;

	if (syscall(SYS_ppoll, &turn, 1, &(struct timespec){0}, NULL, 0) != 1 ||
	    !(turn.revents & POLLERR))
		return false;
	parent = getppid();
	return !parent || parent == state.copy.parent;
}

/* A parent that waits may want to know whom for. One that dies now leaves a signal, which is not
 * the program's. */
static int name_self(void)
{
	pid_t self = getpid();
	sigset_t pending, pipe;

	if (parent_went_on())
		return -ESTALE;
	sigpending(&pending);
	if (write(state.copy.turn, &self, sizeof(self)) == sizeof(self))
		return 0;
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	if (!sigismember(&pending, SIGPIPE))
		sigtimedwait(&pipe, NULL, &(struct timespec){0});
	return parent_went_on() ? -ESTALE : 0;
}

static int settle_now_or_later(void)
{
	struct oc_heap_copy *copy = &state.copy;

	/* Touching is safe now, not when the program is running. */
	if (state.bytes > AT_ONCE && can_populate() && !advise(copy, MADV_DONTFORK) &&
	    !oc_heap_helper_start(copy))
		return 0; /* which looks itself, at the end */
	settle();
	return parent_went_on() ? -ESTALE : 0;
}

static const char *explain(int err)
{
	switch (err) {
	case -EFBIG:
		return "too much to copy without its descriptor";
	case -ESTALE:
		return "it was stopped, and its parent went on";
	default:
		return strerror(-err);
	}
}

static void make_copy(void)
{
	struct oc_heap_copy *copy = &state.copy;
	int err;

	copy->mapping[0] = (struct oc_heap_mapping){(char *)oc_heap_range.base, oc_heap_range.size};
	copy->mapping[1] =
		(struct oc_heap_mapping){(char *)oc_heap_static.from, oc_heap_static.mapped};
	copy->turn = state.turn[1];
	copy->count = 0;
	/* The hole fork left must belong to the arena: were it reused, blocks of the C
	 * library would be taken for ours. And whatever fork did leave there is the
	 * parent's: the program may have told the kernel to (MADV_DOFORK) past us. */
	for (int i = 0; i < OC_HEAP_MAPPINGS; i++) {
		const struct oc_heap_mapping *one = &copy->mapping[i];

		if (!one->size ||
		    oc_quiet_mmap(one->base, one->size, PROT_NONE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
				  0) == one->base)
			continue;
		oc_note("no shared heap in a forked child: %s", strerror(errno));
		oc_quiet_munmap(one->base, one->size);
		return;
	}
	if (copy->turn < 0)
		return;
	err = name_self();
	if (!err)
		err = fill_copy();
	if (!err)
		err = settle_now_or_later();
	if (err) {
		oc_note("no shared heap in a forked child: %s", explain(err));
		forbid(copy);
		copy->count = 0;
		return;
	}
	has_copy = true;
}

static void child(void)
{
	int saved = errno;

	oc_heap_helper_forget();
	if (oc_heap_range.size && !is_copy) {
		shut(state.turn[0]);
		/* Nothing live is nothing to keep a place for. */
		if (state.live)
			make_copy();
		else
			__atomic_store_n(&oc_heap_range.size, 0, __ATOMIC_RELAXED);
		oc_heap_view_close();
		oc_heap_become_copy();
		oc_mi_forget_thread();
		is_copy = true;
		/* Last: the parent goes on, unless a helper has them too. */
		shut(state.turn[1]);
	} else if (has_copy && oc_heap_onfork_apply()) {
		/* Better no data than what the child is not to have. */
		forbid(&state.copy);
	}
	leave();
	errno = saved;
}

void oc_heap_fork_register(void)
{
	static atomic_bool begun;

	/* Not pthread_once(): this comes back to here by preload/fork.c. */
	if (!atomic_exchange(&begun, true))
		pthread_atfork(prepare, parent, child);
}
