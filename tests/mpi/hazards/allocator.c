// SPDX-License-Identifier: BSD-3-Clause
/*
 * What another allocator in the program looks like to onecopy: malloc() and free()
 * are onecopy's, which comes first, but a name that the C library has only once is
 * the allocator's own. It knows no blocks but those of its malloc().
 */
#include <stddef.h>
#include <stdlib.h>

size_t malloc_usable_size(void *p)
{
	(void)p;
	abort();
}
