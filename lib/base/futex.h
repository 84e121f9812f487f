/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_FUTEX_H
#define OC_FUTEX_H

/* Sleeping on a word of the control segment, across processes (futex(2)). */

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Returns when woken, when *@word is not @seen, after @ns, or for no reason. */
static inline void oc_futex_wait(_Atomic uint32_t *word, uint32_t seen, long ns)
{
	struct timespec limit = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
}

static inline void oc_futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static inline void oc_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

#endif
