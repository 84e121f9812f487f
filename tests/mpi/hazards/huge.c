// SPDX-License-Identifier: BSD-3-Clause
/*
 * One element of more than 2 GiB with gaps, which is how programs send that much.
 * Blocks overlap at the sender, and the receiver's memory is the same PERIOD blocks
 * over and over: only packed are they all there at once.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "pattern.h"

#define BLOCK  ((size_t)1 << 20)
#define STRIDE (BLOCK + 4096)
#define BLOCKS 2100
#define PERIOD 20
#define SHIFT  ((size_t)4) /* bytes from one block to the next at the sender */

static unsigned int *make_send(MPI_Datatype *type)
{
	size_t bytes = BLOCK + BLOCKS * SHIFT;
	unsigned int *data = pattern_alloc(bytes);

	pattern_fill(data, bytes / 4, 1);
	MPI_Type_create_hvector(BLOCKS, (int)BLOCK, (MPI_Aint)SHIFT, MPI_BYTE, type);
	return data;
}

static char *make_recv(MPI_Datatype *type)
{
	size_t turn = PERIOD * STRIDE, bytes = BLOCKS / PERIOD * turn;
	int fd = memfd_create("huge", 0);
	char *data = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || ftruncate(fd, (off_t)turn) || data == MAP_FAILED)
		pattern_fail("no memory");
	for (size_t at = 0; at < bytes; at += turn)
		if (mmap(data + at, turn, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED)
			pattern_fail("mmap");
	close(fd);
	MPI_Type_create_hvector(BLOCKS, (int)BLOCK, (MPI_Aint)STRIDE, MPI_BYTE, type);
	return data;
}

static void check(const char *data)
{
	for (size_t b = BLOCKS - PERIOD; b < BLOCKS; b++) {
		const unsigned int *block = (const unsigned int *)(data + b * STRIDE);

		for (size_t i = 0; i < BLOCK / 4; i++)
			if (block[i] != pattern_at(1, b * SHIFT / 4 + i))
				pattern_fail("a block");
		for (size_t i = BLOCK / 4; i < STRIDE / 4; i++)
			if (block[i])
				pattern_fail("a gap");
	}
}

int main(int argc, char **argv)
{
	MPI_Datatype type;
	void *data;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	data = rank == 0 ? make_send(&type) : (void *)make_recv(&type);
	MPI_Type_commit(&type);
	MPI_Bcast(data, 1, type, 0, MPI_COMM_WORLD);
	if (rank != 0)
		check(data);
	MPI_Type_free(&type);
	MPI_Finalize();
	return 0;
}
