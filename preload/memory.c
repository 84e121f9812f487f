// SPDX-License-Identifier: BSD-3-Clause
/*
 * Calls that tell shared memory from private memory: on blocks of the heap they do
 * what they would on blocks of the C library.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/env.h"
#include "base/hooked.h"
#include "heap/heap.h"
#include "heap/onfork.h"
#include "heap/span.h"
#include "heap/static_data.h"

#define EXPORT __attribute__((visibility("default")))

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

/* Shared memory would keep its content, or refuse. */
EXPORT int madvise(void *p, size_t bytes, int advice)
{
	bool discards = advice == MADV_DONTNEED || advice == MADV_FREE;

	if (__builtin_expect(discards && bytes && oc_heap_has(p, bytes), 0)) {
		int err = oc_hooked_madvise(p, bytes, oc_heap_discard(p, bytes));

		/* Over static data the program may have mapped memory of its own. */
		if (!err || oc_heap_is_copy)
			return err;
	}
	if (__builtin_expect(oc_heap_onfork_is(advice), 0))
		return advise_fork(p, bytes, advice);
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
