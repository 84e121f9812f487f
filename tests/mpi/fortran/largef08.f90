! SPDX-License-Identifier: BSD-3-Clause
! Collectives with large counts, which are Fortran's only through use mpi_f08.
program largef08
  use mpi_f08
  implicit none
  integer(MPI_COUNT_KIND), parameter :: n = 50000
  integer(MPI_COUNT_KIND), allocatable :: counts(:)
  integer(MPI_ADDRESS_KIND), allocatable :: displs(:)
  integer, allocatable :: data(:), all(:)
  integer :: rank, ranks, i, r

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  allocate (data(n), all(n * ranks), counts(ranks), displs(ranks))

  data = [(i * 3 + rank, i=1, int(n))]
  call MPI_Bcast(data, n, MPI_INTEGER, 1, MPI_COMM_WORLD)
  if (any(data /= [(i * 3 + 1, i=1, int(n))])) stop 1

  data = [(i + rank, i=1, int(n))]
  call MPI_Allreduce(MPI_IN_PLACE, data, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (any(data /= [(ranks * i + ranks * (ranks - 1) / 2, i=1, int(n))])) stop 2

  ! The last rank's block first.
  counts = n
  displs = [(n * (ranks - r), r=1, ranks)]
  data = rank
  call MPI_Allgatherv(data, n, MPI_INTEGER, all, counts, displs, MPI_INTEGER, MPI_COMM_WORLD)
  do r = 1, ranks
    if (any(all(displs(r) + 1:displs(r) + n) /= r - 1)) stop 3
  end do
  call MPI_Finalize()
end program largef08
