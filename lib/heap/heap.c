// SPDX-License-Identifier: BSD-3-Clause
/*
 * The arena has two parts. Blocks up to 8 MiB come from mimalloc, one heap a
 * thread, so threads do not wait for each other. Larger ones are extents
 * (extent.c). Both parts are as large as the memory, as far as there are
 * addresses (lib/base/space.h): which sizes a program prefers is not known ahead. Its
 * end is nobody's: huge.h.
 */
#include "heap/heap.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/env.h"
#include "base/hooked.h"
#include "base/mem_limit.h"
#include "heap/arena.h"
#include "heap/changed.h"
#include "heap/dump.h"
#include "heap/extent.h"
#include "heap/fork.h"
#include "heap/huge.h"
#include "heap/idle.h"
#include "heap/mimalloc.h"
#include "heap/move.h"
#include "heap/onfork.h"
#include "heap/place.h"
#include "heap/promote.h"
#include "heap/span.h"
#include "heap/static_data.h"
#include "heap/view.h"

#define EXTENT_MIN  ((size_t)8 << 20)  /* larger blocks are extents */
#define RELEASE_MIN ((size_t)64 << 10) /* a forked child returns freed pages from here on */
#define SPARSE_MIN  ((size_t)64 << 10) /* larger callocs leave untouched what is zero */

static struct {
	pthread_mutex_t lock; /* init */
	bool done;
	int err;
	const char *reason;
	char *extents;		   /* where the second part starts */
	struct oc_mi_heap *shared; /* if mimalloc serves all threads from one */
	pthread_key_t exit_key;
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER, .reason = "not tried yet"};

static __thread struct {
	struct oc_mi_heap *heap;
	bool gone;
} self __attribute__((tls_model("initial-exec")));

/* Runs before mimalloc's own destructor, which deletes the heap: our key is
 * older. Destructors that run later may still call malloc(). */
static void forget_thread(void *arg)
{
	self.heap = NULL;
	self.gone = true;
}

static int create_parts(struct oc_heap_arena *arena, const char **why)
{
	size_t spare = oc_mem_limit();
	size_t small = arena->size / 2 & ~(OC_MI_SEGMENT - 1);
	size_t large;
	int err = -ENOMEM;

	if (small > oc_mi.arena_max)
		small = oc_mi.arena_max;
	large = arena->size - small - OC_HEAP_THP_TRIAL;
	*why = "no memory for the heap's tables";
	if (oc_heap_span_create(arena->base, arena->size))
		return err;
	/* One process a core: an eighth of the memory in freed blocks, and what a
	 * fork may copy at once. */
	if (spare > arena->size / 2)
		spare = arena->size / 2;
	spare = spare / 8 / (size_t)get_nprocs_conf();
	if (oc_heap_onfork_create(arena->base, arena->size))
		goto destroy_span;
	if (oc_heap_idle_create(arena->base, small, spare))
		goto destroy_onfork;
	if (oc_heap_extent_create(arena->base + small, large, spare))
		goto destroy_idle;
	oc_heap_changed_create(arena->base, arena->size);
	oc_heap_dump_create(arena->base, arena->size);
	oc_heap_thp_create(arena->base, arena->size);
	oc_heap_promote_create(arena->base, arena->size);
	oc_heap_place_create(arena->base, arena->size);
	oc_heap_view_create(arena->base, arena->size, spare);
	*why = "libmimalloc refuses the arena";
	if (oc_mi_manage(arena->base, small))
		goto destroy_extent;
	if (oc_mi.heap_is_shared) {
		heap.shared = oc_mi_heap_create();
		if (!heap.shared)
			goto destroy_extent;
	}
	heap.extents = arena->base + small;
	*why = "";
	return 0;

destroy_extent:
	oc_heap_place_destroy();
	oc_heap_promote_destroy();
	oc_heap_thp_destroy();
	oc_heap_dump_destroy();
	oc_heap_changed_destroy();
	oc_heap_extent_destroy();
destroy_idle:
	oc_heap_idle_destroy();
destroy_onfork:
	oc_heap_onfork_destroy();
destroy_span:
	oc_heap_span_destroy();
	return err;
}

static int init_locked(const char **why)
{
	struct oc_heap_arena arena;
	int err;

	if (oc_env()->off) {
		*why = "forbidden by ONECOPY";
		return -EPERM;
	}
	if (oc_env_is_watched()) {
		*why = "valgrind has malloc and free for itself";
		return -EPERM;
	}
	err = oc_heap_arena_create(&arena, why);
	if (err)
		return err;
	if (pthread_key_create(&heap.exit_key, forget_thread)) {
		*why = "no thread-specific key left";
		err = -ENOMEM;
		goto destroy_arena;
	}
	err = oc_mi_load(why);
	if (err)
		goto delete_key;
	err = create_parts(&arena, why);
	if (err)
		goto delete_key;

	oc_heap_arena_publish(&arena);
	return 0;

delete_key:
	pthread_key_delete(heap.exit_key);
destroy_arena:
	oc_heap_arena_destroy(&arena);
	return err;
}

