// SPDX-License-Identifier: BSD-3-Clause
/*
 * An allocator that a program brings. It knows its own blocks by a word before
 * them, ends the program when it is given others, and makes some without malloc().
 */
#define _GNU_SOURCE
#include "allocator.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MARK 0x616c6c6f63ul

struct head {
	uint64_t mark;
	size_t bytes;
	void *start; /* of what the C library gave */
	uint64_t unused;
};

extern void *__libc_malloc(size_t bytes);
extern void __libc_free(void *p);

static struct head *head_of(void *p)
{
	struct head *head = (struct head *)p - 1;

	if (head->mark != MARK)
		abort();
	return head;
}

static __thread int refuses;

#ifdef ALLOCATOR_REFUSES
void allocator_refuse_next(void)
{
	refuses = 1;
}
#endif

static void *take(size_t align, size_t bytes)
{
	size_t room = sizeof(struct head) + align;
	char *start = refuses ? NULL : __libc_malloc(bytes + room);
	uintptr_t at = ((uintptr_t)start + room) & ~(uintptr_t)(align - 1);

	refuses = 0;
	if (!start)
		return NULL;
	*((struct head *)at - 1) = (struct head){.mark = MARK, .bytes = bytes, .start = start};
	return (void *)at;
}

void *allocator_new(size_t bytes)
{
	return take(16, bytes);
}

void *malloc(size_t bytes)
{
	return take(16, bytes);
}

void *calloc(size_t n, size_t bytes)
{
	void *p = take(16, n * bytes);

	if (p)
		memset(p, 0, n * bytes);
	return p;
}

void *memalign(size_t align, size_t bytes)
{
	return take(align < 16 ? 16 : align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
	*out = memalign(align, bytes);
	return *out ? 0 : ENOMEM;
}

void *aligned_alloc(size_t align, size_t bytes)
{
	return memalign(align, bytes);
}

static void release(void *p)
{
	struct head *head = head_of(p);

	head->mark = 0;
	__libc_free(head->start);
}

void free(void *p)
{
	if (p)
		release(p);
}

#ifdef ALLOCATOR_DALLOCX
void *allocator_new_aligned(size_t align, size_t bytes)
{
	return aligned_alloc(align, bytes);
}

void dallocx(void *p, int flags)
{
	(void)flags;
	release(p);
}
#endif

void *realloc(void *p, size_t bytes)
{
	void *q = take(16, bytes);
	size_t have = p ? head_of(p)->bytes : 0;

	if (q && p)
		memcpy(q, p, have < bytes ? have : bytes);
	if (q)
		free(p);
	return q;
}

size_t malloc_usable_size(void *p)
{
	return p ? head_of(p)->bytes : 0;
}
