/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_PRESENCE_H
#define OC_MPI_PRESENCE_H

/*
 * Which ranks of MPI_COMM_WORLD run this library on this machine. Nobody may ask the
 * MPI that: a rank without the library never makes the call that the others wait in.
 * There are such ranks where one mpirun starts several programs, or where LD_PRELOAD
 * does not reach another node.
 *
 * Each rank takes a name, of its job and its rank, before it enters the MPI's MPI_Init(),
 * which does not let anybody out before all are in; afterwards every rank finds the
 * same names taken. What the job is called, PMIx's launchers say in the environment.
 *
 * One thread.
 */

/* Before the MPI's MPI_Init(). */
void oc_presence_announce(void);

/* After it: the world ranks that are here and announced themselves, this one among them, in
 * rising order, the first @room of them into @ranks; how many there are. 0 when this rank
 * could not announce itself, -1 when this job has no name and nothing is known. */
int oc_presence_find(int world_size, int *ranks, int room);

/* When all that were found have found the others. */
void oc_presence_withdraw(void);

#endif
