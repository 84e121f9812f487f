// SPDX-License-Identifier: BSD-3-Clause
/*
 * An MPI program for real clients of /dev/knem: every rank sends to every other,
 * from and to heap, stack and static memory, in sizes from one byte to 4 MiB,
 * and each looks at all it has got.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (4 << 20)

static unsigned char table[LARGEST + 64];

static void fill(unsigned char *p, size_t bytes, int from, int to)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = i * 31 + i / 251 + from * 7 + to * 13 + bytes;
}

static long differ(const unsigned char *p, size_t bytes, int from, int to)
{
	unsigned char *want = malloc(bytes);
	long bad;

	if (!want)
		MPI_Abort(MPI_COMM_WORLD, 1);
	fill(want, bytes, from, to);
	bad = memcmp(p, want, bytes) != 0;
	free(want);
	return bad;
}

/* With the ranks @shift away on either side. */
static long exchange(int rank, int ranks, int shift, size_t bytes)
{
	const int to = (rank + shift) % ranks;
	const int from = (rank + ranks - shift) % ranks;
	unsigned char local[65536];
	unsigned char *send = malloc(bytes + 3);
	/* What the two sides are: odd addresses, all kinds of memory. */
	unsigned char *receive = bytes % 3 == 0 && bytes <= sizeof(local) ? local : table + 5;
	long bad;

	if (!send)
		MPI_Abort(MPI_COMM_WORLD, 1);
	fill(send + 3, bytes, rank, to);
	memset(receive, 0, bytes);
	MPI_Sendrecv(send + 3, bytes, MPI_BYTE, to, 1, receive, bytes, MPI_BYTE, from, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	bad = differ(receive, bytes, from, rank);
	free(send);
	return bad;
}

int main(int argc, char **argv)
{
	int rank;
	int ranks;
	long bad = 0;
	long done = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (size_t bytes = 1; bytes <= LARGEST; bytes += bytes / 2 + 1) {
		for (int shift = 1; shift < ranks; shift++, done++)
			bad += exchange(rank, ranks, shift, bytes);
	}
	MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (!rank)
		printf("%ld exchanges, %ld wrong\n", done, bad);
	MPI_Finalize();
	return bad != 0;
}