int oc_heap_init(void)
{
	const char *why = "";

	pthread_mutex_lock(&heap.lock);
	if (!heap.done) {
		oc_heap_fork_register();
		heap.err = init_locked(&why);
		heap.reason = why;
		heap.done = true;
		if (heap.err)
			oc_note("no shared heap: %s", why);
	}
	pthread_mutex_unlock(&heap.lock);
	return heap.err;
}

static bool heap_is_open(void)
{
	return __atomic_load_n(&oc_heap_range.size, __ATOMIC_ACQUIRE) && !oc_heap_is_copy;
}

const char *oc_heap_reason(void)
{
	if (oc_heap_is_copy)
		return "a forked child has its own copy of the heap";
	if (heap_is_open() && oc_heap_fd() < 0)
		return "the program has closed the descriptor of the shared heap";
	return heap.reason;
}

void oc_heap_share(unsigned int processes)
{
	oc_heap_thp_allow(oc_mem_limit() / 8 / processes);
}

/* This thread's heap, made when it first needs one. */
static struct oc_mi_heap *thread_heap(void)
{
	if (__builtin_expect(self.heap != NULL, 1))
		return self.heap;
	if (self.gone)
		return NULL;
	if (pthread_setspecific(heap.exit_key, &self))
		return NULL;
	self.heap = heap.shared ? heap.shared : oc_mi_heap_create();
	return self.heap;
}

/* mimalloc 3 may answer from elsewhere when its arena has no room. The program gets @most bytes
 * at most, of a block that begins @before bytes earlier. */
static void *adopt(char *p, size_t before, size_t bytes, size_t most)
{
	size_t usable;

	if (!p)
		return NULL;
	if (!oc_heap_contains(p, bytes)) {
		oc_mi.free(p - before);
		return NULL;
	}
	usable = oc_mi.usable_size(p - before) - before;
	if (usable > most)
		usable = most;
	oc_heap_span_add_after(p, usable, before);
	oc_heap_idle_take(p, usable);
	/* mimalloc fills one segment after the other. */
	oc_heap_thp_prepare(p, bytes, OC_MI_SEGMENT);
	oc_heap_dump_add(p, usable);
	return p;
}

/* An extent, or NULL, of which @bytes will be used soon. */
static void *adopt_extent(void *p, size_t usable, size_t bytes)
{
	if (!p)
		return NULL;
	oc_heap_span_add(p, usable);
	oc_heap_thp_prepare(p, bytes, OC_HEAP_EXTENT);
	oc_heap_dump_add(p, usable);
	return p;
}

static void *alloc_extent(size_t align, size_t bytes, size_t reserve)
{
	size_t usable;
	void *p = oc_heap_extent_alloc(reserve, align, &usable);

	return adopt_extent(p, usable, bytes);
}

/* Room for @reserve bytes, of which @bytes will be used soon. */
static void *alloc_block(size_t bytes, size_t reserve)
{
	struct oc_mi_heap *mine;
	int saved = errno;
	void *p = NULL;

	if (!heap_is_open())
		return NULL;
	/* At most one block may start in a page: span.h. */
	if (reserve < OC_HEAP_PAGE)
		reserve = OC_HEAP_PAGE;
	if (reserve > EXTENT_MIN) {
		p = alloc_extent(1, bytes, reserve);
	} else {
		mine = thread_heap();
		if (mine)
			p = adopt(oc_mi.malloc(mine, reserve), 0, bytes, SIZE_MAX);
	}
	errno = saved;
	return p;
}

void *oc_heap_alloc(size_t bytes)
{
	return alloc_block(bytes, bytes);
}

/* No page is the program's that it has not asked for: none would be written, and a forked child
 * would have to be given zeros there. */
static void *alloc_zeros(void *(*alloc)(struct oc_mi_heap *mine, size_t bytes), size_t bytes,
			 size_t used_soon)
{
	size_t whole = (bytes + OC_HEAP_PAGE - 1) & ~(OC_HEAP_PAGE - 1);
	struct oc_mi_heap *mine = thread_heap();

	return mine ? adopt(alloc(mine, whole), 0, used_soon, whole) : NULL;
}

void *oc_heap_calloc(size_t bytes)
{
	/* Tables that are used in part come from calloc(): they take more memory in huge
	 * pages only where they would have had these without us, too. */
	size_t used_soon = oc_heap_thp_is_default() ? bytes : 0;
	int saved = errno;
	void *p = NULL;

	if (!heap_is_open())
		return NULL;
	if (bytes > EXTENT_MIN) {
		p = alloc_extent(1, used_soon, bytes);
		if (p)
			oc_heap_extent_zero(p, bytes);
	} else if (bytes >= SPARSE_MIN) {
		/* mimalloc clears whatever it is handed. */
		p = alloc_zeros(oc_mi.malloc, bytes, used_soon);
		if (p)
			oc_heap_arena_zero(oc_heap_arena(), p, bytes);
	} else {
		if (bytes < OC_HEAP_PAGE)
			bytes = OC_HEAP_PAGE;
		p = alloc_zeros(oc_mi.zalloc, bytes, bytes);
	}
	if (p)
		oc_heap_span_keep_zeros(p);
	errno = saved;
	return p;
}

