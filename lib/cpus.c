// SPDX-License-Identifier: BSD-3-Clause
#include "cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OC_CGROUP_ROOT "/sys/fs/cgroup"

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

static uint32_t read_cpu_max(const char *dir)
{
	char path[4200];
	unsigned long long quota, period;
	uint32_t cpus = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/cpu.max", dir);
	file = fopen(path, "re");
	if (!file)
		return 0;
	/* "max 100000" has no number in front. */
	if (fscanf(file, "%llu %llu", &quota, &period) == 2 && period)
		cpus = (uint32_t)((quota + period - 1) / period);
	fclose(file);
	return cpus;
}

uint32_t oc_cpus_quota(void)
{
	char line[4096], dir[4150] = "";
	FILE *file = fopen("/proc/self/cgroup", "re");
	uint32_t least = 0;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "0::", 3))
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(dir, sizeof(dir), "%s%s", OC_CGROUP_ROOT, line + 3);
	}
	fclose(file);
	/* A limit anywhere above binds too. */
	while (strlen(dir) >= strlen(OC_CGROUP_ROOT)) {
		uint32_t cpus = read_cpu_max(dir);

		if (cpus && (!least || cpus < least))
			least = cpus;
		*strrchr(dir, '/') = '\0';
	}
	return least;
}
