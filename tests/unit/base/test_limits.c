// SPDX-License-Identifier: BSD-3-Clause
/*
 * What cgroups (v2) allow, in a mount namespace where /sys/fs/cgroup is ours to
 * write: the least of the limits on the way up counts, "max" is none.
 */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/mem_limit.h"

#define ROOT "/sys/fs/cgroup"

static int put(const char *dir, const char *name, const char *text)
{
	char path[4300];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	if (!file)
		return -errno;
	fputs(text, file);
	return fclose(file);
}

static int expect(const char *what, size_t memory, uint32_t cpus)
{
	if (oc_mem_limit() == memory && oc_cpus_quota() == cpus)
		return 0;
	fprintf(stderr, "%s: %zu bytes and %u CPUs, not %zu and %u\n", what, oc_mem_limit(),
		oc_cpus_quota(), memory, cpus);
	return 1;
}

/* This process's group below ROOT, made there, into @dir. */
static int make_group(char *dir, size_t size)
{
	char line[4096], path[4200];
	FILE *file = fopen("/proc/self/cgroup", "r");
	int found = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "0::", 3))
			continue;
		found = 1;
		line[strcspn(line, "\n")] = '\0';
		snprintf(path, sizeof(path), "%s%s", ROOT, line + 3);
		for (char *at = path + strlen(ROOT) + 1; (at = strchr(at, '/')); *at++ = '/') {
			*at = '\0';
			mkdir(path, 0700);
		}
		mkdir(path, 0700);
		snprintf(dir, size, "%s", path);
	}
	if (file)
		fclose(file);
	return found;
}

int main(void)
{
	size_t all = oc_mem_limit();
	char own[4200];
	int failed = 0;

	if ((unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS)) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("limits", ROOT, "tmpfs", 0, NULL) || !make_group(own, sizeof(own))) {
		fprintf(stderr, "skipped: no mount namespace, or no cgroups of version 2\n");
		return 77;
	}
	put(ROOT, "memory.max", "268435456\n");
	put(ROOT, "cpu.max", "250000 100000\n");
	failed |= expect("limits of the root", 268435456, 3);
	put(own, "memory.max", "134217728\n");
	put(own, "cpu.max", "50000 100000\n");
	failed |= expect("the group's own", 134217728, 1);
	put(ROOT, "memory.max", "max\n");
	put(ROOT, "cpu.max", "max 100000\n");
	put(own, "memory.max", "max\n");
	put(own, "cpu.max", "max 100000\n");
	if (oc_mem_limit() < 268435456 || oc_mem_limit() < all)
		failed |= expect("no limit", all, 0);
	return failed | (oc_cpus_quota() != 0);
}
