/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_RAW_CALL_H
#define OC_RAW_CALL_H

/*
 * System calls past the C library's names, which may be the program's by now: its syscall() is
 * ours in preload libraries (procvm/number_x86.c). Any thread, also in signal handlers.
 */

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As syscall(2): what the kernel returns, or -1 with errno. */
static inline long oc_raw_call(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__) && defined(__LP64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (result < 0 && result >= -4095) {
		errno = (int)-result;
		return -1;
	}
	return result;
#else
	return syscall(number, a, b, c, d, e, f);
#endif
}

#endif
