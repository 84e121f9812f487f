// SPDX-License-Identifier: BSD-3-Clause
/*
 * Linked into a second build of a test program, and of the preload library: windows of
 * two huge pages at most, and room for few of them, so that every path of
 * lib/access/window.c is taken by a handful of ranks. ONECOPY_TEST_WINDOWS: room in bytes.
 */
#include <stdlib.h>

#include "base/space.h"

void oc_space_windows(const struct oc_space *space, uint32_t nranks, struct oc_space_windows *out)
{
	const char *total = getenv("ONECOPY_TEST_WINDOWS");

	*out = (struct oc_space_windows){
		.total = total ? strtoull(total, NULL, 0) : (size_t)32 << 20,
		.chunk = (size_t)2 << 20,
		.step = (size_t)1 << 30,
		.resident = (size_t)4 << 20,
	};
}
