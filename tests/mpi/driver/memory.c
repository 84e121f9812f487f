// SPDX-License-Identifier: BSD-3-Clause
#include "memory.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STATIC_BYTES ((size_t)1 << 20)

static char area[2][STATIC_BYTES];

int memory_find(const char *name)
{
	static const char *const names[MEMORY_KINDS] = {
		[MEMORY_HEAP] = "heap",		[MEMORY_CALLOC] = "calloc",
		[MEMORY_REALLOC] = "realloc",	[MEMORY_STACK] = "stack",
		[MEMORY_STATIC] = "static",	[MEMORY_PRIVATE] = "private",
		[MEMORY_SHARED] = "shared",	[MEMORY_MPI] = "mpi",
		[MEMORY_READONLY] = "readonly", [MEMORY_WRITEONLY] = "writeonly",
	};

	for (int i = 0; i < MEMORY_KINDS; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

static void *map(size_t bytes, int flags)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void memory_open(struct memory *m, enum memory_kind kind, int side, size_t bytes, char *stack)
{
	if ((kind == MEMORY_STACK && bytes > MEMORY_STACK_BYTES) ||
	    (kind == MEMORY_STATIC && bytes > STATIC_BYTES))
		kind = MEMORY_HEAP;
	*m = (struct memory){.kind = kind, .side = side, .bytes = bytes};
	switch (kind) {
	case MEMORY_CALLOC:
		m->base = calloc(1, bytes);
		break;
	case MEMORY_REALLOC:
		m->base = malloc(bytes / 2 + 1);
		m->base = realloc(m->base, bytes);
		break;
	case MEMORY_STACK:
		m->base = stack;
		break;
	case MEMORY_STATIC:
		m->base = area[side];
		break;
	case MEMORY_SHARED:
		m->base = map(bytes, MAP_SHARED);
		break;
	case MEMORY_PRIVATE:
	case MEMORY_READONLY:
	case MEMORY_WRITEONLY:
		m->base = map(bytes, MAP_PRIVATE);
		break;
	case MEMORY_MPI:
		MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &m->base);
		break;
	default:
		m->base = malloc(bytes);
	}
	if (!m->base) {
		fprintf(stderr, "no memory for %zu bytes\n", bytes);
		MPI_Abort(MPI_COMM_WORLD, 3);
	}
}

static void protect(struct memory *m, int prot)
{
	if (mprotect(m->base, m->bytes, prot)) {
		perror("mprotect");
		MPI_Abort(MPI_COMM_WORLD, 3);
	}
}

void memory_protect(struct memory *m)
{
	if (m->kind == MEMORY_READONLY)
		protect(m, PROT_READ);
	else if (m->kind == MEMORY_WRITEONLY)
		protect(m, PROT_WRITE);
}

void memory_unprotect(struct memory *m)
{
	if (m->kind == MEMORY_READONLY || m->kind == MEMORY_WRITEONLY)
		protect(m, PROT_READ | PROT_WRITE);
}

void memory_close(struct memory *m)
{
	switch (m->kind) {
	case MEMORY_STACK:
	case MEMORY_STATIC:
		break;
	case MEMORY_PRIVATE:
	case MEMORY_SHARED:
	case MEMORY_READONLY:
	case MEMORY_WRITEONLY:
		munmap(m->base, m->bytes);
		break;
	case MEMORY_MPI:
		MPI_Free_mem(m->base);
		break;
	default:
		free(m->base);
	}
}
