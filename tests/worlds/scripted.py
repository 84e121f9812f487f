# SPDX-License-Identifier: BSD-3-Clause
"""scripted.py SCRIPT OUT: does through mpi4py what a script of tests/mpi/script.py says, line by line, and writes to
OUT.<rank> a digest of what each line received. Lines are those of tests/mpi/driver, and

    object NAME ...     as `call`, with pickled objects instead of buffers

Of `call` the layouts are each rank's own, or, where the script has the line `alike`, the same for all."""

import hashlib
import mmap
import pickle
import random
import sys
import traceback
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI  # type: ignore[import-not-found]

GUARD = 64
UNIT = 12  # what every layout divides
V = ("scatterv", "gatherv", "allgatherv", "alltoallv", "alltoallw")
REDUCTIONS = ("reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan")
ADDRESSED = ("scatter", "scatterv", "alltoall", "alltoallv", "alltoallw")
ROOTED = ("bcast", "scatter", "scatterv", "gather", "gatherv", "reduce")
GATHERED = ("gather", "gatherv", "allgather", "allgatherv")
#: What a call is when it is of objects.
OF_OBJECTS = {"scatterv": "scatter", "gatherv": "gather", "allgatherv": "allgather", "alltoallv": "alltoall"} | {
    "alltoallw": "alltoall",
    "reduce_scatter": "allreduce",
    "reduce_scatter_block": "allreduce",
}

#: Elements of a unit, in the order of the type map.
LAYOUTS = {
    "plain": [0],
    "contiguous": [0, 1, 2, 3],
    "vector": [0, 1, 3, 4, 6, 7],
    "indexed": [4, 0, 2],
    "struct": [3, 4, 0, 6],
    "resized": [0, 1],
}


class Element(NamedTuple):
    dtype: np.dtype[Any]
    type: Any
    #: Whether mpi4py finds that type by itself.
    known: bool = False


@dataclass(frozen=True)
class Call:
    name: str
    root: int
    count: int
    element: str
    operator: str
    in_place: bool
    align: int
    kinds: list[str]
    layouts: list[str]
    crossed: bool
    seed: int


def logical() -> Any:
    """Fortran's, or another of such numbers where the MPI was built without Fortran."""
    try:
        return MPI.LOGICAL if MPI.LOGICAL.Get_size() == 4 else MPI.INT
    except MPI.Exception:
        return MPI.INT


def elements() -> dict[str, Element]:
    simple = {"schar": "b", "short": "h", "int": "i", "long": "l", "uchar": "B", "ushort": "H", "uint": "I"}
    simple |= {"ulong": "L", "float": "f", "double": "d", "ldouble": "g", "cfloat": "F", "cdouble": "D", "bool": "?"}
    types: tuple[Any, ...] = (
        MPI.SIGNED_CHAR,
        MPI.SHORT,
        MPI.INT,
        MPI.LONG,
        MPI.UNSIGNED_CHAR,
        MPI.UNSIGNED_SHORT,
        MPI.UNSIGNED,
    )
    types += (MPI.UNSIGNED_LONG, MPI.FLOAT, MPI.DOUBLE, MPI.LONG_DOUBLE, MPI.C_FLOAT_COMPLEX, MPI.C_DOUBLE_COMPLEX)
    types += (MPI.C_BOOL,)
    found = {
        name: Element(np.dtype(code), type_, True) for (name, code), type_ in zip(simple.items(), types, strict=True)
    }
    pairs = {"int": MPI.TWOINT, "short": MPI.SHORT_INT, "long": MPI.LONG_INT, "float": MPI.FLOAT_INT}
    pairs |= {"double": MPI.DOUBLE_INT, "ldouble": MPI.LONG_DOUBLE_INT}
    for name, type_ in pairs.items():
        both = np.dtype([("value", simple[name]), ("index", "i")], align=True)
        found[f"{name}_int"] = Element(both, type_)
    found["byte"] = Element(np.dtype("B"), MPI.BYTE)
    found["logical"] = Element(np.dtype("i"), logical())
    found["affine"] = Element(np.dtype("L"), MPI.UNSIGNED.Create_contiguous(2).Commit())
    return found


def compose(first: Any, second: Any, _: Any) -> None:
    """x -> ax + b, after another: of 32 bits each."""
    f, g = (np.frombuffer(data, "I").reshape(-1, 2) for data in (first, second))
    a, b = g[:, 0] * f[:, 0], g[:, 0] * f[:, 1] + g[:, 1]
    g[:, 0], g[:, 1] = a, b


def add(first: Any, second: Any, _: Any) -> None:
    np.frombuffer(second, "L")[:] += np.frombuffer(first, "L")


