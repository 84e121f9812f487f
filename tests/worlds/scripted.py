# SPDX-License-Identifier: BSD-3-Clause
"""scripted.py SCRIPT OUT: does through mpi4py what a script of tests/mpi/script.py says, line by line, and writes to
OUT.<rank> a digest of what each line received. Lines are those of tests/mpi/driver, and

    object NAME ...     as `call`, with pickled objects instead of buffers

Of `call` the layouts are each rank's own, or, where the script has the line `alike`, the same for all. PYTHONPATH has
the directory tests."""

import hashlib
import pickle
import random
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI  # type: ignore[import-not-found]
from worlds.blocks import (
    ELEMENTS,
    GATHERED,
    OPERATORS,
    REDUCTIONS,
    ROOTED,
    Call,
    Side,
    V,
    drawn,
    length,
    settled,
    values,
)

ADDRESSED = ("scatter", "scatterv", "alltoall", "alltoallv", "alltoallw")
#: What a call is when it is of objects.
OF_OBJECTS = {"scatterv": "scatter", "gatherv": "gather", "allgatherv": "allgather", "alltoallv": "alltoall"} | {
    "alltoallw": "alltoall",
    "reduce_scatter": "allreduce",
    "reduce_scatter_block": "allreduce",
}


def shape(call: Call, rank: int, size: int) -> tuple[bool, list[int] | None, list[int] | None]:
    """Whether it is in place here, and the blocks that are sent and received, if any."""
    root = rank == call.root
    here = call.in_place and call.name != "bcast" and (call.name not in ROOTED or root)
    scatters = call.name in ("scatter", "scatterv")
    to_all = call.name.startswith("alltoall")
    from_all = to_all or call.name in GATHERED
    send = [length(call, rank, to) for to in range(size if scatters or to_all else 1)]
    recv = [length(call, source, rank) for source in (range(size) if from_all else [call.root])]
    if call.name in ("reduce_scatter", "reduce_scatter_block"):
        send = [sum(length(call, 0, to) for to in range(size))]
        recv = send if here else [length(call, 0, rank)]
    if call.name == "scatterv" and here:
        send[rank] = 0
    sends = root if scatters or call.name == "bcast" else not here
    receives = call.name not in ROOTED or (not root if call.name == "bcast" else scatters or root)
    if scatters and here:
        receives = False
    return here, send if sends else None, recv if receives else None


def exchange(call: Call, comm: Any, here: bool, send: Side | None, recv: Side | None) -> None:
    v, w = call.name in V, call.name == "alltoallw"
    gives = send and (send.each(w) if v and len(send.counts) > 1 else send.equal())
    gets = recv and (recv.each(w) if v and len(recv.counts) > 1 else recv.equal())
    if v and comm.size == 1:  # one block for each of one
        many = call.name.startswith("alltoall")
        gives = send and (send.each(w) if many or call.name == "scatterv" else send.equal())
        gets = recv and (recv.each(w) if many or call.name in GATHERED else recv.equal())
    if here and call.name in ("scatter", "scatterv"):
        gets = MPI.IN_PLACE
    elif here:
        gives = MPI.IN_PLACE
    method = getattr(comm, call.name.capitalize())
    if call.name == "bcast":
        method(gets if gives is None else gives, call.root)
    elif call.name == "reduce_scatter":
        method(gives, gets, [length(call, 0, to) for to in range(comm.size)], OPERATORS[call.operator])
    elif call.name in REDUCTIONS:
        root = (call.root,) if call.name == "reduce" else ()
        method(gives, gets, OPERATORS[call.operator], *root)
    elif call.name in ROOTED:
        method(gives, gets, call.root)
    else:
        method(gives, gets)


def cross(call: Call, comm: Any) -> Any:
    """Even ranks have a large message to the next under way, which the odd ones receive before they come to the
    call."""
    peer = comm.rank ^ 1
    if not call.crossed or peer >= comm.size:
        return None
    data = np.full(1 << 18, comm.rank, "i")
    if comm.rank % 2 == 0:
        return comm.Isend(data, peer, 7)
    comm.Recv(data, peer, 7)
    assert (data == peer).all(), "message beside a call"
    return None


def with_buffers(call: Call, comm: Any) -> bytes:
    if call.name == "barrier":
        comm.Barrier()
        return b""
    here, sent, received = shape(call, comm.rank, comm.size)
    send = Side(call, 0, comm.rank, sent) if sent is not None else None
    recv = Side(call, 1, comm.rank, received) if received is not None else None
    for block in range(len(sent) if send and sent is not None else 0):
        assert send
        send.fill(block, comm.rank, block if call.name in ADDRESSED else 0)
    if here and recv:
        for block in range(len(recv.counts)):
            if call.name not in GATHERED or block == comm.rank:
                recv.fill(block, comm.rank, block if call.name in ADDRESSED else 0)
    if send:
        send.protect()
    request = cross(call, comm)
    exchange(call, comm, here, send, recv)
    told = send.digest(sum(send.counts)) if send else b""
    if send:
        send.close()
    if recv:
        slices = call.name in ("reduce_scatter", "reduce_scatter_block")
        known = length(call, 0, comm.rank) if slices else recv.counts[0]
        told += recv.digest(0 if call.name == "exscan" and comm.rank == 0 else known)
        recv.close()
    if request:
        request.Wait()
    return told


