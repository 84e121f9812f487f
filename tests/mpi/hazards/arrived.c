// SPDX-License-Identifier: BSD-3-Clause
/*
 * What was sent before a barrier, and looked for once after it, has arrived; so has the end of an
 * epoch. No standard promises it, but programs count on what most MPIs do inside a node. One may
 * be late now and then for reasons of its own.
 */
#include <mpi.h>
#include <stdio.h>

#define WARM   100
#define ROUNDS 200

static int rank, size, late_messages, late_epochs;

static void send_and_look(void)
{
	char byte = 1;
	int there;

	if (rank)
		MPI_Send(&byte, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int peer = 1; !rank && peer < size; peer++) {
		MPI_Iprobe(peer, 1, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
		late_messages += !there;
		MPI_Recv(&byte, 1, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

/* Rank 0 lends its window to all others. */
static void complete_and_test(MPI_Win win, MPI_Group first, MPI_Group others)
{
	int over = 1;

	if (!rank)
		MPI_Win_post(others, 0, win);
	else
		MPI_Win_start(first, 0, win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank)
		MPI_Win_complete(win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		MPI_Win_test(win, &over);
	late_epochs += !over;
	if (!over)
		MPI_Win_wait(win);
}

int main(int argc, char **argv)
{
	MPI_Group world, first, others;
	int memory[4], zero = 0, failed;
	MPI_Win win;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &zero, &first);
	MPI_Group_excl(world, 1, &zero, &others);
	MPI_Win_create(memory, sizeof(memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	for (int i = 0; i < WARM; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < ROUNDS; i++)
		send_and_look();
	for (int i = 0; i < ROUNDS; i++)
		complete_and_test(win, first, others);
	failed = late_messages > ROUNDS / 4 || late_epochs > ROUNDS / 4;
	if (failed)
		fprintf(stderr, "of %d: %d messages and %d epochs are late\n", ROUNDS,
			late_messages, late_epochs);
	MPI_Win_free(&win);
	MPI_Group_free(&world);
	MPI_Group_free(&first);
	MPI_Group_free(&others);
	MPI_Finalize();
	return failed;
}
