/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_DISCOVERY_H
#define OC_MPI_DISCOVERY_H

/*
 * Which ranks of MPI_COMM_WORLD run this library on this machine. Nobody may ask the
 * MPI that: a rank without the library never makes the call that the others wait in.
 * There are such ranks where one mpirun starts several programs, or where LD_PRELOAD
 * does not reach another node.
 *
 * Each rank takes a name, of its job and its rank, before it enters the MPI's MPI_Init(),
 * which does not let anybody out before all are in; afterwards every rank finds the
 * same names taken. What the job is called, its launcher says (mpi/launcher.h). Under one that does
 * not all ranks have to have the library, and meet by a name of their own making.
 *
 * That all have found the same is not taken on trust: an MPI may be told not to wait in
 * MPI_Init() (Open MPI's async_mpi_init), and a rank may run out of descriptors. Each
 * tells the lowest rank it found what it found, over the connection it found it by. The
 * lowest compares and answers. It holds a connection to each of the others, which
 * breaks when that one gives up and with it its name; so all learn soon that there
 * will be no agreement, and nobody waits in the MPI for who does not come.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stdint.h>

/* A number for the job, the same on all its ranks of every node, and seldom another's; 0 where
 * it has no name that all know. Known once announced. */
uint64_t oc_discovery_job(void);

/* Before the MPI's MPI_Init(). */
void oc_discovery_announce(void);

/* Where nobody has named the job, and ranks have agreed on a @name by the MPI: the same for
 * them, as @rank of theirs. They find each other when all have done so. False if this rank
 * cannot. */
bool oc_discovery_announce_as(const char *name, int rank);

/* After it: the world ranks that are here and announced themselves, this one among them, in
 * rising order, the first @room of them into @ranks; how many there are. 0 when this rank
 * could not announce itself or look for the others, -1 when this job has no name and nothing
 * is known. */
int oc_discovery_find(int world_size, int *ranks, int room);

/* Whether all of @ranks[@count], from oc_discovery_find(), have found the same and are
 * @willing. True on all of them or on none; those that die meanwhile end the job anyway. */
bool oc_discovery_agree(const int *ranks, int count, bool willing);

/* After agreement, what oc_node_join() asks for: on the first of the ranks the sockets to the
 * others, by their place among the ranks, else NULL and in *@fd the one to the first. They
 * stay discovery's. False when there was none. */
bool oc_discovery_sockets(int *fd, const int **peer_fds);

/* Ends all that others may wait for. Idempotent. */
void oc_discovery_withdraw(void);

#endif
