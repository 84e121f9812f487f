! SPDX-License-Identifier: BSD-3-Clause
! random SEED ROUNDS OUT [alike [careful]]: random collectives, of random types, layouts and communicators. OUT.<rank> gets a line a
! round: the call, and a digest of the buffers after it. alike: all have the same type in a call.
! careful: no reduction is in place at a root but 0, nor a reduce_scatter, where MPICH 4.0 crashes. MPIFH, USEMPI or USEMPIF08 says
! through what.
#ifdef USEMPIF08
#define DATATYPE type(MPI_Datatype)
#define OPERATOR type(MPI_Op)
#define COMMUNICATOR type(MPI_Comm)
#else
#define DATATYPE integer
#define OPERATOR integer
#define COMMUNICATOR integer
#endif

! A user's operator: of two, the later one, unless it is negative.
module random_operator
#if defined(USEMPIF08)
  use mpi_f08
  use, intrinsic :: iso_c_binding
#endif
  implicit none

contains

#ifdef USEMPIF08
  subroutine latest(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)

    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    where (b < 0) b = a
  end subroutine
#else
  subroutine latest(a, b, len, datatype)
    integer :: len, datatype
    integer :: a(len), b(len)

    where (b < 0) b = a
  end subroutine
#endif
end module

program random_calls
#if defined(USEMPIF08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  use random_operator
  implicit none
#ifdef MPIFH
  include 'mpif.h'
#endif
  integer, parameter :: i8 = selected_int_kind(18), most = 16, guard = 64, unit = 12
  integer, parameter :: static_words = 4194304
  integer, parameter :: bcast = 1, scatter = 2, scatterv = 3, gather = 4, gatherv = 5, allgather = 6, allgatherv = 7, &
                        alltoall = 8, alltoallv = 9, alltoallw = 10, reduce = 11, allreduce = 12, scan = 13, exscan = 14, &
                        reduce_scatter = 15, reduce_scatter_block = 16, barrier = 17, calls = 17
  character(*), parameter :: names(calls) = [character(20) :: 'bcast', 'scatter', 'scatterv', 'gather', 'gatherv', &
                             'allgather', 'allgatherv', 'alltoall', 'alltoallv', 'alltoallw', 'reduce', 'allreduce', 'scan', &
                             'exscan', 'reduce_scatter', 'reduce_scatter_block', 'barrier']
  integer, parameter :: integer4 = 1, integer8 = 2, real4 = 3, real8 = 4, complex4 = 5, complex8 = 6, logical4 = 7, &
                        pair4 = 8, pair8 = 9, item = 10, letters = 11, octets = 12, elements = 12

  ! Blocks of elements, one for each rank or one for all. A datatype has a unit of them.
  type side
    integer :: blocks = 0, n = 1, extent = 1
    integer :: count(most) = 0, units(most) = 0, displs(most) = 0, offset(6) = 0
    integer :: bytes = 0
    logical :: derived = .false.
    DATATYPE :: datatype
  end type

  COMMUNICATOR :: comms(4), comm
  DATATYPE :: types(elements)
  OPERATOR :: op, later
  integer(i8) :: seed, alike, own
  integer(1), target, save :: static_send(static_words), static_recv(static_words)
  integer(1), pointer, contiguous :: send(:), recv(:)
  integer :: world, worlds, rank, ranks, ierr, rounds, round, call_, element, size_, count, root, which_op, out, &
             layout_s, layout_r
  logical :: in_place, here, reduces, same_types, careful, static_memory
  type(side) :: s, r
  character(200) :: word

  call MPI_Init(ierr)
  call get_command_argument(1, word)
  read (word, *) seed
  call get_command_argument(2, word)
  read (word, *) rounds
  same_types = command_argument_count() > 3
  careful = command_argument_count() > 4
  call MPI_Comm_rank(MPI_COMM_WORLD, world, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, worlds, ierr)
  call get_command_argument(3, word)
  write (word, '(a, ".", i0)') trim(word), world
  open (newunit=out, file=trim(word), status='replace', action='write')
  call make_comms()
  call make_types()
  do round = 1, rounds
    call one_call()
  end do
  close (out)
  call free_all()
  call MPI_Finalize(ierr)

