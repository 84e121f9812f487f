! SPDX-License-Identifier: BSD-3-Clause
! MPI_IN_PLACE and MPI_BOTTOM, wherever a collective takes them, and MPI_BOTTOM in one-sided transfers. MPIFH, USEMPI or USEMPIF08 says through what.
program places
#if defined(USEMPIF08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#ifdef MPIFH
  include 'mpif.h'
#endif
  integer :: n = 20000 ! no constant: gfortran would write out every array below
  integer, allocatable, target :: data(:), sums(:), blocks(:), part(:)
  integer(MPI_ADDRESS_KIND) :: address(1)
  integer(MPI_ADDRESS_KIND) :: at
  integer :: lengths(1), rank, ranks, ierr, i, r, right, left
#ifdef USEMPIF08
  type(MPI_Datatype) :: whole, types(1)
  type(MPI_Win) :: window
#else
  integer :: whole, types(1), window
#endif

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  allocate (data(n), sums(n), part(n), blocks(n * ranks))

  ! A type that holds the address of the data itself.
  call MPI_Get_address(data, address(1), ierr)
  lengths(1) = n
  types(1) = MPI_INTEGER
  call MPI_Type_create_struct(1, lengths, address, types, whole, ierr)
  call MPI_Type_commit(whole, ierr)

  data = [(i * 7 + rank, i=1, n)]
  call MPI_Bcast(MPI_BOTTOM, 1, whole, ranks - 1, MPI_COMM_WORLD, ierr)
  call expect(all(data == [(i * 7 + ranks - 1, i=1, n)]), 'bcast from MPI_BOTTOM')

  data = rank
  call MPI_Allgather(MPI_BOTTOM, 1, whole, blocks, n, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call expect(all(blocks == [((r, i=1, n), r=0, ranks - 1)]), 'allgather from MPI_BOTTOM')

  blocks = [((r + 3 * i, i=1, n), r=0, ranks - 1)]
  call MPI_Scatter(blocks, n, MPI_INTEGER, MPI_BOTTOM, 1, whole, 0, MPI_COMM_WORLD, ierr)
  call expect(all(data == [(rank + 3 * i, i=1, n)]), 'scatter to MPI_BOTTOM')

  blocks = -1
  blocks(rank * n + 1:(rank + 1) * n) = [(rank * i, i=1, n)]
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, blocks, n, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call expect(all(blocks == [((r * i, i=1, n), r=0, ranks - 1)]), 'allgather in place')

  blocks = [((rank * ranks + r, i=1, n), r=0, ranks - 1)]
  call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, blocks, n, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call expect(all(blocks == [((r * ranks + rank, i=1, n), r=0, ranks - 1)]), 'alltoall in place')

  data = [(i - rank, i=1, n)]
  if (rank == 0) then
    call MPI_Reduce(MPI_IN_PLACE, data, n, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
    call expect(all(data == [(ranks * i - ranks * (ranks - 1) / 2, i=1, n)]), 'reduce in place')
  else
    call MPI_Reduce(data, sums, n, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  end if

  blocks = [((r, i=1, n), r=0, ranks - 1)]
  if (rank == 0) then
    call MPI_Scatter(blocks, n, MPI_INTEGER, MPI_IN_PLACE, 0, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  else
    call MPI_Scatter(blocks, n, MPI_INTEGER, part, n, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
    call expect(all(part == rank), 'scatter in place')
  end if

  if (rank == 0) then
    blocks = -1
    blocks(1:n) = 0
    call MPI_Gather(MPI_IN_PLACE, 0, MPI_INTEGER, blocks, n, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
    call expect(all(blocks == [((r, i=1, n), r=0, ranks - 1)]), 'gather in place')
  else
    call MPI_Gather(part, n, MPI_INTEGER, blocks, n, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  end if

  blocks = [((rank + r, i=1, n), r=0, ranks - 1)]
  call MPI_Reduce_scatter_block(MPI_IN_PLACE, blocks, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call expect(all(blocks(1:n) == ranks * rank + ranks * (ranks - 1) / 2), 'reduce_scatter_block in place')

  blocks = -1
  right = mod(rank + 1, ranks)
  left = mod(rank + ranks - 1, ranks)
  data = [(rank + 5 * i, i=1, n)]
  at = 4_MPI_ADDRESS_KIND * n * ranks
  call MPI_Win_create(blocks, at, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, ierr)
  call MPI_Win_fence(0, window, ierr)
  at = int(rank, MPI_ADDRESS_KIND) * n
  call MPI_Put(MPI_BOTTOM, 1, whole, right, at, n, MPI_INTEGER, window, ierr)
  call MPI_Win_fence(MPI_MODE_NOSUCCEED, window, ierr)
  call expect(all(blocks(left * n + 1:(left + 1) * n) == [(left + 5 * i, i=1, n)]), 'put from MPI_BOTTOM')
  call MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window, ierr)
  call MPI_Get(part, n, MPI_INTEGER, right, at, n, MPI_INTEGER, window, ierr)
  call MPI_Win_unlock(right, window, ierr)
  call expect(all(part == data), 'get')
  call MPI_Win_free(window, ierr)

  call MPI_Type_free(whole, ierr)
  call MPI_Finalize(ierr)

contains

  subroutine expect(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what

    if (good) return
    print *, 'rank', rank, ': wrong result of ', what
    call MPI_Abort(MPI_COMM_WORLD, 2, ierr)
  end subroutine
end program
