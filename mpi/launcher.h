/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_LAUNCHER_H
#define OC_MPI_LAUNCHER_H

/*
 * What a launcher tells a rank before MPI_Init: which job it is of, and which of its ranks.
 *
 * Launchers with PMIx (Open MPI's, Slurm's) name the job in the environment. Those with PMI (Hydra
 * of MPICH and Intel MPI, Slurm's) give each rank a socket to a server, one a job and node, and say
 * the job's name only to who asks there, which is the MPI's to do. But that server can be named by
 * who it is.
 */
struct oc_launcher {
	const char *job;  /* the same on all nodes, NULL: none that all know */
	const char *here; /* on this one no other job's, while it runs */
	long rank;	  /* of MPI_COMM_WORLD */
	char text[64];
};

/* 0, -ENOENT where no launcher that names jobs has started this process, -ESRCH where one has, and
 * which job this process is of cannot be told. One thread. */
int oc_launcher_ask(struct oc_launcher *said);

#endif
