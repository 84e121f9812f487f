// SPDX-License-Identifier: BSD-3-Clause
/*
 * Calls that tell shared memory from private memory: on blocks of the heap they do
 * what they would on blocks of the C library.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "env.h"
#include "heap.h"

#define EXPORT __attribute__((visibility("default")))

/* Shared memory would keep its content, or refuse. */
EXPORT int madvise(void *p, size_t bytes, int advice)
{
	bool discards = advice == MADV_DONTNEED || advice == MADV_FREE;

	if (__builtin_expect(discards && bytes && oc_heap_contains(p, bytes), 0))
		advice = oc_heap_discard_advice();
	return (int)syscall(SYS_madvise, p, bytes, advice);
}

/*
 * Arenas are as large as the memory and mostly empty, this process's and those of its
 * peers: to lock them whole would fill it. So pages are locked when they are touched.
 */
EXPORT int mlockall(int flags)
{
	return (int)syscall(SYS_mlockall, oc_env()->off ? flags : flags | MCL_ONFAULT);
}
