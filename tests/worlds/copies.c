// SPDX-License-Identifier: BSD-3-Clause
/*
 * Communicators made of others, with attributes and an info: callbacks are called as often as they
 * would be, for the attributes of the program alone, and each communicator works.
 */
#include <string.h>

#include "moves.h"

#define VALUE 4711

static int copied, deleted;

static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
	copied++;
	*(void **)out = in;
	*flag = 1;
	return MPI_SUCCESS;
}

static int delete (MPI_Comm comm, int keyval, void *value, void *extra)
{
	if (*(int *)value != VALUE)
		pattern_fail("a value");
	deleted++;
	return MPI_SUCCESS;
}

static void expect(int copies, int deletions)
{
	if (copied != copies || deleted != deletions)
		pattern_fail("callbacks");
}

int main(int argc, char **argv)
{
	static int value = VALUE;
	MPI_Comm plain, with, split, later;
	MPI_Request request;
	MPI_Info info;
	int keyval, *found, flag, rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_create_keyval(copy, delete, &keyval, NULL);
	moves_do(MPI_COMM_WORLD, 1);
	MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &value);
	moves_do(MPI_COMM_WORLD, 2);
	expect(0, 0);
	MPI_Comm_dup(MPI_COMM_WORLD, &plain);
	expect(1, 0);
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
	MPI_Comm_dup_with_info(plain, info, &with);
	MPI_Info_free(&info);
	expect(2, 0);
	MPI_Comm_idup(with, &later, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	expect(3, 0);
	MPI_Comm_split(with, 0, -rank, &split);
	expect(3, 0);
	for (int i = 0; i < 3; i++) {
		moves_do(plain, 3);
		moves_do(with, 4);
		moves_do(later, 5);
		moves_do(split, 6);
	}
	MPI_Comm_get_attr(with, keyval, &found, &flag);
	if (!flag || *found != VALUE)
		pattern_fail("an attribute");
	MPI_Comm_delete_attr(with, keyval);
	expect(3, 1);
	moves_do(with, 7);
	MPI_Comm_free(&with);
	expect(3, 1);
	MPI_Comm_free(&plain);
	MPI_Comm_free(&later);
	MPI_Comm_free(&split);
	expect(3, 3);
	moves_do(MPI_COMM_WORLD, 8);
	MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
	MPI_Comm_free_keyval(&keyval);
	expect(3, 4);
	MPI_Finalize();
	return 0;
}
