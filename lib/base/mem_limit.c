// SPDX-License-Identifier: BSD-3-Clause
#include "base/mem_limit.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

#include "base/cgroup.h"

static void look_at_limit(const char *text, void *arg)
{
	size_t *least = arg;
	char *end;
	unsigned long long bytes = strtoull(text, &end, 10);

	/* "max" has no number. */
	if (end != text && bytes < *least)
		*least = (size_t)bytes;
}

size_t oc_mem_limit(void)
{
	size_t least = SIZE_MAX;
	struct sysinfo info;

	if (!sysinfo(&info))
		least = (size_t)info.totalram * info.mem_unit;
	oc_cgroup_walk("memory.max", look_at_limit, &least);
	return least;
}
