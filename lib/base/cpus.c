// SPDX-License-Identifier: BSD-3-Clause
#include "base/cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/cgroup.h"

void oc_cpus_allowed(uint64_t mask[OC_CPUS_WORDS])
{
	int ncpus = OC_CPUS_WORDS * 64;

	memset(mask, 0, OC_CPUS_WORDS * sizeof(*mask));
	/* The kernel refuses a set smaller than its own. */
	for (; ncpus <= 1 << 16; ncpus *= 2) {
		size_t bytes = CPU_ALLOC_SIZE(ncpus);
		cpu_set_t *set = CPU_ALLOC(ncpus);
		int err;

		if (!set)
			break;
		memset(set, 0, bytes);
		err = sched_getaffinity(0, bytes, set) ? errno : 0;
		for (int cpu = 0; !err && cpu < ncpus; cpu++)
			if (CPU_ISSET_S(cpu, bytes, set))
				mask[cpu / 64 % OC_CPUS_WORDS] |= 1ull << cpu % 64;
		CPU_FREE(set);
		if (err != EINVAL)
			break;
	}
	for (int i = 0; i < OC_CPUS_WORDS; i++)
		if (mask[i])
			return;
	mask[0] = 1;
}

static void look_at_quota(const char *text, void *arg)
{
	unsigned long long quota, period;
	uint32_t *least = arg, cpus;

	/* "max 100000" has no number in front. */
	if (sscanf(text, "%llu %llu", &quota, &period) != 2 || !period)
		return;
	cpus = (uint32_t)((quota + period - 1) / period);
	if (cpus && (!*least || cpus < *least))
		*least = cpus;
}

uint32_t oc_cpus_quota(void)
{
	uint32_t least = 0;

	oc_cgroup_walk("cpu.max", look_at_quota, &least);
	return least;
}
