// SPDX-License-Identifier: BSD-3-Clause
/* The public face of the shared heap. */
#include <onecopy/onecopy.h>

#include "heap/heap.h"

void *oc_alloc(size_t bytes)
{
	return oc_heap_init() ? NULL : oc_heap_alloc(bytes);
}

void oc_free(void *p)
{
	if (p)
		oc_heap_free(p);
}

const char *oc_heap_why(void)
{
	oc_heap_init();
	return oc_heap_reason();
}
