# SPDX-License-Identifier: BSD-3-Clause
"""Random scripts for the driver: lists of collective calls, and what goes on around them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st

INTEGERS = ("schar", "short", "int", "long", "uchar", "ushort", "uint", "ulong")
REALS = ("float", "double", "ldouble")
PAIRS = ("int_int", "short_int", "long_int", "float_int", "double_int", "ldouble_int")
SIZES = {
    **dict.fromkeys(("schar", "uchar", "bool", "byte"), 1),
    **dict.fromkeys(("short", "ushort"), 2),
    **dict.fromkeys(("int", "uint", "float", "logical"), 4),
    **dict.fromkeys(("long", "ulong", "double", "cfloat", "affine", "int_int", "short_int", "float_int"), 8),
    **dict.fromkeys(("ldouble", "cdouble", "long_int", "double_int"), 16),
    "ldouble_int": 32,
}

ARITHMETIC = ("max", "min", "sum", "prod")
LOGICAL = ("land", "lor", "lxor")
BITWISE = ("band", "bor", "bxor")
OPERATORS = {
    **dict.fromkeys(INTEGERS, (*ARITHMETIC, *LOGICAL, *BITWISE)),
    **dict.fromkeys(REALS, ARITHMETIC),
    **dict.fromkeys(("cfloat", "cdouble"), ("sum", "prod")),
    "bool": LOGICAL,
    "logical": LOGICAL,
    "byte": BITWISE,
    **dict.fromkeys(PAIRS, ("maxloc", "minloc")),
    # Users' own, by the function `op_create` got.
    "affine": ("compose",),
    "ulong": (*ARITHMETIC, *LOGICAL, *BITWISE, "add"),
    "double_int": ("maxloc", "minloc", "lower"),
}

MOVES = ["bcast", "scatter", "scatterv", "gather", "gatherv", "allgather", "allgatherv"]
MOVES += ["alltoall", "alltoallv", "alltoallw"]
REDUCTIONS = ["reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"]
KINDS = ["heap", "calloc", "realloc", "stack", "static", "private", "shared", "mpi", "readonly", "writeonly"]
LAYOUTS = ["plain", "contiguous", "vector", "indexed", "struct", "resized"]
COMMS = 7

# Bytes of a block: around what decides (cache lines, the smallest call served, chunks of staging, CMA's smallest),
# and now and then one that is huge for its kind. With eight ranks an alltoall has 64 such blocks.
EDGES = (0, 1, 64, 4096, 8 << 10, 64 << 10, 128 << 10)
HUGE = 6 << 20
LIMIT = 256 << 10


@dataclass(frozen=True)
class Script:
    ranks: int
    lines: tuple[str, ...]

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def seeds() -> st.SearchStrategy[int]:
    return st.integers(0, 2**32 - 1)


@st.composite
def lengths(draw: st.DrawFn) -> int:
    """Bytes, evenly spread over orders of magnitude."""
    edges = [*EDGES, LIMIT]
    low, high = draw(st.sampled_from(list(pairwise(edges))))
    return draw(st.one_of(st.just(low), st.integers(low, high), st.integers(max(low - 9, 0), low + 9)))


@st.composite
def calls(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from([*MOVES, *REDUCTIONS, "barrier"]))
    element = draw(st.sampled_from(sorted(OPERATORS)))
    operator = draw(st.sampled_from(OPERATORS[element]))
    count = draw(lengths()) // SIZES[element]
    if name in ("bcast", "reduce", "allreduce") and draw(st.integers(0, 15)) == 0:
        count = HUGE // SIZES[element] + draw(st.integers(-3, 3))
    if draw(st.booleans()):
        count -= count % 12  # every layout fits
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True))
    # Open MPI chooses the algorithm of an allgatherv by the send type's size times the receive counts: ranks with
    # different types of one signature choose differently, and wait for ever.
    most = 1 if name == "allgatherv" else 3
    layouts = draw(st.lists(st.sampled_from(LAYOUTS), min_size=1, max_size=most, unique=True))
    fields = (
        name,
        draw(st.integers(0, COMMS - 1)),
        draw(st.integers(0, 7)),
        count,
        element,
        operator,
        int(draw(st.booleans())),
        draw(st.sampled_from([0, 0, 1, 3, 8, 17])),
        ",".join(kinds),
        ",".join(layouts),
        int(draw(st.integers(0, 5)) == 0),
        draw(seeds()),
    )
    return "call " + " ".join(map(str, fields))


@st.composite
def outstanding(draw: st.DrawFn) -> str:
    comm, root = draw(st.integers(0, COMMS - 1)), draw(st.integers(0, 7))
    return f"ibcast {comm} {root} {draw(lengths())} {draw(seeds())}"


@st.composite
def one_line(draw: st.DrawFn) -> str:
    dice = draw(st.integers(0, 15))
    if dice == 0:
        return draw(outstanding())
    return "wait" if dice == 1 else draw(calls())


@st.composite
def scripts(draw: st.DrawFn, max_lines: int = 100, max_ranks: int = 8) -> Script:
    lines = [draw(one_line()) for _ in range(draw(st.integers(max_lines // 2, max_lines)))]
    level = draw(st.sampled_from(["single", "single", "multiple"]))
    if level == "multiple":
        lines.append(f"threads {draw(st.integers(2, 4))} {draw(st.integers(1, 5))}")
    if draw(st.booleans()):
        lines.append(f"churn {draw(st.integers(1, 12))}")
    if draw(st.booleans()):
        lines.append("leak")
    return Script(draw(st.integers(2, max_ranks)), (f"init {level}", *lines))
