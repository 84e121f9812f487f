// SPDX-License-Identifier: BSD-3-Clause
#include "base/hooked.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/quiet.h"

static int (*next)(void *p, size_t bytes, int advice);

/* Past the preload's own. Early, as dlsym() is nothing for signal handlers. */
static __attribute__((constructor)) void resolve(void)
{
	void *found = dlsym(RTLD_NEXT, "madvise");

	if (found)
		memcpy(&next, &found, sizeof(found));
	else
		next = oc_quiet_madvise;
}

int oc_hooked_madvise(void *p, size_t bytes, int advice)
{
	/* In another library's constructor, before ours. */
	if (__builtin_expect(!next, 0))
		resolve();
	return next(p, bytes, advice);
}

void oc_hooked_tell(void *p, size_t bytes)
{
	oc_hooked_madvise(p, bytes, MADV_FREE);
}

bool oc_hooked_remove(void *p, size_t bytes)
{
	if (!oc_hooked_madvise(p, bytes, MADV_REMOVE))
		return true;
	if (errno != EINVAL || munlock(p, bytes) || oc_hooked_madvise(p, bytes, MADV_REMOVE))
		return false;
	/* It was locked. Not to be so again would part the mapping, here and wherever the next
	 * pages go back, of a program that has called mlockall(); and there may be 65530. */
	syscall(SYS_mlock2, p, bytes, MLOCK_ONFAULT);
	return true;
}
