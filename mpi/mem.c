// SPDX-License-Identifier: BSD-3-Clause
/* MPI_Alloc_mem gives memory of the shared heap, whatever the size: who asks
 * the MPI for memory means to communicate from it. */
#include "adapter.h"

#include <stdlib.h>
#include <string.h>

#include "../preload/malloc.h"
#include "abi.h"
#include "base/env.h"
#include "heap/heap.h"

#define ALIGN_MIN ((size_t)4096)

/* MPI 4.0, 9.6: a power of two that the caller may ask for. */
static size_t alignment(MPI_Info info)
{
	int (*get)(MPI_Info, const char *, int, char *, int *) = oc_pmpi_symbol("PMPI_Info_get");
	char value[32] = "";
	size_t align = 0;
	int there = 0;

	if (info != oc_abi.info_null && get &&
	    !get(info, "mpi_minimum_memory_alignment", sizeof(value) - 1, value, &there) && there)
		align = strtoull(value, NULL, 10);
	return align > ALIGN_MIN && !(align & (align - 1)) ? align : ALIGN_MIN;
}

/* Serves MPI_Alloc_mem, MPI_Free_mem: the shared heap is there: its memory, whatever the size. */
OC_EXPORT int PMPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
	void *p = NULL;

	if (oc_adapter.active && size > 0 && !oc_env()->heap_off)
		p = oc_heap_memalign(alignment(info), (size_t)size);
	if (!p) {
		int err;

		/* So that what is in the heap is ours to free, and the rest not. */
		oc_malloc_bypass++;
		err = pmpi()->Alloc_mem(size, info, baseptr);
		oc_malloc_bypass--;
		return err;
	}
	memcpy(baseptr, &p, sizeof(p));
	return MPI_SUCCESS;
}

OC_EXPORT int PMPI_Free_mem(void *base)
{
	if (!base || !oc_heap_contains(base, 1))
		return pmpi()->Free_mem(base);
	oc_heap_free(base);
	return MPI_SUCCESS;
}

OC_EXPORT int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
	return oc_tool()->Alloc_mem ? oc_tool()->Alloc_mem(size, info, baseptr)
				    : PMPI_Alloc_mem(size, info, baseptr);
}

OC_EXPORT int MPI_Free_mem(void *base)
{
	return oc_tool()->Free_mem ? oc_tool()->Free_mem(base) : PMPI_Free_mem(base);
}
