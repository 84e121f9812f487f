! SPDX-License-Identifier: BSD-3-Clause
! Collectives through use mpi_f08.
module operators
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none

contains

  subroutine latest(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)

    if (datatype == MPI_INTEGER .or. datatype == MPI_DATATYPE_NULL) stop 3
    call c_f_pointer(invec, a, [2 * len])
    call c_f_pointer(inoutvec, b, [2 * len])
    where (b < 0) b = a
  end subroutine
end module

program usempif08
  use mpi_f08
  use operators
  implicit none
  integer, parameter :: n = 50000
  integer, allocatable :: data(:), sums(:), blocks(:)
  integer, allocatable :: counts(:), displs(:)
  integer, parameter :: k = 64, m = 100
  integer, allocatable :: a(:, :), b(:, :), ones(:), zeros(:)
  type(MPI_Datatype), allocatable :: types(:)
  double precision, allocatable :: x(:)
  logical, allocatable :: flags(:)
  type(MPI_Comm) :: ring
  integer :: rank, ranks, ierr, i, r, j
  type(MPI_Op) :: op
  type(MPI_Datatype) :: item

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  allocate (data(n), sums(n), x(n), flags(n), counts(ranks), displs(ranks))

  data = [(i * 3 + rank, i=1, n)]
  call MPI_Bcast(data, n, MPI_INTEGER, 1, MPI_COMM_WORLD, ierr)
  call expect(all(data == [(i * 3 + 1, i=1, n)]), 'bcast')

  data = [(i + rank, i=1, n)]
  call MPI_Allreduce(data, sums, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call expect(all(sums == [(ranks * i + ranks * (ranks - 1) / 2, i=1, n)]), 'allreduce')

  x = [(dble(i) / (rank + 1), i=1, n)]
  call MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
  call expect(all(x == [(dble(i), i=1, n)]), 'allreduce in place')

  flags = [(mod(i, rank + 2) == 0, i=1, n)]
  call MPI_Allreduce(MPI_IN_PLACE, flags, n, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
  call expect(flags(6) .and. .not. flags(1), 'logical allreduce')

  ! The latest of a rank's own and those below it that has one.
  call MPI_Op_create(latest, .false., op, ierr)
  call MPI_Type_contiguous(2, MPI_INTEGER, item, ierr)
  call MPI_Type_commit(item, ierr)
  data = [(merge(i + rank, -1, mod(i + rank, 3) == 0), i=1, n)]
  call MPI_Scan(data, sums, n / 2, item, op, MPI_COMM_WORLD, ierr)
  data = -1
  do r = 0, rank
    where ([(mod(i + r, 3) == 0, i=1, n)]) data = [(i + r, i=1, n)]
  end do
  call expect(all(sums == data), 'scan')
  call MPI_Op_free(op, ierr)
  call MPI_Type_free(item, ierr)

  counts = [(n - 1000 * r, r=1, ranks)]
  displs(1) = 0
  do r = 2, ranks
    displs(r) = displs(r - 1) + counts(r - 1) + 3
  end do
  allocate (blocks(displs(ranks) + counts(ranks)))
  do i = 1, 3
    blocks = -1
    data = rank
    if (rank == 0) then
      blocks(1:counts(1)) = 0
      call MPI_Gatherv(MPI_IN_PLACE, 0, MPI_INTEGER, blocks, counts, displs, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
      do r = 1, ranks
        call expect(all(blocks(displs(r) + 1:displs(r) + counts(r)) == r - 1), 'gatherv')
        if (r < ranks) call expect(all(blocks(displs(r) + counts(r) + 1:displs(r + 1)) == -1), 'gaps of gatherv')
      end do
    else
      call MPI_Gatherv(data, counts(rank + 1), MPI_INTEGER, blocks, counts, displs, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
    end if
  end do
  ! Every rank's blocks of the others go to them, and theirs come instead.
  counts = 500
  displs = [(500 * (r - 1), r=1, ranks)]
  data = rank
  call MPI_Alltoallv(MPI_IN_PLACE, counts, displs, MPI_INTEGER, data, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  do r = 1, ranks
    call expect(all(data(displs(r) + 1:displs(r) + 500) == r - 1), 'alltoallv in place')
  end do
  call expect(all(data(500 * ranks + 1:) == rank), 'what follows alltoallv in place')

  ! Slabs of a matrix, of which each rank has all columns and is to have some rows of everybody's.
  allocate (a(k * ranks, m), b(k * ranks, m), ones(ranks), zeros(ranks), types(ranks))
  ones = 1
  zeros = 0
  do r = 1, ranks
    call MPI_Type_create_subarray(2, [k * ranks, m], [k, m], [k * (r - 1), 0], MPI_ORDER_FORTRAN, MPI_INTEGER, types(r), ierr)
    call MPI_Type_commit(types(r), ierr)
  end do
  do i = 1, m
    a(:, i) = [(rank * 1000000 + i * 1000 + r, r=1, k * ranks)]
  end do
  b = -1
  call MPI_Alltoallw(a, ones, zeros, types, b, ones, zeros, types, MPI_COMM_WORLD, ierr)
  do i = 1, m
    do r = 1, ranks
      call expect(all(b(k * (r - 1) + 1:k * r, i) == [((r - 1) * 1000000 + i * 1000 + j, j=k * rank + 1, k * (rank + 1))]), &
                  'alltoallw')
    end do
  end do
  do r = 1, ranks
    call MPI_Type_free(types(r), ierr)
  end do

  ! A block to either neighbour of a ring.
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., ring, ierr)
  data = [(rank * n + i, i=1, n)]
  call MPI_Neighbor_alltoall(data, 1000, MPI_INTEGER, sums, 1000, MPI_INTEGER, ring, ierr)
  call expect(all(sums(1:1000) == [(modulo(rank - 1, ranks) * n + i, i=1001, 2000)]), 'neighbor_alltoall, left')
  call expect(all(sums(1001:2000) == [(modulo(rank + 1, ranks) * n + i, i=1, 1000)]), 'neighbor_alltoall, right')
  call MPI_Comm_free(ring, ierr)

  call MPI_Barrier(MPI_COMM_WORLD, ierr)
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
