/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_NTCOPY_H
#define BENCH_NTCOPY_H

#include <stddef.h>

/* A way to copy whole lines past the caches: @dst 64-byte aligned, @bytes a
 * multiple of 256. Complete and ordered when it returns. */
struct ntcopy {
	const char *name;
	void (*copy)(void *dst, const void *src, size_t bytes);
};

/* i-th way this processor has, NULL past the last. ntcopy_x86.c knows some,
 * ntcopy_none.c none. */
const struct ntcopy *ntcopy_at(size_t i);

#endif
