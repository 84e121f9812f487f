/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PROCVM_CALLS_H
#define OC_PROCVM_CALLS_H

/* One of the two calls, made by its number: as syscall(2) has it. */
__attribute__((used)) long oc_procvm_by_number(long number, long pid, long local, long nlocal,
					       long remote, long nremote, long flags);

#endif
