/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BARE_CALL_H
#define BARE_CALL_H

/* process_vm_readv(2) and process_vm_writev(2) past all names that a library may have taken. */

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static inline ssize_t bare_call(bool put, pid_t pid, const struct iovec *local,
				unsigned long nlocal, const struct iovec *remote,
				unsigned long nremote, unsigned long flags)
{
	long number = put ? SYS_process_vm_writev : SYS_process_vm_readv;
#ifdef __x86_64__
	register long r10 __asm__("r10") = (long)remote;
	register unsigned long r8 __asm__("r8") = nremote;
	register unsigned long r9 __asm__("r9") = flags;
	long done = number;

	__asm__ volatile("syscall"
			 : "+a"(done)
			 : "D"((long)pid), "S"(local), "d"(nlocal), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (done >= 0)
		return done;
	errno = (int)-done;
	return -1;
#else
	return syscall(number, pid, local, nlocal, remote, nremote, flags);
#endif
}

#endif
