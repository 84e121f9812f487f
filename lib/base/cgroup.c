// SPDX-License-Identifier: BSD-3-Clause
#include "base/cgroup.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

#define ROOT	  "/sys/fs/cgroup"
#define PATH_SIZE 4200

void oc_cgroup_walk(const char *name, void (*look)(const char *text, void *arg), void *arg)
{
	char groups[4096] = "\n", dir[PATH_SIZE], path[PATH_SIZE + 64], text[64];
	char *own;

	oc_file_read_text("/proc/self/cgroup", groups + 1, sizeof(groups) - 1);
	/* A line of version 2 has number 0 and names no controllers. */
	own = strstr(groups, "\n0::");
	if (!own)
		return;
	own += strlen("\n0::");
	own[strcspn(own, "\n")] = '\0';
	snprintf(dir, sizeof(dir), "%s%s", ROOT, own);
	while (strlen(dir) >= strlen(ROOT)) {
		snprintf(path, sizeof(path), "%s/%s", dir, name);
		oc_file_read_text(path, text, sizeof(text));
		if (*text)
			look(text, arg);
		*strrchr(dir, '/') = '\0';
	}
}
