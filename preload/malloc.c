// SPDX-License-Identifier: BSD-3-Clause
/*
 * malloc and its family: blocks of OC_HEAP_MIN bytes and more come from the
 * shared heap, all else from whoever would have served the program without us. A
 * block is told by its address alone, so any function takes blocks of either kind,
 * made before or after the heap was.
 *
 * Until oc_malloc_activate() the threshold is out of reach and the arena empty:
 * a program without MPI pays one comparison a call.
 */
#include "malloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <onecopy/onecopy.h>

#include "base/env.h"
#include "heap/fork.h"
#include "heap/heap.h"
#include "heap/static_data.h"
#include "next.h"

/* From here on a copy saved is worth more than what the heap costs. Smaller blocks of
 * which collectives are ours are staged. */
#define OC_HEAP_MIN ((size_t)16 << 10)

#define EXPORT	    __attribute__((visibility("default")))
#define unlikely(x) __builtin_expect(!!(x), 0)

__thread unsigned int oc_malloc_bypass __attribute__((tls_model("initial-exec")));

static size_t heap_min = SIZE_MAX;
static size_t page_bytes = 4096;

static bool is_large(size_t bytes)
{
	return bytes >= __atomic_load_n(&heap_min, __ATOMIC_RELAXED);
}

/* The test of oc_heap_contains(), for one byte. */
static bool is_ours(const void *p)
{
	size_t size = __atomic_load_n(&oc_heap_range.size, __ATOMIC_ACQUIRE);

	return (uintptr_t)p - __atomic_load_n(&oc_heap_range.base, __ATOMIC_RELAXED) < size;
}

static __attribute__((noinline)) void *malloc_large(size_t bytes)
{
	void *p = oc_malloc_bypass ? NULL : oc_heap_alloc(bytes);

	return p ? p : oc_next.malloc(bytes);
}

EXPORT void *malloc(size_t bytes)
{
	if (unlikely(is_large(bytes)))
		return malloc_large(bytes);
	return oc_next.malloc(bytes);
}

static void own_free(void *p)
{
	if (unlikely(is_ours(p)))
		oc_heap_free(p);
	else
		oc_next.free(p);
}

EXPORT void free(void *p)
{
	own_free(p);
}

static __attribute__((noinline)) void *calloc_large(size_t bytes)
{
	void *p = oc_malloc_bypass ? NULL : oc_heap_calloc(bytes);

	return p ? p : oc_next.calloc(1, bytes);
}

EXPORT void *calloc(size_t n, size_t size)
{
	size_t bytes;

	if (unlikely(__builtin_mul_overflow(n, size, &bytes))) {
		errno = ENOMEM;
		return NULL;
	}
	if (unlikely(is_large(bytes)))
		return calloc_large(bytes);
	return oc_next.calloc(n, size);
}

static void *realloc_ours(void *p, size_t bytes)
{
	size_t usable = oc_heap_usable_size(p);
	void *q;

	/* What shrinks does so in the heap, also where new blocks come from elsewhere: to copy it
	 * takes the memory twice. */
	if (bytes >= OC_HEAP_MIN && (bytes <= usable || (is_large(bytes) && !oc_malloc_bypass))) {
		q = oc_heap_realloc(p, bytes);
		if (q)
			return q;
	}
	q = oc_next.malloc(bytes);
	if (!q)
		return NULL;
	memcpy(q, p, bytes < usable ? bytes : usable);
	oc_heap_free(p);
	return q;
}

/* A block of somebody else that becomes large moves to the heap. */
static __attribute__((noinline)) void *realloc_large(void *p, size_t bytes)
{
	size_t usable = oc_next.usable_size(p);
	void *q = NULL;

	/* A block of unknown length stays whose it is. */
	if (usable && usable < bytes && !oc_malloc_bypass)
		q = oc_heap_alloc(bytes);
	if (!q)
		return oc_next.realloc(p, bytes);
	memcpy(q, p, usable);
	oc_next.free(p);
	return q;
}

static void *own_realloc(void *p, size_t bytes)
{
	if (unlikely(!p))
		return malloc(bytes);
	if (unlikely(is_ours(p))) {
		if (bytes)
			return realloc_ours(p, bytes);
		oc_heap_free(p);
		return NULL;
	}
	if (unlikely(is_large(bytes)))
		return realloc_large(p, bytes);
	return oc_next.realloc(p, bytes);
}

EXPORT void *realloc(void *p, size_t bytes)
{
	return own_realloc(p, bytes);
}

EXPORT void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (unlikely(__builtin_mul_overflow(n, size, &bytes))) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, bytes);
}

/* Odd alignments are left to what others make of them. */
static void *memalign_large(size_t align, size_t bytes)
{
	if (!is_large(bytes) || !align || (align & (align - 1)) || oc_malloc_bypass)
		return NULL;
	return oc_heap_memalign(align, bytes);
}

EXPORT void *memalign(size_t align, size_t bytes)
{
	void *p = memalign_large(align, bytes);

	return p ? p : oc_next.memalign(align, bytes);
}

EXPORT void *aligned_alloc(size_t align, size_t bytes)
{
	void *p = memalign_large(align, bytes);

	return p ? p : oc_next.aligned_alloc(align, bytes);
}

