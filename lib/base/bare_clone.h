/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_BARE_CLONE_H
#define OC_BARE_CLONE_H

/*
 * clone(2) past the C library's name, where who watches a program (ThreadSanitizer) would take the
 * child for a process that fork has made, and mix up its books in the memory that both share.
 *
 * The child runs @entry(@arg) on the stack that ends at @stack_end, which is aligned to 16 bytes,
 * with the caller's thread pointer: it makes system calls and nothing else, blocks signals first
 * (who calls this has), and never returns. @flags has CLONE_VM, and nothing that takes further
 * arguments. The child's number, or -errno.
 */
long oc_bare_clone(long flags, char *stack_end, int (*entry)(void *arg), void *arg);

#endif
