// SPDX-License-Identifier: BSD-3-Clause
/*
 * Calls that tell shared memory from private memory: on blocks of the heap they do
 * what they would on blocks of the C library. And what a program does to large blocks that
 * is undone when they are freed (heap/changed.h).
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/env.h"
#include "base/hooked.h"
#include "base/pages.h"
#include "heap/changed.h"
#include "heap/heap.h"
#include "heap/onfork.h"
#include "heap/promote.h"
#include "heap/span.h"
#include "heap/static_data.h"

#define EXPORT __attribute__((visibility("default")))

/* Who would be called without us. */
static struct {
	int (*mprotect)(void *p, size_t bytes, int prot);
	int (*pkey_mprotect)(void *p, size_t bytes, int prot, int pkey);
	int (*mlock)(const void *p, size_t bytes);
	int (*mlock2)(const void *p, size_t bytes, unsigned int flags);
} next;

/* Early, as dlsym() is nothing for signal handlers, which may call mprotect(). */
static __attribute__((constructor)) void resolve(void)
{
	void *const found[] = {
		dlsym(RTLD_NEXT, "mprotect"),
		dlsym(RTLD_NEXT, "pkey_mprotect"),
		dlsym(RTLD_NEXT, "mlock"),
		dlsym(RTLD_NEXT, "mlock2"),
	};

	_Static_assert(sizeof(found) == sizeof(next), "one for each");
	memcpy(&next, found, sizeof(next));
}

/* What children are to have is asked of the kernel for what lies outside the arena, whose
 * [base, base + size) is seen at @seen. True with the answer in @err, if [from, to) meets it. */
static bool advise_shared(uintptr_t from, uintptr_t to, int advice, uintptr_t seen, size_t size,
			  char *base, int *err)
{
	uintptr_t first = from > seen ? from : seen;
	uintptr_t last = to < seen + size ? to : seen + size;

	if (first >= last)
		return false;
	oc_heap_onfork_advise(base + (first - seen), last - first, advice);
	*err = from < first ? oc_hooked_madvise((void *)from, first - from, advice) : 0;
	if (last < to)
		*err |= oc_hooked_madvise((void *)last, to - last, advice);
	return true;
}

static int advise_fork(void *p, size_t bytes, int advice)
{
	size_t size = __atomic_load_n(&oc_heap_range.size, __ATOMIC_ACQUIRE);
	uintptr_t base = __atomic_load_n(&oc_heap_range.base, __ATOMIC_RELAXED);
	uintptr_t from = (uintptr_t)p;
	uintptr_t to = (from + bytes + OC_HEAP_PAGE - 1) & ~(OC_HEAP_PAGE - 1);
	int err;

	if (from % OC_HEAP_PAGE == 0 &&
	    (advise_shared(from, to, advice, base, size, (char *)base, &err) ||
	     advise_shared(from, to, advice, oc_heap_static.from, oc_heap_static.mapped,
			   oc_heap_static.at, &err)))
		return err;
	return oc_hooked_madvise(p, bytes, advice);
}

/* Of huge pages, what of it is static data. */
static void advise_static(uintptr_t from, size_t bytes, bool huge)
{
	uintptr_t start = oc_heap_static.from, end = start + oc_heap_static.mapped;
	uintptr_t to = from + bytes;

	if (oc_heap_is_copy || to < from || from >= end || to <= start)
		return;
	from = from < start ? start : from;
	to = to > end ? end : to;
	oc_heap_promote_advise(oc_heap_static.at + (from - start), to - from, huge);
}

/*
 * Programs are linked to the C library's version of madvise(), and get ours. Who looks for the name
 * without a version gets the C library's, for this one is hidden then (elf/dl-lookup.c): that is
 * UCX, and Open MPI, which overwrite what they find (base/hooked.h).
 */
__asm__(".symver versioned_madvise, madvise@" OC_LIBC_VERSION ", remove");

EXPORT int versioned_madvise(void *p, size_t bytes, int advice);

/* What lies before and behind static data is the kernel's, as the rest of the page that .data ends
 * in. */
static int discard(char *p, size_t bytes, int advice)
{
	bool locked = advice == MADV_DONTNEED_LOCKED;
	char *start = (char *)oc_heap_static.from, *end = start + oc_heap_static.mapped;
	char *to = p + bytes;
	int err = 0;

	if (oc_heap_has(p, bytes))
		return oc_heap_discard(p, oc_heap_place_of(p), bytes, locked);
	if (to < p || to <= start || p >= end || (uintptr_t)p % OC_HEAP_PAGE)
		return oc_hooked_madvise(p, bytes, advice);
	if (p < start) {
		err = oc_hooked_madvise(p, (size_t)(start - p), advice);
		p = start;
	}
	if (to > end) {
		err |= oc_hooked_madvise(end, (size_t)(to - end), advice);
		to = end;
	}
	return err | oc_heap_discard(p, oc_heap_place_of(p), (size_t)(to - p), locked);
}

/* Shared memory would keep its content, or refuse. */
int versioned_madvise(void *p, size_t bytes, int advice)
{
	bool discards =
		advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_DONTNEED_LOCKED;

	if (__builtin_expect(discards && bytes, 0))
		return discard(p, bytes, advice);
	if (__builtin_expect(oc_heap_onfork_is(advice), 0))
		return advise_fork(p, bytes, advice);
	if (advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE)
		advise_static((uintptr_t)p, bytes, advice == MADV_HUGEPAGE);
	return oc_hooked_madvise(p, bytes, advice);
}

/*
 * Arenas are as large as the memory and mostly empty, this process's and those of its
 * peers: to lock them whole would fill it. So pages are locked when they are touched.
 */
EXPORT int mlockall(int flags)
{
	return (int)syscall(SYS_mlockall, oc_env()->off ? flags : flags | MCL_ONFAULT);
}

EXPORT int mprotect(void *p, size_t bytes, int prot)
{
	if (prot != (PROT_READ | PROT_WRITE))
		oc_heap_change(p, bytes, OC_HEAP_PROTECTED);
	/* In another library's constructor, before ours. */
	if (__builtin_expect(!next.mprotect, 0))
		resolve();
	return next.mprotect(p, bytes, prot);
}

EXPORT int pkey_mprotect(void *p, size_t bytes, int prot, int pkey)
{
	if (pkey > 0 || prot != (PROT_READ | PROT_WRITE))
		oc_heap_change(p, bytes, pkey > 0 ? OC_HEAP_KEYED : OC_HEAP_PROTECTED);
	if (__builtin_expect(!next.pkey_mprotect, 0))
		resolve();
	return next.pkey_mprotect(p, bytes, prot, pkey);
}

EXPORT int mlock(const void *p, size_t bytes)
{
	oc_heap_change(p, bytes, OC_HEAP_LOCKED);
	if (__builtin_expect(!next.mlock, 0))
		resolve();
	return next.mlock(p, bytes);
}

EXPORT int mlock2(const void *p, size_t bytes, unsigned int flags)
{
	oc_heap_change(p, bytes, OC_HEAP_LOCKED);
	if (__builtin_expect(!next.mlock2, 0))
		resolve();
	return next.mlock2(p, bytes, flags);
}
