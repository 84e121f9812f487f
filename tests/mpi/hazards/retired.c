// SPDX-License-Identifier: BSD-3-Clause
/* A job of one rank, which nobody serves: what it had in the arena before MPI_Init gets shorter
 * where it is, and is not there twice; what gets longer is the C library's from then on. */
#include <stdlib.h>

#include "pattern.h"

#define MIB   ((size_t)1 << 20)
#define BYTES (256 * MIB)

static long most_kib(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[200];
	long kib = 0;

	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "VmHWM: %ld", &kib);
	if (status)
		fclose(status);
	return kib;
}

int main(int argc, char **argv)
{
	char *data = malloc(BYTES);

	memset(data, 1, BYTES);
	MPI_Init(&argc, &argv);
	data = realloc(data, BYTES - MIB);
	if (most_kib() > (long)(BYTES / 2 * 3 >> 10))
		pattern_fail("twice the memory");
	data = realloc(data, BYTES + 16 * MIB);
	if (data[0] != 1 || data[BYTES - MIB - 1] != 1)
		pattern_fail("other bytes");
	free(data);
	MPI_Finalize();
	return 0;
}
