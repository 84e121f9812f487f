/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_MEMORY_H
#define OC_TEST_MEMORY_H

/* Buffers of every kind a program may hand to MPI. */

#include <stddef.h>

enum memory_kind {
	MEMORY_HEAP,
	MEMORY_CALLOC,
	MEMORY_REALLOC, /* grown to its size */
	MEMORY_STACK,
	MEMORY_STATIC,
	MEMORY_PRIVATE,	  /* mmap */
	MEMORY_SHARED,	  /* mmap */
	MEMORY_MPI,	  /* MPI_Alloc_mem */
	MEMORY_READONLY,  /* to send from: private, made read-only after it was filled */
	MEMORY_WRITEONLY, /* the same without PROT_READ: process_vm_readv() gives EFAULT */
	MEMORY_KINDS
};

struct memory {
	enum memory_kind kind;
	int side;
	char *base;
	size_t bytes;
};

#define MEMORY_STACK_BYTES ((size_t)192 << 10)

/* -1: no such kind. */
int memory_find(const char *name);

/* @side: 0 or 1, at most one buffer each at a time. @stack:
 * MEMORY_STACK_BYTES of the caller's frame. Kinds that have not that much fall
 * back to the heap. Exits without memory. */
void memory_open(struct memory *m, enum memory_kind kind, int side, size_t bytes, char *stack);

/* Read-only or write-only from now on, if it is of that kind; and back. */
void memory_protect(struct memory *m);
void memory_unprotect(struct memory *m);
void memory_close(struct memory *m);

#endif
