// SPDX-License-Identifier: BSD-3-Clause
/*
 * refused before|after: rank 1 may not read other processes' memory, from before
 * MPI_Init on (every probe fails) or only after it (copies fail at run time).
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "pattern.h"
#include "rank.h"

#define WORDS ((size_t)1 << 17)

static unsigned int data[WORDS], other[WORDS * 8];

static void refuse(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	prctl(PR_SET_DUMPABLE, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("seccomp");
		exit(77);
	}
}

int main(int argc, char **argv)
{
	const char *rank_name = rank_said();
	int before = argc > 1 && !strcmp(argv[1], "before");
	int rank, size;

	if (before && rank_name && atoi(rank_name) == 1)
		refuse();
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (!before && rank == 1)
		refuse();
	for (unsigned int turn = 0; turn < 24; turn++) {
		int root = (int)turn % size;

		pattern_fill(data, WORDS, rank == root ? turn : 0);
		MPI_Bcast(data, (int)WORDS, MPI_UNSIGNED, root, MPI_COMM_WORLD);
		pattern_check(data, WORDS, turn, "bcast");
		pattern_fill(data, WORDS, turn + (unsigned int)rank);
		MPI_Allgather(data, (int)WORDS, MPI_UNSIGNED, other, (int)WORDS, MPI_UNSIGNED,
			      MPI_COMM_WORLD);
		for (int r = 0; r < size; r++)
			pattern_check(other + WORDS * (size_t)r, WORDS, turn + (unsigned int)r,
				      "allgather");
		memset(other, 0, sizeof(other));
		MPI_Gather(data, (int)WORDS, MPI_UNSIGNED, other, (int)WORDS, MPI_UNSIGNED, root,
			   MPI_COMM_WORLD);
		for (int r = 0; rank == root && r < size; r++)
			pattern_check(other + WORDS * (size_t)r, WORDS, turn + (unsigned int)r,
				      "gather");
		MPI_Allreduce(data, other, (int)WORDS, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
		for (size_t i = 0; i < WORDS; i++) {
			unsigned int want = 0;

			for (int r = 0; r < size; r++)
				want += pattern_at(turn + (unsigned int)r, i);
			if (other[i] != want)
				pattern_fail("allreduce");
		}
	}
	MPI_Finalize();
	return 0;
}