def lower(first: Any, second: Any, _: Any) -> None:
    f, g = (np.frombuffer(data, ELEMENTS["double_int"].dtype) for data in (first, second))
    less = (f["value"] < g["value"]) | ((f["value"] == g["value"]) & (f["index"] < g["index"]))
    for field in ("value", "index"):
        g[field][less] = f[field][less]


ELEMENTS = elements()
OPERATORS = {"max": MPI.MAX, "min": MPI.MIN, "sum": MPI.SUM, "prod": MPI.PROD, "land": MPI.LAND, "lor": MPI.LOR}
OPERATORS |= {"lxor": MPI.LXOR, "band": MPI.BAND, "bor": MPI.BOR, "bxor": MPI.BXOR, "maxloc": MPI.MAXLOC}
OPERATORS |= {"minloc": MPI.MINLOC, "compose": MPI.Op.Create(compose, commute=False)}
OPERATORS |= {"add": MPI.Op.Create(add, commute=True), "lower": MPI.Op.Create(lower, commute=True)}


def drawn(*what: int) -> int:
    """64 bits that look random."""
    return random.Random(" ".join(map(str, what))).getrandbits(64)


def values(call: Call, n: int, source: int, to: int) -> np.ndarray[Any, Any]:
    """@n elements that a rank sends to another, such that no result is rounded."""
    dtype = ELEMENTS[call.element].dtype
    some = np.random.Generator(np.random.PCG64([call.seed, source, to]))
    few = call.operator == "prod" and call.name in REDUCTIONS
    if dtype.names:
        out = np.zeros(n, dtype)
        out["value"] = some.integers(-4, 5, n)
        out["index"] = some.integers(0, 99, n)
        return out
    if call.element in ("bool", "logical"):
        return some.integers(0, 2, n).astype(dtype)
    if dtype.kind in "iu" and call.name in REDUCTIONS and call.operator in ("sum", "prod"):
        # Open MPI's sums of short numbers saturate.
        most = 3 if few else 12
        return some.integers(0 if dtype.kind == "u" else -most, most + 1, n).astype(dtype)
    if dtype.kind in "iu":
        data = np.frombuffer(some.bytes(n * dtype.itemsize), dtype)
        # Open MPI 4 takes MPI_UNSIGNED_LONG for signed in MAX and MIN.
        return data >> 1 if call.element == "ulong" and call.operator in ("max", "min") else data
    if dtype.kind == "c":
        whole = some.integers(-99, 100, n) + 1j * some.integers(-99, 100, n)
        return (np.array([1, -1, 1j, -1j])[some.integers(0, 4, n)] if few else whole).astype(dtype)
    return (np.array([1, -1, 2, 0.5])[some.integers(0, 4, n)] if few else some.integers(-99, 100, n)).astype(dtype)


