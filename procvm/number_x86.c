// SPDX-License-Identifier: BSD-3-Clause
/*
 * The same two calls made by their number: libfabric's way. syscall() is looked at and goes on,
 * with its registers and its stack as they were, to whoever would have had it: it may be a clone()
 * or a vfork(), which no function of C survives in between. mbind() has no other way: libnuma and
 * hwloc come here, and the heap hears of it. Before the calls of preload/single.c it does what is
 * done there.
 */
#include <dlfcn.h>
#include <linux/mempolicy.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/raw_call.h"
#include "heap/changed.h"
#include "heap/helper.h"
#include "procvm.h"

/* Before others are looked for, and if there are none. */
static long first_call(long number, long a, long b, long c, long d, long e, long f)
{
	return oc_raw_call(number, a, b, c, d, e, f);
}

/* The assembly's. */
__attribute__((used)) long oc_procvm_bind(long number, long p, long bytes, long mode, long nodes,
					  long most, long flags);
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
	"	cmpq	$237, %rdi\n" /* SYS_mbind */
	"	je	oc_procvm_bind\n"
	"	cmpq	$317, %rdi\n" /* SYS_seccomp */
	"	je	1f\n"
	"	cmpq	$308, %rdi\n" /* SYS_setns */
	"	je	1f\n"
	"	cmpq	$272, %rdi\n" /* SYS_unshare */
	"	je	1f\n"
	"	cmpq	$157, %rdi\n" /* SYS_prctl */
	"	jne	2f\n"
	"	cmpl	$22, %esi\n" /* PR_SET_SECCOMP */
	"	jne	2f\n"
	"1:	pushq	%rdi\n"
	"	pushq	%rsi\n"
	"	pushq	%rdx\n"
	"	pushq	%rcx\n"
	"	pushq	%r8\n"
	"	pushq	%r9\n"
	"	subq	$8, %rsp\n"
	".cfi_adjust_cfa_offset 56\n"
	"	call	oc_heap_helper_wait\n"
	"	addq	$8, %rsp\n"
	"	popq	%r9\n"
	"	popq	%r8\n"
	"	popq	%rcx\n"
	"	popq	%rdx\n"
	"	popq	%rsi\n"
	"	popq	%rdi\n"
	".cfi_adjust_cfa_offset -56\n"
	"2:	jmp	*oc_procvm_next_syscall(%rip)\n"
	".cfi_endproc\n"
	".size syscall, .-syscall\n");

_Static_assert(SYS_process_vm_readv == 310 && SYS_process_vm_writev == 311 && SYS_mbind == 237 &&
		       SYS_seccomp == 317 && SYS_setns == 308 && SYS_unshare == 272 &&
		       SYS_prctl == 157 && PR_SET_SECCOMP == 22,
	       "as above");

/* What the program binds, unless it takes that back. */
long oc_procvm_bind(long number, long p, long bytes, long mode, long nodes, long most, long flags)
{
	if (mode != MPOL_DEFAULT)
		oc_heap_change((const char *)NULL + p, (size_t)bytes, OC_HEAP_BOUND);
	return oc_procvm_next_syscall(number, p, bytes, mode, nodes, most, flags);
}

__attribute__((constructor)) static void find_next(void)
{
	void *next = dlsym(RTLD_NEXT, "syscall");

	if (next)
		*(void **)&oc_procvm_next_syscall = next;
}
