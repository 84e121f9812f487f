// SPDX-License-Identifier: BSD-3-Clause
/*
 * fork() must give the child its own copy of the arena, as it does of all other
 * memory, though the arena is MAP_SHARED. Hence:
 *
 * - The arena is MADV_DONTFORK: whatever goes wrong, a child faults; it never
 *   writes into its parent's or a peer's data. That is what children get that
 *   the C library does not know of (raw clone, _Fork).
 * - Before the fork the parent copies its live blocks to private memory, which
 *   fork then shares copy on write. The child moves it to the arena's place,
 *   the parent drops it. Nobody waits for anybody, a child may be killed at any
 *   instant, and no descriptor is needed.
 * - Our handlers are registered first, so the copy is made after every other
 *   prepare handler has run, and stands before any other child handler: what
 *   the program locks around fork is consistent in the child.
 * - The child only reads, writes and frees its copy. mimalloc's state may have
 *   been caught in the midst of another thread's work, so nothing is allocated
 *   from it: new blocks come from the C library.
 *
 * vfork, posix_spawn, system and popen run no handlers and need none: their
 * child runs in the parent's memory until it calls exec.
 *
 * The cost is one copy of what is live and touched, and nothing while the heap
 * is empty. A small copy's memory is kept for the next fork, for a program that
 * forks often: pages are cheaper to write again than to get. Should the copy be
 * refused (address space), the child faults.
 */
#include "heap_fork.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env.h"
#include "heap.h"
#include "heap_span.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000 /* Linux 4.17 */
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define HUGE	 ((size_t)2 << 20)
#define KEEP_MAX ((size_t)4 << 20) /* below any extent's size: what is a hole stays one */
#define RUNS_MAX 2048		   /* mappings the child may need: far from vm.max_map_count */

struct run {
	char *at;
	char *copy; /* private memory, at the same offset in a huge page */
	char *map;  /* start and length of the mapping around it */
	size_t map_bytes;
	size_t bytes;
};

/* Held by the forking thread from prepare to parent or child: two threads that
 * fork at once take turns. */
static struct {
	pthread_mutex_t lock;
	struct run runs[RUNS_MAX];
	size_t count;
	size_t kept; /* runs from @count on that the last fork left mapped */
	bool whole;  /* runs hold every live block */
} snapshot = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_copy;

/* What was never touched has no page in the file and needs none in the copy. */
static void copy_touched(const struct run *run)
{
	off_t base = (off_t)((uintptr_t)run->at - oc_heap_range.base);
	off_t end = base + (off_t)run->bytes;
	int fd = oc_heap_fd();

	for (off_t at = base; at < end;) {
		off_t data = lseek(fd, at, SEEK_DATA);
		off_t hole;

		if (data < 0 || data >= end)
			return;
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole < 0 || hole > end)
			hole = end;
		/* One call instead of a fault a page. Refused before Linux 5.14. */
		madvise(run->copy + (data - base), (size_t)(hole - data), MADV_POPULATE_WRITE);
		memcpy(run->copy + (data - base), run->at + (data - base), (size_t)(hole - data));
		at = hole;
	}
}

static void unmap_runs(size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		munmap(snapshot.runs[i].map, snapshot.runs[i].map_bytes);
}

static bool map_run(struct run *run, char *at, size_t bytes)
{
	size_t slack = bytes >= HUGE ? HUGE : 0;

	run->map_bytes = bytes + slack;
	run->map = mmap(NULL, run->map_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (run->map == MAP_FAILED)
		return false;
	run->at = at;
	run->bytes = bytes;
	run->copy = run->map;
	if (slack) {
		run->copy += ((uintptr_t)at - (uintptr_t)run->map) & (HUGE - 1);
		madvise(run->map, run->map_bytes, MADV_HUGEPAGE);
	}
	return true;
}

static bool copy_run(char *at, size_t bytes, void *arg)
{
	struct run *run = &snapshot.runs[snapshot.count];

	if (snapshot.count == RUNS_MAX) {
		snapshot.whole = false;
		return false;
	}
	if (snapshot.count < snapshot.kept && (run->at != at || run->bytes != bytes)) {
		unmap_runs(snapshot.count, snapshot.kept);
		snapshot.kept = snapshot.count;
	}
	if (snapshot.count >= snapshot.kept && !map_run(run, at, bytes)) {
		snapshot.whole = false;
		return false;
	}
	snapshot.count++;
	copy_touched(run);
	return true;
}

/* All runs of this and the last fork but the first @keep. */
static void drop_runs(size_t keep)
{
	unmap_runs(keep, snapshot.kept > snapshot.count ? snapshot.kept : snapshot.count);
	snapshot.kept = keep;
	snapshot.count = 0;
}

static void prepare(void)
{
	size_t gap = HUGE;
	int saved = errno;

	pthread_mutex_lock(&snapshot.lock);
	if (!oc_heap_range.size || is_copy)
		return;
	/* Blocks far apart are copied apart; more of them are joined, gaps and
	 * all, when there would be too many. */
	for (;;) {
		snapshot.whole = true;
		oc_heap_span_walk(gap, copy_run, NULL);
		if (snapshot.whole || snapshot.count < RUNS_MAX)
			break;
		drop_runs(0);
		gap *= 16;
	}
	if (!snapshot.whole)
		oc_note("no memory to copy the shared heap for fork: the child can not use it");
	errno = saved;
}

static void parent(void)
{
	size_t bytes = 0;
	int saved = errno;

	for (size_t i = 0; i < snapshot.count; i++)
		bytes += snapshot.runs[i].bytes;
	drop_runs(bytes <= KEEP_MAX ? snapshot.count : 0);
	pthread_mutex_unlock(&snapshot.lock);
	errno = saved;
}

static void move_runs(void)
{
	char *base = (char *)oc_heap_range.base;

	/* The hole fork left must belong to the arena: were it reused, blocks
	 * of the C library would be taken for ours. */
	if (mmap(base, oc_heap_range.size, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
		 0) != base) {
		oc_note("fork: the arena's place is taken");
		return;
	}
	for (size_t i = 0; i < snapshot.count; i++) {
		struct run *run = &snapshot.runs[i];
		char *end = run->map + run->map_bytes;

		if (mremap(run->copy, run->bytes, run->bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
			   run->at) == MAP_FAILED)
			oc_note("fork: a part of the heap's copy can not be moved");
		if (run->copy > run->map)
			munmap(run->map, (size_t)(run->copy - run->map));
		if (run->copy + run->bytes < end)
			munmap(run->copy + run->bytes, (size_t)(end - run->copy) - run->bytes);
	}
	snapshot.count = 0;
}

static void child(void)
{
	int saved = errno;

	if (oc_heap_range.size && !is_copy) {
		move_runs();
		oc_heap_become_copy();
		is_copy = true;
	}
	pthread_mutex_unlock(&snapshot.lock);
	errno = saved;
}

static void register_handlers(void)
{
	pthread_atfork(prepare, parent, child);
}

void oc_heap_fork_register(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_handlers);
}
