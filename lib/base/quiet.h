/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_QUIET_H
#define OC_QUIET_H

/*
 * System calls past whoever listens to the C library's: the preload's own madvise(), and
 * hooks of those who cache registrations of memory (hooked.h). For mappings that no
 * program sees; and for a child in the midst of fork(), as such hooks take locks: another
 * thread of the parent may have held one, which then stays locked in the child for ever,
 * and the parent waits for the child. What they would hear of was registered by the
 * parent and is no concern of the child.
 */

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static inline void *oc_quiet_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t off)
{
	long mapped = syscall(SYS_mmap, at, bytes, prot, flags, fd, off);

	return (char *)NULL + mapped;
}

/* Hooks of UCX, up to 1.13 at least, hand on four of the five: the new place is not said then. */
static inline void *oc_quiet_mremap(void *old, size_t bytes, size_t now, int flags, void *at)
{
	long mapped = syscall(SYS_mremap, old, bytes, now, flags, at);

	return (char *)NULL + mapped;
}

static inline int oc_quiet_munmap(void *at, size_t bytes)
{
	return (int)syscall(SYS_munmap, at, bytes);
}

static inline int oc_quiet_madvise(void *at, size_t bytes, int advice)
{
	return (int)syscall(SYS_madvise, at, bytes, advice);
}

#endif
