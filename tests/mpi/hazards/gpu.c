// SPDX-License-Identifier: BSD-3-Clause
/*
 * Linked into a program: an MPI that takes pointers to the memory of the GPUs TEST_TAKES names, on
 * a node of which TEST_DEVICE is the one device of a GPU.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_set(const char *name, const char *value)
{
	const char *set = getenv(name);

	return set && !strcmp(set, value);
}

int MPIX_Query_cuda_support(void)
{
	return is_set("TEST_TAKES", "cuda");
}

int MPIX_Query_rocm_support(void)
{
	return is_set("TEST_TAKES", "rocm");
}

int MPIX_Query_hip_support(void)
{
	return is_set("TEST_TAKES", "hip");
}

int MPIX_Query_ze_support(void)
{
	return is_set("TEST_TAKES", "ze");
}

int access(const char *path, int mode)
{
	static const char *const devices[] = {"/dev/nvidiactl", "/dev/kfd", "/dev/dri"};

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		if (strcmp(path, devices[i]) != 0)
			continue;
		if (is_set("TEST_DEVICE", path))
			return 0;
		errno = ENOENT;
		return -1;
	}
	return (int)syscall(SYS_faccessat, -100 /* AT_FDCWD */, path, mode);
}