EXPORT int posix_memalign(void **out, size_t align, size_t bytes)
{
	void *p;

	if (align % sizeof(void *) || !align || (align & (align - 1)))
		return EINVAL;
	p = memalign_large(align, bytes);
	if (!p)
		return oc_next.posix_memalign(out, align, bytes);
	*out = p;
	return 0;
}

EXPORT void *valloc(size_t bytes)
{
	void *p = memalign_large(page_bytes, bytes);

	return p ? p : oc_next.valloc(bytes);
}

EXPORT void *pvalloc(size_t bytes)
{
	size_t whole = (bytes + page_bytes - 1) & ~(page_bytes - 1);
	void *p = whole < bytes ? NULL : memalign_large(page_bytes, whole);

	return p ? p : oc_next.pvalloc(bytes);
}

static size_t own_usable_size(void *p)
{
	if (unlikely(is_ours(p)))
		return oc_heap_usable_size(p);
	return p ? oc_next.usable_size(p) : 0;
}

EXPORT size_t malloc_usable_size(void *p)
{
	return own_usable_size(p);
}

/* Those that take blocks, also where the program has functions of these names. */
static const struct taker {
	const char *name;
	void *ours;
} takers[] = {
	{"free", (void *)own_free},
	{"realloc", (void *)own_realloc},
	{"malloc_usable_size", (void *)own_usable_size},
};

static const struct taker *taker_of(const char *name)
{
	for (size_t i = 0; i < sizeof(takers) / sizeof(takers[0]); i++)
		if (!strcmp(name, takers[i].name))
			return &takers[i];
	return NULL;
}

bool oc_malloc_takes_blocks(const char *name)
{
	return taker_of(name);
}

void *oc_malloc_instead(const char *name, void *found)
{
	const void *libc = oc_next_module_of((void *)__libc_free), *behind;
	const struct taker *taker = taker_of(name);

	memcpy(&behind, &oc_next.free, sizeof(behind));
	if (!taker || !found || oc_next_module_of(found) != libc ||
	    oc_next_module_of(behind) != libc)
		return found;
	return taker->ours;
}

/*
 * jemalloc frees blocks in ways that do not pass through free(): by dallocx() and
 * its sisters, and by operator delete for what its operator new with an alignment
 * has from aligned_alloc(), which is ours.
 */
static bool is_freed_elsewhere(void)
{
	const void *module = oc_next_module_of(dlsym(RTLD_DEFAULT, "dallocx"));
	const void *allocator;

	memcpy(&allocator, &oc_next.malloc, sizeof(allocator));
	return module && module == oc_next_module_of(allocator);
}

/* What of the program's calls comes to us: where it has a free() of its own, or who was preloaded
 * before us has one, they may not. */
static struct {
	struct oc_next next; /* who was there */
	bool freed;
	bool moved;
} met;

static void note_free(void *p)
{
	met.freed = true;
	met.next.free(p);
}

static void *note_realloc(void *p, size_t bytes)
{
	met.moved = true;
	return met.next.realloc(p, bytes);
}

/*
 * The program's malloc(), free() and realloc() are called once, before anything is looked up in
 * vain. dlsym() frees what it has said of a failure in its next call: a free() that looks for the
 * next one as it is first called would do so without end.
 */
static __attribute__((constructor(101))) void meet(void)
{
	void *(*volatile allocate)(size_t) = malloc;
	void *(*volatile move)(void *, size_t) = realloc;
	void (*volatile release)(void *) = free;
	void *p;

	oc_next_resolve();
	met.next = oc_next;
	oc_next.free = note_free;
	oc_next.realloc = note_realloc;
	p = allocate(1);
	release(p ? move(p, 100) : allocate(1));
	oc_next.free = met.next.free;
	oc_next.realloc = met.next.realloc;
}

static const char *declined_by_user(void)
{
	if (oc_env()->heap_off)
		return "not under malloc, as --no-heap (ONECOPY_HEAP) says";
	if (!(oc_env()->mech & OC_MECH_HEAP))
		return "not under malloc, for --mech (ONECOPY_MECH) does not name heap";
	return NULL;
}

const char *oc_malloc_declined(void)
{
	const char *declined = declined_by_user();

	if (declined)
		return declined;
	if (is_freed_elsewhere())
		return "not under malloc: the program's allocator, jemalloc, frees blocks "
		       "without free()";
	if (!met.freed || !met.moved)
		return "not under malloc: the program has a free() or realloc() of its own";
	return NULL;
}

void oc_malloc_activate(void)
{
	/* Without a heap under malloc the arena is still where foreign
	 * buffers are staged; MPI_Init makes it then. */
	if (oc_malloc_declined())
		return;
	if (!oc_heap_init())
		__atomic_store_n(&heap_min, OC_HEAP_MIN, __ATOMIC_RELAXED);
}

void oc_malloc_retire(void)
{
	__atomic_store_n(&heap_min, SIZE_MAX, __ATOMIC_RELAXED);
}

static __attribute__((constructor)) void start(void)
{
	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	oc_heap_fork_register();
	/* A name this library does not define: the MPI's own, or nobody's. */
	if (!dlsym(RTLD_DEFAULT, "MPI_Get_version"))
		return;
	oc_malloc_activate();
	/* Whoever has its blocks. */
	if (!declined_by_user() && !oc_env()->static_off && !oc_heap_init())
		oc_heap_static_share();
}
