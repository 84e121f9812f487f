// SPDX-License-Identifier: BSD-3-Clause
/* Also for sanitizers, by which the child's functions are built, too. */
#include "base/bare_clone.h"

#include <errno.h>
#include <sched.h>

long oc_bare_clone(long flags, char *stack_end, int (*entry)(void *arg), void *arg)
{
	int pid = clone(entry, stack_end, (int)flags, arg);

	return pid < 0 ? -errno : pid;
}
