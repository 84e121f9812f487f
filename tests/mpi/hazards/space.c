// SPDX-License-Identifier: BSD-3-Clause
/*
 * Each rank exchanges with every other, then looks at what it has mapped: no more than
 * 20 times the memory; shared memory and page tables as far as it has used them; and of
 * its peers' memory nothing that a core file would hold.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#define BYTES ((size_t)1 << 20)

static int rank, size;

static void fail(const char *what, unsigned long long bytes)
{
	fprintf(stderr, "rank %d: %s: %llu MiB\n", rank, what, bytes >> 20);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned long long status(const char *name)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long long value = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			value = strtoull(line + strlen(name), NULL, 10) << 10;
	if (file)
		fclose(file);
	return value;
}

/* Bytes of arenas that a core file would hold, this rank's own among them. */
static unsigned long long dumped(void)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	unsigned long long first, end, ours = 0, sum = 0;
	char line[512];

	while (smaps && fgets(line, sizeof(line), smaps))
		if (sscanf(line, "%llx-%llx ", &first, &end) == 2)
			ours = strstr(line, "onecopy-heap") ? end - first : 0;
		else if (!strncmp(line, "VmFlags:", 8) && !strstr(line, " dd"))
			sum += ours;
	if (smaps)
		fclose(smaps);
	return sum;
}

static void exchange(int *send, int *recv, int n)
{
	for (int i = 0; i < n * size; i++)
		send[i] = rank * 7 + i;
	MPI_Alltoall(send, n, MPI_INT, recv, n, MPI_INT, MPI_COMM_WORLD);
	for (int p = 0; p < size; p++)
		for (int i = 0; i < n; i++)
			if (recv[p * n + i] != p * 7 + rank * n + i)
				fail("wrong data", 0);
	MPI_Allgather(send, n, MPI_INT, recv, n, MPI_INT, MPI_COMM_WORLD);
	for (int p = 0; p < size; p++)
		if (recv[p * n] != p * 7 || recv[p * n + n - 1] != p * 7 + n - 1)
			fail("wrong data", 0);
}

int main(int argc, char **argv)
{
	int *send, *recv, n;
	struct sysinfo info;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	send = malloc(BYTES);
	recv = malloc(BYTES);
	n = (int)(BYTES / sizeof(int)) / size;
	for (int turn = 0; turn < 4; turn++)
		exchange(send, recv, n);
	if (sysinfo(&info) || status("VmSize:") > 20ull * info.totalram * info.mem_unit)
		fail("VmSize", status("VmSize:"));
	/* Its own blocks, and one or two huge pages of each peer. */
	if (status("RssShmem:") > 8ull * BYTES + ((unsigned long long)size << 22))
		fail("RssShmem", status("RssShmem:"));
	if (status("VmPTE:") > (8ull << 20))
		fail("VmPTE", status("VmPTE:"));
	if (dumped() > 2ull * info.totalram * info.mem_unit)
		fail("in a core file", dumped());
	if (!rank)
		printf("VmSize %llu GiB, RssShmem %llu KiB, VmPTE %llu KiB\n",
		       status("VmSize:") >> 30, status("RssShmem:") >> 10, status("VmPTE:") >> 10);
	free(send);
	free(recv);
	MPI_Finalize();
	return 0;
}