contains

  subroutine make_comms()
    comms(1) = MPI_COMM_WORLD
    call MPI_Comm_dup(MPI_COMM_WORLD, comms(2), ierr)
    call MPI_Comm_split(MPI_COMM_WORLD, 0, -world, comms(3), ierr)
    call MPI_Comm_split(MPI_COMM_WORLD, world / 2, world, comms(4), ierr)
  end subroutine

  subroutine make_types()
    types(integer4) = MPI_INTEGER
    types(integer8) = MPI_INTEGER8
    types(real4) = MPI_REAL
    types(real8) = MPI_DOUBLE_PRECISION
    types(complex4) = MPI_COMPLEX
    types(complex8) = MPI_DOUBLE_COMPLEX
    types(logical4) = MPI_LOGICAL
    types(pair4) = MPI_2INTEGER
    types(pair8) = MPI_2DOUBLE_PRECISION
    call MPI_Type_contiguous(1, MPI_INTEGER, types(item), ierr)
    call MPI_Type_commit(types(item), ierr)
    types(letters) = MPI_CHARACTER
    types(octets) = MPI_BYTE
    call MPI_Op_create(latest, .false., later, ierr)
  end subroutine

  subroutine free_all()
    integer :: i

    do i = 2, size(comms)
      call MPI_Comm_free(comms(i), ierr)
    end do
    call MPI_Type_free(types(item), ierr)
    call MPI_Op_free(later, ierr)
  end subroutine

  ! A number from 0 to n - 1: xorshift (Marsaglia, "Xorshift RNGs", 2003).
  integer function draw(state, n)
    integer(i8), intent(inout) :: state
    integer, intent(in) :: n

    state = ieor(state, ishft(state, 13))
    state = ieor(state, ishft(state, -7))
    state = ieor(state, ishft(state, 17))
    draw = int(modulo(ishft(state, -33), int(n, i8)))
  end function

  ! A sequence of its own for each three numbers.
  integer(i8) function began(a, b, c)
    integer, intent(in) :: a, b, c
    integer :: i, unused

    began = seed + 1 + 1000003_i8 * a + 7919_i8 * b + 104729_i8 * 65536_i8 * c
    if (began == 0) began = 1
    do i = 1, 12
      unused = draw(began, 2)
    end do
  end function

  logical function one_of(list)
    integer, intent(in) :: list(:)

    one_of = any(list == call_)
  end function

  logical function is_v()
    is_v = one_of([scatterv, gatherv, allgatherv, alltoallv, alltoallw])
  end function

  ! Elements that go from one rank to another, each counted from 0.
  integer function length(from, to) result(n)
    integer, intent(in) :: from, to
    integer(i8) :: state
    integer :: a, b

    a = from
    b = to
    if (one_of([gatherv, allgatherv])) b = 0
    if (one_of([scatterv, reduce_scatter])) a = 0
    if (in_place .and. a > b .and. one_of([alltoallv, alltoallw])) then
      a = to
      b = from
    end if
    n = count
    if (.not. is_v() .and. call_ /= reduce_scatter) return
    state = began(round, 100 + a, b)
    n = draw(state, 2 * count + 1)
    if (draw(state, 4) == 0) n = 0
    if (modulo(count, unit) == 0) n = n / unit * unit
  end function

  subroutine set_layout(x, which)
    type(side), intent(inout) :: x
    integer, intent(in) :: which
    DATATYPE :: base, inner
    integer(MPI_ADDRESS_KIND) :: places(2), bytes

    base = types(element)
    x%n = 1
    x%extent = 1
    x%offset = 0
    x%derived = .true.
    select case (which)
    case (1)
      call MPI_Type_contiguous(4, base, x%datatype, ierr)
      call set_offsets(x, [0, 1, 2, 3], 4)
    case (2)
      call MPI_Type_vector(3, 2, 3, base, x%datatype, ierr)
      call set_offsets(x, [0, 1, 3, 4, 6, 7], 8)
    case (3)
      call MPI_Type_indexed(3, [1, 1, 1], [4, 0, 2], base, x%datatype, ierr)
      call set_offsets(x, [4, 0, 2], 5)
    case (4)
      call MPI_Type_create_subarray(2, [3, 4], [2, 2], [1, 1], MPI_ORDER_FORTRAN, base, x%datatype, ierr)
      call set_offsets(x, [4, 5, 7, 8], 12)
    case (5)
      places = [integer(MPI_ADDRESS_KIND) :: 3 * size_, 0]
      call MPI_Type_create_struct(2, [2, 1], places, [base, base], inner, ierr)
      places(1) = 0
      bytes = 6 * size_
      call MPI_Type_create_resized(inner, places(1), bytes, x%datatype, ierr)
      call MPI_Type_free(inner, ierr)
      call set_offsets(x, [3, 4, 0], 6)
    case default
      x%datatype = base
      x%derived = .false.
    end select
    if (x%derived) call MPI_Type_commit(x%datatype, ierr)
  end subroutine

  subroutine set_offsets(x, offset, extent)
    type(side), intent(inout) :: x
    integer, intent(in) :: offset(:), extent

    x%n = size(offset)
    x%offset(1:x%n) = offset
    x%extent = extent
  end subroutine

  ! Blocks of these lengths, one after the other or, in v-calls, with gaps and the last one first.
  subroutine open_side(x, lengths, layout)
    type(side), intent(inout) :: x
    integer, intent(in) :: lengths(:), layout
    integer :: b, at

    x%blocks = size(lengths)
    x%count(1:x%blocks) = lengths
    call set_layout(x, layout)
    x%units(1:x%blocks) = lengths / x%n
    at = 0
    do b = 1, x%blocks
      associate (block => merge(x%blocks + 1 - b, b, is_v() .and. modulo(round, 2) == 0))
        x%displs(block) = at
        at = at + x%units(block)
      end associate
      if (is_v()) at = at + modulo(b, 3)
    end do
    x%bytes = at * x%extent * size_
  end subroutine

  ! Where an element of a block, counted from 0, begins, in bytes.
  integer function place(x, b, i)
    type(side), intent(in) :: x
    integer, intent(in) :: b, i

    place = ((x%displs(b) + i / x%n) * x%extent + x%offset(1 + modulo(i, x%n))) * size_
  end function

  ! What is drawn for an element of a reduction, such that no result is rounded.
  subroutine operand(state, bytes)
    integer(i8), intent(inout) :: state
    integer(1), intent(out) :: bytes(:)
    integer :: a, b
    real(8) :: x

    a = draw(state, 201) - 100
    b = draw(state, 100)
    x = a
    if (which_op == 4) x = sign(2.0d0**(modulo(b, 5) - 2), x)
    select case (element)
    case (integer4, item)
      bytes = transfer(a, bytes)
    case (integer8)
      bytes = transfer(int(a, i8), bytes)
    case (real4)
      bytes = transfer(real(x), bytes)
    case (real8)
      bytes = transfer(x, bytes)
    case (complex4)
      bytes = transfer(cmplx(a, b), bytes)
    case (complex8)
      bytes = transfer(cmplx(x, b, 8), bytes)
    case (logical4)
      bytes = transfer(a > 0, bytes)
    case (pair4)
      bytes = transfer([a / 20, b], bytes)
    case (pair8)
      bytes = transfer([dble(a / 20), dble(b)], bytes)
    end select
  end subroutine

  subroutine choose_op()
    which_op = 1 + draw(alike, 4)
    select case (element)
    case (complex4, complex8)
      which_op = 3
    case (logical4)
      which_op = 5 + draw(alike, 3)
    case (pair4, pair8)
      which_op = 8 + draw(alike, 2)
    case (item)
      which_op = 10
    end select
    select case (which_op)
    case (1)
      op = MPI_MAX
    case (2)
      op = MPI_MIN
    case (3)
      op = MPI_SUM
    case (4)
      op = MPI_PROD
    case (5)
      op = MPI_LAND
    case (6)
      op = MPI_LOR
    case (7)
      op = MPI_LXOR
    case (8)
      op = MPI_MAXLOC
    case (9)
      op = MPI_MINLOC
    case default
      op = later
    end select
  end subroutine

  ! A block's elements, as the rank has them that sends it.
  subroutine fill(bytes, x, b, to)
    integer(1), intent(inout) :: bytes(:)
    type(side), intent(in) :: x
    integer, intent(in) :: b, to
    integer(i8) :: state
    integer :: i, k, at

    state = began(round, rank, merge(to, 0, one_of([scatter, scatterv, alltoall, alltoallv, alltoallw])))
    do i = 0, x%count(b) - 1
      at = place(x, b, i)
      if (reduces) then
        call operand(state, bytes(at + 1:at + size_))
      else
        do k = 1, size_
          bytes(at + k) = int(draw(state, 256) - 128, 1)
        end do
      end if
    end do
  end subroutine

  ! True is whatever is not false.
  subroutine settle(bytes, x)
    integer(1), intent(inout) :: bytes(:)
    type(side), intent(in) :: x
    integer :: i, at

    if (element /= logical4 .or. .not. reduces) return
    do i = 0, x%count(1) - 1
      at = place(x, 1, i)
      bytes(at + 1:at + size_) = transfer(merge(1, 0, any(bytes(at + 1:at + size_) /= 0)), bytes)
    end do
  end subroutine

  integer(i8) function digest(bytes)
    integer(1), intent(in) :: bytes(:)
    integer :: i

    digest = 1
    do i = 1, size(bytes)
      digest = ieor(ishftc(digest, 11), int(bytes(i), i8))
    end do
  end function

  subroutine choose()
    integer :: power

    alike = began(round, 0, 7)
    call_ = 1 + draw(alike, calls)
    comm = comms(1 + draw(alike, 4))
    call MPI_Comm_rank(comm, rank, ierr)
    call MPI_Comm_size(comm, ranks, ierr)
    own = began(round, 1 + world, 8)
    reduces = one_of([reduce, allreduce, scan, exscan, reduce_scatter, reduce_scatter_block])
    element = 1 + draw(alike, merge(item, elements, reduces))
    call MPI_Type_size(types(element), size_, ierr)
    power = 2**draw(alike, 21)
    count = (power + draw(alike, power)) / 2 / size_
    if (draw(alike, 2) == 0) count = count / unit * unit
    root = draw(alike, worlds)
    root = modulo(root, ranks)
    in_place = draw(alike, 3) == 0 .and. call_ /= bcast
    if (careful .and. call_ == reduce .and. in_place) root = 0
    ! Its copies overlap there.
    if (careful .and. call_ == reduce_scatter) in_place = .false.
    here = in_place .and. (rank == root .or. .not. one_of([scatter, scatterv, gather, gatherv, reduce]))
    static_memory = draw(own, 3) == 0
    if (reduces) call choose_op()
    layout_s = draw(own, 6)
    layout_r = draw(own, 6)
    ! Open MPI chooses how to do an allgatherv by types and counts of each rank's own, and waits for ever where ranks differ.
    if (same_types .or. call_ == allgatherv) then
      layout_s = draw(alike, 6)
      layout_r = layout_s
    end if
    if (modulo(count, unit) == 0) return
    layout_s = 0
    layout_r = 0
  end subroutine

  subroutine clear(x)
    type(side), intent(inout) :: x

    x%blocks = 0
    x%count = 0
    x%units = 0
    x%displs = 0
    x%bytes = 0
    x%derived = .false.
    x%datatype = types(element)
  end subroutine

  subroutine open_sides()
    integer :: i, to_me(ranks), from_me(ranks)
    logical :: is_root

    is_root = rank == root
    from_me = [(length(rank, i), i=0, ranks - 1)]
    to_me = [(length(i, rank), i=0, ranks - 1)]
    if (call_ == scatterv .and. here) from_me(rank + 1) = 0
    call clear(s)
    call clear(r)
    select case (call_)
    case (bcast)
      call open_side(r, [count], layout_r)
    case (scatter, scatterv)
      if (is_root) call open_side(s, from_me, layout_s)
      if (.not. here) call open_side(r, to_me(root + 1:root + 1), layout_r)
    case (gather, gatherv)
      if (.not. here) call open_side(s, from_me(1:1), layout_s)
      if (is_root) call open_side(r, to_me, layout_r)
    case (allgather, allgatherv)
      if (.not. here) call open_side(s, from_me(1:1), merge(0, layout_s, call_ == allgatherv))
      call open_side(r, to_me, layout_r)
    case (alltoall, alltoallv, alltoallw)
      if (.not. here) call open_side(s, from_me, layout_s)
      call open_side(r, to_me, layout_r)
    case (reduce)
      if (.not. here) call open_side(s, [count], 0)
      if (is_root) call open_side(r, [count], 0)
    case (reduce_scatter, reduce_scatter_block)
      if (.not. here) call open_side(s, [sum(from_me)], 0)
      call open_side(r, [merge(sum(from_me), from_me(rank + 1), here)], 0)
    case (allreduce, scan, exscan)
      if (.not. here) call open_side(s, [count], 0)
      call open_side(r, [count], 0)
    end select
  end subroutine

  subroutine one_call()
    integer :: b, i

    call choose()
    call open_sides()
    call take(send, static_send, s%bytes)
    call take(recv, static_recv, r%bytes)
    do b = 1, s%blocks
      call fill(send, s, b, b - 1)
    end do
    do b = 1, r%blocks
      if (call_ == bcast .and. rank == root) call fill(recv, r, b, 0)
      if (.not. here .or. one_of([scatter, scatterv])) cycle
      if (b == rank + 1 .or. .not. one_of([gather, gatherv, allgather, allgatherv])) call fill(recv, r, b, b - 1)
    end do
    if (reduces) then
      call do_reduction(send, recv)
    else if (is_v()) then
      call do_v(send, recv)
    else
      call do_equal(send, recv)
    end if
    ! Nobody says what is there.
    if (call_ == exscan .and. rank == 0) recv = 0
    if (here .and. one_of([reduce_scatter, reduce_scatter_block])) then
      i = length(0, rank) * size_
      recv(i + 1:r%bytes) = 0
      r%count(1) = length(0, rank)
    end if
    if (reduces .and. r%blocks > 0) call settle(recv, r)
    write (out, '(i0, 1x, a, 2(1x, z16.16))') round, trim(names(call_)), digest(send), digest(recv)
    flush (out) ! how far a rank came, should it hang
    send = -91 ! a peer that still reads it finds this
    recv = 90
    if (.not. static_memory) deallocate (send, recv)
    if (s%derived) call MPI_Type_free(s%datatype, ierr)
    if (r%derived) call MPI_Type_free(r%datatype, ierr)
  end subroutine

  ! Memory for so many bytes and some behind them.
  subroutine take(bytes, static_bytes, n)
    integer(1), pointer, contiguous, intent(out) :: bytes(:)
    integer(1), target, intent(inout) :: static_bytes(:)
    integer, intent(in) :: n
    integer :: i

    if (static_memory .and. max(s%bytes, r%bytes) + guard <= static_words) then
      bytes => static_bytes(1:n + guard)
    else
      static_memory = .false.
      allocate (bytes(n + guard))
    end if
    bytes = [(int(modulo(i * 7, 251) - 125, 1), i=1, n + guard)]
  end subroutine

  subroutine do_equal(send, recv)
    integer(1) :: send(s%bytes + guard), recv(r%bytes + guard)
    integer :: n, m

    n = s%units(1)
    m = r%units(1)
    select case (call_)
    case (bcast)
      call MPI_Bcast(recv, m, r%datatype, root, comm, ierr)
    case (scatter)
      if (here) call MPI_Scatter(send, n, s%datatype, MPI_IN_PLACE, 0, r%datatype, root, comm, ierr)
      if (.not. here) call MPI_Scatter(send, n, s%datatype, recv, m, r%datatype, root, comm, ierr)
    case (gather)
      if (here) call MPI_Gather(MPI_IN_PLACE, 0, s%datatype, recv, m, r%datatype, root, comm, ierr)
      if (.not. here) call MPI_Gather(send, n, s%datatype, recv, m, r%datatype, root, comm, ierr)
    case (allgather)
      if (here) call MPI_Allgather(MPI_IN_PLACE, 0, s%datatype, recv, m, r%datatype, comm, ierr)
      if (.not. here) call MPI_Allgather(send, n, s%datatype, recv, m, r%datatype, comm, ierr)
    case (alltoall)
      if (here) call MPI_Alltoall(MPI_IN_PLACE, 0, s%datatype, recv, m, r%datatype, comm, ierr)
      if (.not. here) call MPI_Alltoall(send, n, s%datatype, recv, m, r%datatype, comm, ierr)
    case default
      call MPI_Barrier(comm, ierr)
    end select
    if (ierr /= MPI_SUCCESS) stop 2
  end subroutine

  subroutine do_v(send, recv)
    integer(1) :: send(s%bytes + guard), recv(r%bytes + guard)
    integer :: n, m

    n = s%units(1)
    m = r%units(1)
    select case (call_)
    case (scatterv)
      if (here) call MPI_Scatterv(send, s%units, s%displs, s%datatype, MPI_IN_PLACE, 0, r%datatype, root, comm, ierr)
      if (.not. here) call MPI_Scatterv(send, s%units, s%displs, s%datatype, recv, m, r%datatype, root, comm, ierr)
    case (gatherv)
      if (here) call MPI_Gatherv(MPI_IN_PLACE, 0, s%datatype, recv, r%units, r%displs, r%datatype, root, comm, ierr)
      if (.not. here) call MPI_Gatherv(send, n, s%datatype, recv, r%units, r%displs, r%datatype, root, comm, ierr)
    case (allgatherv)
      if (here) call MPI_Allgatherv(MPI_IN_PLACE, 0, s%datatype, recv, r%units, r%displs, r%datatype, comm, ierr)
      if (.not. here) call MPI_Allgatherv(send, n, s%datatype, recv, r%units, r%displs, r%datatype, comm, ierr)
    case (alltoallv)
      if (here) call MPI_Alltoallv(MPI_IN_PLACE, s%units, s%displs, s%datatype, recv, r%units, r%displs, r%datatype, comm, ierr)
      if (.not. here) &
        call MPI_Alltoallv(send, s%units, s%displs, s%datatype, recv, r%units, r%displs, r%datatype, comm, ierr)
    case (alltoallw)
      call do_w(send, recv)
    end select
    if (ierr /= MPI_SUCCESS) stop 2
  end subroutine

  ! The same in bytes, with a type for each block.
  subroutine do_w(send, recv)
    integer(1) :: send(s%bytes + guard), recv(r%bytes + guard)
    DATATYPE :: stypes(most), rtypes(most)
    integer :: sdispls(most), rdispls(most)

    stypes = s%datatype
    rtypes = r%datatype
    sdispls = s%displs * s%extent * size_
    rdispls = r%displs * r%extent * size_
    if (here) call MPI_Alltoallw(MPI_IN_PLACE, s%units, sdispls, stypes, recv, r%units, rdispls, rtypes, comm, ierr)
    if (.not. here) call MPI_Alltoallw(send, s%units, sdispls, stypes, recv, r%units, rdispls, rtypes, comm, ierr)
  end subroutine

  subroutine do_reduction(send, recv)
    integer(1) :: send(s%bytes + guard), recv(r%bytes + guard)
    integer :: counts(ranks), i

    counts = [(length(0, i), i=0, ranks - 1)]
    associate (t => types(element))
      select case (call_)
      case (reduce)
        if (here) call MPI_Reduce(MPI_IN_PLACE, recv, count, t, op, root, comm, ierr)
        if (.not. here) call MPI_Reduce(send, recv, count, t, op, root, comm, ierr)
      case (allreduce)
        if (here) call MPI_Allreduce(MPI_IN_PLACE, recv, count, t, op, comm, ierr)
        if (.not. here) call MPI_Allreduce(send, recv, count, t, op, comm, ierr)
      case (scan)
        if (here) call MPI_Scan(MPI_IN_PLACE, recv, count, t, op, comm, ierr)
        if (.not. here) call MPI_Scan(send, recv, count, t, op, comm, ierr)
      case (exscan)
        if (here) call MPI_Exscan(MPI_IN_PLACE, recv, count, t, op, comm, ierr)
        if (.not. here) call MPI_Exscan(send, recv, count, t, op, comm, ierr)
      case (reduce_scatter)
        if (here) call MPI_Reduce_scatter(MPI_IN_PLACE, recv, counts, t, op, comm, ierr)
        if (.not. here) call MPI_Reduce_scatter(send, recv, counts, t, op, comm, ierr)
      case (reduce_scatter_block)
        if (here) call MPI_Reduce_scatter_block(MPI_IN_PLACE, recv, count, t, op, comm, ierr)
        if (.not. here) call MPI_Reduce_scatter_block(send, recv, count, t, op, comm, ierr)
      end select
    end associate
    if (ierr /= MPI_SUCCESS) stop 2
  end subroutine
end program
