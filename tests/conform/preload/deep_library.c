// SPDX-License-Identifier: BSD-3-Clause
/* A library that takes and gives back memory by the malloc and free that it finds. */
#include <stdlib.h>

void *deep_take(size_t bytes)
{
	return malloc(bytes);
}

void deep_give(void *p)
{
	free(p);
}
