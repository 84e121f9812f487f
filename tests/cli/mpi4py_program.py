# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of mpi4py whose results are checked; what is printed says that they were right."""

from array import array

from mpi4py import MPI  # type: ignore[import-not-found]

COUNT = 1 << 17
TURNS = 8


def main() -> None:
    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    for turn in range(TURNS):
        root = turn % size
        mine = array("q", range(rank + turn, rank + turn + COUNT))
        got = array("q", mine if rank == root else bytes(8 * COUNT))
        comm.Bcast(got, root=root)
        assert got == array("q", range(root + turn, root + turn + COUNT)), "bcast"
        total = array("q", bytes(8 * COUNT))
        comm.Allreduce(mine, total)
        first = size * (size - 1) // 2 + size * turn
        assert total == array("q", range(first, first + size * COUNT, size)), "allreduce"
        every = array("q", bytes(8 * COUNT * size))
        comm.Allgather(mine, every)
        assert every == sum((array("q", range(r + turn, r + turn + COUNT)) for r in range(size)), array("q")), "all"
    if rank == 0:
        print("right")


main()
