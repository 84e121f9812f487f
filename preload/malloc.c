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

#include "env.h"
#include "heap.h"

/* From here on a copy saved is worth more than what the heap costs. Smaller blocks of
 * which collectives are ours are staged. */
#define OC_HEAP_MIN ((size_t)16 << 10)

#define EXPORT	    __attribute__((visibility("default")))
#define unlikely(x) __builtin_expect(!!(x), 0)

/* The C library's own, under names that nobody else has. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *p);

static void *first_malloc(size_t bytes);
static void *first_calloc(size_t n, size_t bytes);
static void *first_realloc(void *p, size_t bytes);
static void *first_memalign(size_t align, size_t bytes);
static void first_free(void *p);
static size_t first_usable_size(void *p);

/*
 * Who would serve the program without us: the C library, or an allocator that the
 * program brings (jemalloc, say). That one may have made blocks without malloc(), as
 * its operator new does, so all of them must be asked of one and the same.
 */
static struct {
	void *(*malloc)(size_t bytes);
	void *(*calloc)(size_t n, size_t bytes);
	void *(*realloc)(void *p, size_t bytes);
	void *(*memalign)(size_t align, size_t bytes);
	void (*free)(void *p);
	size_t (*usable_size)(void *p);
} next = {first_malloc, first_calloc, first_realloc, first_memalign, first_free, first_usable_size};

__thread unsigned int oc_malloc_bypass __attribute__((tls_model("initial-exec")));

static size_t heap_min = SIZE_MAX;
static size_t page_bytes = 4096;

static void resolve_one(void *pointer, const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (found)
		memcpy(pointer, &found, sizeof(found));
}

/* In the first call of any of them, which the dynamic linker or the C library makes
 * while there is one thread. dlsym() does not allocate, unless it fails. */
static void resolve_next(void)
{
	next.malloc = __libc_malloc;
	next.calloc = __libc_calloc;
	next.realloc = __libc_realloc;
	next.memalign = __libc_memalign;
	next.free = __libc_free;
	resolve_one(&next.malloc, "malloc");
	resolve_one(&next.calloc, "calloc");
	resolve_one(&next.realloc, "realloc");
	resolve_one(&next.memalign, "memalign");
	resolve_one(&next.free, "free");
	resolve_one(&next.usable_size, "malloc_usable_size");
}

static void *first_malloc(size_t bytes)
{
	resolve_next();
	return next.malloc(bytes);
}

static void *first_calloc(size_t n, size_t bytes)
{
	resolve_next();
	return next.calloc(n, bytes);
}

static void *first_realloc(void *p, size_t bytes)
{
	resolve_next();
	return next.realloc(p, bytes);
}

static void *first_memalign(size_t align, size_t bytes)
{
	resolve_next();
	return next.memalign(align, bytes);
}

static void first_free(void *p)
{
	resolve_next();
	next.free(p);
}

static size_t first_usable_size(void *p)
{
	resolve_next();
	return next.usable_size == first_usable_size ? 0 : next.usable_size(p);
}

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

	return p ? p : next.malloc(bytes);
}

EXPORT void *malloc(size_t bytes)
{
	if (unlikely(is_large(bytes)))
		return malloc_large(bytes);
	return next.malloc(bytes);
}

EXPORT void free(void *p)
{
	if (unlikely(is_ours(p)))
		oc_heap_free(p);
	else
		next.free(p);
}

static __attribute__((noinline)) void *calloc_large(size_t bytes)
{
	void *p = oc_malloc_bypass ? NULL : oc_heap_calloc(bytes);

	return p ? p : next.calloc(1, bytes);
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
	return next.calloc(n, size);
}

static void *realloc_ours(void *p, size_t bytes)
{
	size_t usable;
	void *q;

	if (bytes >= __atomic_load_n(&heap_min, __ATOMIC_RELAXED) && !oc_malloc_bypass) {
		q = oc_heap_realloc(p, bytes);
		if (q)
			return q;
	}
	usable = oc_heap_usable_size(p);
	q = next.malloc(bytes);
	if (!q)
		return NULL;
	memcpy(q, p, bytes < usable ? bytes : usable);
	oc_heap_free(p);
	return q;
}

/* A block of somebody else that becomes large moves to the heap. */
static __attribute__((noinline)) void *realloc_large(void *p, size_t bytes)
{
	size_t usable = next.usable_size(p);
	void *q = NULL;

	if (usable < bytes && !oc_malloc_bypass)
		q = oc_heap_alloc(bytes);
	if (!q)
		return next.realloc(p, bytes);
	memcpy(q, p, usable);
	next.free(p);
	return q;
}

EXPORT void *realloc(void *p, size_t bytes)
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
	return next.realloc(p, bytes);
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

EXPORT void *memalign(size_t align, size_t bytes)
{
	void *p = NULL;

	/* Odd alignments are left to what others make of them. */
	if (is_large(bytes) && align && !(align & (align - 1)) && !oc_malloc_bypass)
		p = oc_heap_memalign(align, bytes);
	return p ? p : next.memalign(align, bytes);
}

EXPORT void *aligned_alloc(size_t align, size_t bytes)
{
	return memalign(align, bytes);
}

EXPORT int posix_memalign(void **out, size_t align, size_t bytes)
{
	int saved = errno;
	void *p;

	if (align % sizeof(void *) || !align || (align & (align - 1)))
		return EINVAL;
	p = memalign(align, bytes);
	errno = saved;
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

EXPORT void *valloc(size_t bytes)
{
	return memalign(page_bytes, bytes);
}

EXPORT void *pvalloc(size_t bytes)
{
	size_t whole = (bytes + page_bytes - 1) & ~(page_bytes - 1);

	if (whole < bytes) {
		errno = ENOMEM;
		return NULL;
	}
	return memalign(page_bytes, whole ? whole : page_bytes);
}

EXPORT size_t malloc_usable_size(void *p)
{
	if (unlikely(is_ours(p)))
		return oc_heap_usable_size(p);
	return p ? next.usable_size(p) : 0;
}

static const void *module_of(const void *symbol)
{
	Dl_info info;

	return symbol && dladdr(symbol, &info) ? info.dli_fbase : NULL;
}

/*
 * jemalloc frees blocks in ways that do not pass through free(): by dallocx() and
 * its sisters, and by operator delete for what its operator new with an alignment
 * has from aligned_alloc(), which is ours.
 */
static bool is_freed_elsewhere(void)
{
	const void *module = module_of(dlsym(RTLD_DEFAULT, "dallocx"));
	const void *allocator;

	memcpy(&allocator, &next.malloc, sizeof(allocator));
	return module && module == module_of(allocator);
}

const char *oc_malloc_declined(void)
{
	if (oc_env()->heap_off || !(oc_env()->mech & OC_MECH_HEAP))
		return "not under malloc, as ONECOPY_HEAP or ONECOPY_MECH says";
	if (is_freed_elsewhere())
		return "not under malloc: the program's allocator, jemalloc, frees blocks "
		       "without free()";
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

static __attribute__((constructor)) void start(void)
{
	if (next.malloc == first_malloc)
		resolve_next();
	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	oc_heap_fork_register();
	/* A name this library does not define: the MPI's own, or nobody's. */
	if (dlsym(RTLD_DEFAULT, "MPI_Get_version"))
		oc_malloc_activate();
}
