// SPDX-License-Identifier: BSD-3-Clause
/*
 * The same two calls made by their number: libfabric's way. syscall() is looked at and goes on,
 * with its registers and its stack as they were, to whoever would have had it: it may be a clone()
 * or a vfork(), which no function of C survives in between.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "base/raw_call.h"
#include "procvm.h"

/* Before others are looked for, and if there are none. */
static long first_call(long number, long a, long b, long c, long d, long e, long f)
{
	return oc_raw_call(number, a, b, c, d, e, f);
}

/* The assembly's. */
__attribute__((used)) long (*oc_procvm_next_syscall)(long number, long a, long b, long c, long d,
						     long e, long f) = first_call;

/* It begins as a target of indirect jumps has to. */
__asm__(".text\n"
	".globl syscall\n"
	".type syscall, @function\n"
	".p2align 4\n"
	"syscall:\n"
	".cfi_startproc\n"
	"	endbr64\n"
	"	cmpq	$310, %rdi\n" /* SYS_process_vm_readv */
	"	je	oc_procvm_by_number\n"
	"	cmpq	$311, %rdi\n" /* SYS_process_vm_writev */
	"	je	oc_procvm_by_number\n"
	"	jmp	*oc_procvm_next_syscall(%rip)\n"
	".cfi_endproc\n"
	".size syscall, .-syscall\n");

_Static_assert(SYS_process_vm_readv == 310 && SYS_process_vm_writev == 311, "as above");

__attribute__((constructor)) static void find_next(void)
{
	void *next = dlsym(RTLD_NEXT, "syscall");

	if (next)
		*(void **)&oc_procvm_next_syscall = next;
}