def settled(call: Call, data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A line of bytes an element, without what nobody says: bytes between, the sign of 0, what stands for true."""
    out = np.zeros(len(data), data.dtype)
    if data.dtype.names:
        for field in data.dtype.names:
            out[field] = data[field]
    elif call.name in REDUCTIONS and call.element in ("bool", "logical"):
        out[:] = data != 0
    elif call.name in REDUCTIONS and data.dtype.kind in "fc":
        out[:] = data + 0
    else:
        out[:] = data
    raw = out.view(np.uint8).reshape(len(data), data.dtype.itemsize)
    if call.element.startswith("ldouble"):
        raw[:, 10:16] = 0
    return raw


def length(call: Call, source: int, to: int) -> int:
    """Elements that go from one rank to another."""
    if call.name not in V and call.name != "reduce_scatter":
        return call.count
    if call.name in ("gatherv", "allgatherv"):
        to = 0
    if call.name in ("scatterv", "reduce_scatter"):
        source = 0
    if call.in_place and call.name in ("alltoallv", "alltoallw"):
        source, to = sorted((source, to))
    bits = drawn(call.seed, source, to)
    count = bits // 4 % (2 * call.count + 1) if bits % 4 else 0
    return count // UNIT * UNIT if call.seed & 1 else count


def memory(kind: str, n: int) -> Any:
    """Bytes that may be written."""
    if kind == "mpi":
        return MPI.Alloc_mem(n)
    if kind in ("private", "shared"):
        return mmap.mmap(-1, n, mmap.MAP_PRIVATE if kind == "private" else mmap.MAP_SHARED)
    if kind == "calloc":
        return np.zeros(n, np.uint8)
    if kind == "static":
        return array("B", bytes(n))
    return bytearray(n) if kind in ("stack", "realloc") else np.empty(n, np.uint8)


class Side:
    """Blocks of elements, laid out in memory as a type says, with some room around them."""

    def __init__(self, call: Call, which: int, rank: int, counts: list[int]) -> None:
        bits = drawn(call.seed, 4 + which, rank)
        alike = drawn(call.seed, 3) if ALIKE else bits
        layout = call.layouts[(alike >> 20) % len(call.layouts)]
        if call.name in REDUCTIONS or (call.name == "allgatherv" and which == 0) or any(n % UNIT for n in counts):
            layout = "plain"
        self.call, self.counts = call, counts
        self.kind = call.kinds[bits % len(call.kinds)]
        self.offsets = np.array(LAYOUTS[layout])
        element = ELEMENTS[call.element]
        self.type = self._type(layout, element.type, element.dtype.itemsize)
        self.extent = self.type.Get_extent()[1] // element.dtype.itemsize
        self.units = [n // len(self.offsets) for n in counts]
        total = self._place(call.name in V and len(counts) > 1)
        size = total * self.extent * element.dtype.itemsize
        self.memory = memory(self.kind, 2 * GUARD + call.align + size)
        raw = np.frombuffer(self.memory, np.uint8)
        raw[:] = np.arange(len(raw)) * 7 + call.seed % 251
        self.begin, self.end = GUARD + (call.align if bits >> 40 & 1 else 0), 0
        self.end = self.begin + size
        #: Whether mpi4py is to find out type and count.
        plain = element.known and layout == "plain" and call.name not in V
        self.bare = plain and self.begin == GUARD and bool(bits >> 41 & 1)

    @staticmethod
    def _type(layout: str, base: Any, size: int) -> Any:
        if layout == "plain":
            return base
        if layout == "contiguous":
            made = base.Create_contiguous(4)
        elif layout == "vector":
            made = base.Create_vector(3, 2, 3)
        elif layout == "indexed":
            made = base.Create_indexed([1, 1, 1], [4, 0, 2])
        elif layout == "struct":
            made = MPI.Datatype.Create_struct([2, 1, 1], [3 * size, 0, 6 * size], [base, base, base])
        else:
            pair = base.Create_contiguous(2)
            made = pair.Create_resized(-size, 4 * size)
            pair.Free()
        return made.Commit()

    def _place(self, scattered: bool) -> int:
        """In some order with gaps, or one after the other. Units needed."""
        order = list(range(len(self.counts)))
        if scattered:
            random.Random(self.call.seed).shuffle(order)
        self.displs, at = [0] * len(order), 0
        for block in order:
            at += drawn(self.call.seed, 2, block) % 9 if scattered else 0
            self.displs[block] = at
            at += self.units[block]
        return at

    def data(self) -> Any:
        raw = np.frombuffer(self.memory, np.uint8)[self.begin : self.end]
        return raw.view(ELEMENTS[self.call.element].dtype)

    def places(self, block: int) -> Any:
        i = np.arange(self.counts[block])
        return (self.displs[block] + i // len(self.offsets)) * self.extent + self.offsets[i % len(self.offsets)]

    def fill(self, block: int, source: int, to: int) -> None:
        self.data()[self.places(block)] = values(self.call, self.counts[block], source, to)

    def protect(self) -> None:
        """Of what is sent, some cannot be written."""
        if self.kind == "readonly":
            self.memory = bytes(self.memory)

    def equal(self) -> Any:
        """As a call of equal blocks has it."""
        if self.bare:
            return self.data()
        count = self.call.count if self.call.name == "reduce_scatter_block" else self.units[0]
        return [np.frombuffer(self.memory, np.uint8)[self.begin :], count, self.type]

    def each(self, in_bytes: bool = False) -> Any:
        """As a call has it that says count and place of each block."""
        size = self.extent * ELEMENTS[self.call.element].dtype.itemsize if in_bytes else 1
        types = [self.type] * len(self.counts) if in_bytes else self.type
        at = np.frombuffer(self.memory, np.uint8)[self.begin :]
        return [at, (self.units, [displ * size for displ in self.displs]), types]

    def digest(self, known: int) -> bytes:
        """Of all there is, but for what follows the first @known elements of a reduction."""
        element = ELEMENTS[self.call.element].dtype
        raw = np.frombuffer(bytearray(self.memory), np.uint8)
        rows = raw[self.begin : self.end].reshape(-1, element.itemsize)
        for block in range(len(self.counts)):
            places = self.places(block)
            rows[places] = settled(self.call, self.data()[places])
        if self.call.name in REDUCTIONS:
            rows[known:] = 0
        return hashlib.blake2b(raw.tobytes(), digest_size=16).digest()

    def close(self) -> None:
        """A peer that still reads it finds this."""
        if not isinstance(self.memory, bytes):
            np.frombuffer(self.memory, np.uint8)[:] = 0xA5
        if self.kind == "mpi":
            MPI.Free_mem(self.memory)
        if not self.type.is_predefined and self.type != ELEMENTS["affine"].type:
            self.type.Free()


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