def thing(call: Call, source: int, to: int) -> Any:
    """Some object of about so many elements."""
    bits = drawn(call.seed, source, to, 5)
    known = settled(call, values(call, length(call, source, to), source, to))
    data = np.frombuffer(known.tobytes(), ELEMENTS[call.element].dtype)
    if call.name in REDUCTIONS:
        return [source, bits % 1000]
    return (data, data.tobytes(), {"from": source, "all": [known[::2], str(bits)]}, None)[bits % 4]


def with_objects(call: Call, comm: Any) -> bytes:
    name = OF_OBJECTS.get(call.name, call.name)
    rank, ranks, root = comm.rank, range(comm.size), comm.rank == call.root
    rooted = (call.root,) if name in ROOTED else ()
    if name == "barrier":
        comm.barrier()
        return b""
    give: Any = thing(call, rank, 0)
    if name in ("scatter", "alltoall"):
        give = [thing(call, rank, to) for to in ranks]
    if name in ("bcast", "scatter") and not root:
        give = None
    got = getattr(comm, name)(give, MPI.SUM, *rooted) if call.name in REDUCTIONS else getattr(comm, name)(give, *rooted)
    return hashlib.blake2b(pickle.dumps(got, 4), digest_size=16).digest()


def communicators() -> list[Any]:
    world = MPI.COMM_WORLD
    rank, size = world.rank, world.size
    return [
        world,
        world.Dup(),
        world.Split(rank % 2, rank),
        world.Split(0, -rank),
        world.Split(MPI.UNDEFINED if rank == size - 1 else 0, rank),
        world.Split(rank // 2, rank),
        world.Split(int(rank > 0), -rank),
    ]


class Pending:
    """A broadcast that is under way."""

    def __init__(self, comm: Any, root: int, n: int, seed: int) -> None:
        self.data = np.zeros(n, np.uint8)
        if comm.rank == root % comm.size:
            self.data[:] = np.frombuffer(random.Random(seed).randbytes(n), np.uint8)
        self.request = comm.Ibcast([self.data, n, MPI.BYTE], root % comm.size)

    def finish(self) -> bytes:
        self.request.Wait()
        return hashlib.blake2b(self.data.tobytes(), digest_size=16).digest()


def use(comm: Any) -> bytes:
    data = np.arange(4099) * (comm.rank + 1)
    comm.Bcast(data, comm.size - 1)
    return comm.allreduce(data, MPI.SUM).tobytes()[:64]  # type: ignore[no-any-return]


def churn(n: int) -> bytes:
    told = b""
    for i in range(n):
        comm = MPI.COMM_WORLD.Split((MPI.COMM_WORLD.rank + i) % 3 // 2) if i % 3 else MPI.COMM_WORLD.Dup()
        told += use(comm)
        comm.Free()
    return told


def read(fields: list[str], size: int) -> Call:
    name, _, root, count, element, operator, in_place, align, kinds, layouts, crossed, seed = fields
    return Call(
        name,
        int(root) % size,
        int(count),
        element,
        operator,
        in_place == "1",
        int(align),
        kinds.split(","),
        layouts.split(","),
        crossed == "1",
        int(seed),
        ALIKE,
    )


def do(line: str, comms: list[Any], pending: list[Pending]) -> bytes:
    """One line; what is to be told of it."""
    what, *fields = line.split()
    comm = comms[int(fields[what != "ibcast"])] if what in ("call", "object", "ibcast") else None
    if what in ("wait", "ibcast"):
        told = b"".join(one.finish() for one in pending)
        pending.clear()
        if comm:
            pending.append(Pending(comm, *map(int, fields[1:])))
        return told
    if what == "churn":
        return churn(int(fields[0]))
    if what == "leak":
        return use(MPI.COMM_WORLD.Dup())
    if not comm:
        return b""
    call = read(fields, comm.size)
    return with_buffers(call, comm) if what == "call" else with_objects(call, comm)


def main() -> None:
    comms, pending = communicators(), list[Pending]()
    with Path(f"{sys.argv[2]}.{MPI.COMM_WORLD.rank}").open("w", encoding="utf-8", buffering=1) as out:
        for number, line in enumerate(SCRIPT, 1):
            print(number, do(line, comms, pending).hex(), file=out)
    do("wait", comms, pending)


SCRIPT = Path(sys.argv[1]).read_text().splitlines()
ALIKE = "alike" in SCRIPT
try:
    main()
except BaseException:
    traceback.print_exc()
    MPI.COMM_WORLD.Abort(2)