void *oc_heap_memalign(size_t align, size_t bytes)
{
	struct oc_mi_heap *mine;
	size_t before = 0;
	int saved = errno;
	void *p = NULL;

	if (!heap_is_open())
		return NULL;
	if (bytes < OC_HEAP_PAGE)
		bytes = OC_HEAP_PAGE;
	if (bytes > EXTENT_MIN || align > OC_HEAP_SPAN_BEFORE) {
		p = alloc_extent(align, bytes, bytes);
	} else {
		mine = thread_heap();
		if (mine)
			p = oc_mi_memalign(mine, bytes, align, &before);
		p = adopt(p, before, bytes, SIZE_MAX);
	}
	errno = saved;
	return p;
}

static bool is_extent(const void *p)
{
	return (const char *)p >= heap.extents;
}

/* As glibc does: a program that frees what is not allocated must not go on. */
static void __attribute__((noreturn)) die_of_free(const void *p)
{
	char line[96];
	int len = snprintf(line, sizeof(line), "onecopy: free(%p): not a live block\n", p);

	if (len > 0 && write(STDERR_FILENO, line, (size_t)len) < 0)
		abort();
	abort();
}

/* A copy has no allocator: only whole pages of large blocks are given back. */
static void release_copy(char *p, size_t usable)
{
	char *first = (char *)(((uintptr_t)p + OC_HEAP_PAGE - 1) & ~(OC_HEAP_PAGE - 1));
	char *last = (char *)((uintptr_t)(p + usable) & ~(OC_HEAP_PAGE - 1));

	if (usable >= RELEASE_MIN)
		oc_hooked_madvise(first, (size_t)(last - first), MADV_DONTNEED);
}

/* @empty: an extent, of which all pages were given back. */
static void free_block(void *p, bool empty)
{
	size_t before, usable = oc_heap_span_remove(p, &before);
	int saved = errno;

	if (__builtin_expect(!usable, 0))
		die_of_free(p);
	oc_heap_onfork_forget(p, usable);
	if (__builtin_expect(oc_heap_is_copy, 0)) {
		release_copy(p, usable);
	} else if (is_extent(p)) {
		oc_heap_extent_free(p, usable, empty);
	} else {
		oc_heap_idle_leave(p, usable);
		oc_mi.free((char *)p - before);
	}
	errno = saved;
}

void oc_heap_free(void *p)
{
	free_block(p, false);
}

size_t oc_heap_usable_size(const void *p)
{
	return oc_heap_span_usable(p);
}

/* Resizes an extent where it stands. */
static bool resize_extent(void *p, size_t usable, size_t bytes)
{
	bool zeros = oc_heap_span_keeps_zeros(p);
	size_t now, before;

	/* The block is not in the table while its end moves: a fork meanwhile
	 * must come from another thread, which can not rely on its content. */
	if (!oc_heap_span_remove(p, &before))
		die_of_free(p);
	if (bytes < usable)
		oc_heap_onfork_forget((char *)p + bytes, usable - bytes);
	now = oc_heap_extent_resize(p, usable, bytes);
	oc_heap_span_add(p, now ? now : usable);
	if (zeros)
		oc_heap_span_keep_zeros(p);
	if (now > usable) {
		oc_heap_thp_prepare((char *)p + usable, bytes - usable, OC_HEAP_EXTENT);
		oc_heap_dump_add((char *)p + usable, now - usable);
	}
	return now != 0;
}

/* A new place for a block that has to grow, and may again: room for twice as much, or
 * where more can be had without moving. */
static void *alloc_growing(size_t bytes)
{
	size_t usable;
	void *p;

	if (bytes > EXTENT_MIN / 2) {
		p = oc_heap_extent_alloc_growing(bytes, &usable);
		return adopt_extent(p, usable, bytes);
	}
	p = alloc_block(bytes, 2 * bytes);
	return p ? p : alloc_block(bytes, bytes);
}

void *oc_heap_realloc(void *p, size_t bytes)
{
	size_t usable = oc_heap_span_usable(p);
	int saved = errno;
	bool done = false;
	void *q;

	if (!usable)
		die_of_free(p);
	/* An extent gives the rest back where it stands, others have to move for that. */
	if (bytes <= usable &&
	    (bytes >= (is_extent(p) ? usable / 4 * 3 : usable / 3) || oc_heap_is_copy))
		return p;
	if (oc_heap_is_copy)
		return NULL;
	if (is_extent(p) && bytes > EXTENT_MIN)
		done = resize_extent(p, usable, bytes);
	errno = saved;
	if (done)
		return p;

	q = bytes > usable ? alloc_growing(bytes) : alloc_block(bytes, bytes);
	if (!q)
		return NULL;
	if (is_extent(p) && bytes > usable) {
		if (oc_heap_span_keeps_zeros(p))
			oc_heap_span_keep_zeros(q);
		free_block(p, oc_heap_move(oc_heap_arena(), q, p, usable));
	} else {
		memcpy(q, p, bytes < usable ? bytes : usable);
		oc_heap_free(p);
	}
	errno = saved;
	return q;
}
