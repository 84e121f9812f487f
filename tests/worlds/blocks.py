# SPDX-License-Identifier: BSD-3-Clause
"""What a call of scripted.py sends and receives: blocks of elements, laid out in memory as a type of MPI says."""

import hashlib
import mmap
import random
from array import array
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI  # type: ignore[import-not-found]

GUARD = 64
UNIT = 12  # what every layout divides
V = ("scatterv", "gatherv", "allgatherv", "alltoallv", "alltoallw")
REDUCTIONS = ("reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan")
ROOTED = ("bcast", "scatter", "scatterv", "gather", "gatherv", "reduce")
GATHERED = ("gather", "gatherv", "allgather", "allgatherv")
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
    #: Whether all ranks have the same layout.
    alike: bool


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
        alike = drawn(call.seed, 3) if call.alike else bits
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
