// SPDX-License-Identifier: BSD-3-Clause
#include "hooked.h"

#include <errno.h>
#include <sys/mman.h>

int (*oc_hooked_madvise)(void *p, size_t bytes, int advice) = madvise;

void oc_hooked_tell(void *p, size_t bytes)
{
	oc_hooked_madvise(p, bytes, MADV_FREE);
}

bool oc_hooked_remove(void *p, size_t bytes)
{
	if (!oc_hooked_madvise(p, bytes, MADV_REMOVE))
		return true;
	return errno == EINVAL && !munlock(p, bytes) && !oc_hooked_madvise(p, bytes, MADV_REMOVE);
}
