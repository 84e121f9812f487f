// SPDX-License-Identifier: BSD-3-Clause
#include "base/bare_clone.h"

#include <sys/syscall.h>

long oc_bare_clone(long flags, char *stack_end, int (*entry)(void *arg), void *arg)
{
	register long no_tid __asm__("r10") = 0;
	register long no_tls __asm__("r8") = 0;
	register void *given __asm__("r12") = arg;
	long ret;

	/* The child has nothing of this stack. */
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %[arg], %%rdi\n\t"
			 "call *%[entry]\n\t"
			 "hlt\n\t"
			 "1:"
			 : "=a"(ret)
			 : "a"((long)SYS_clone), "D"(flags), "S"(stack_end), "d"(0L), "r"(no_tid),
			   "r"(no_tls), [arg] "r"(given), [entry] "b"(entry)
			 : "rcx", "r11", "cc", "memory");
	return ret;
}
