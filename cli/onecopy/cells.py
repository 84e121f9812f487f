# SPDX-License-Identifier: BSD-3-Clause
"""Measured times: their CSV, and what is made of them.

A cell is one operation, size, number of ranks and mode. Every round of every variant leaves rows; a cell's time is
the median of its rows, its spread the quartiles. A ratio is that of two medians, larger than 1 when the second
variant is faster. A difference is the median of those between repetitions of the same number.
"""

from __future__ import annotations

import contextlib
import csv
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

SUBJECT = "onecopy"
UNLIKE = 1.2  # times as fast: two speeds of a node's memory are two
BASELINE = "mpi"
#: Point-to-point and one-sided messages. Their means, and those of collectives, are apart; barriers are in neither.
MESSAGES = ("pingpong", "bidirectional", "sendrecv", "exchange", "multipair", "put", "get")


class Cell(NamedTuple):
    collective: str
    bytes: int
    ranks: int
    mode: str


@dataclass(frozen=True)
class Row:
    """One repetition of one operation, as collbench printed it, with the round and the variant it belongs to."""

    round: int
    variant: str
    collective: str
    bytes: int
    ranks: int
    mode: str
    repetition: int
    calls: int
    usec: float
    errors: int
    #: Bytes per second the node copied just before and after, all ranks at once; 0 where it was not measured.
    copy_speed: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.usec < math.inf:
            raise ValueError(f"a call takes no {self.usec} us")

    @property
    def cell(self) -> Cell:
        return Cell(self.collective, self.bytes, self.ranks, self.mode)


@dataclass(frozen=True)
class FigureRow:
    """What a program that cannot be helped printed: a rate."""

    round: int
    variant: str
    program: str
    ranks: int
    value: float
    unit: str


@dataclass(frozen=True)
class Spread:
    median: float
    low: float
    high: float
    count: int


AnyRow = Row | FigureRow
T = TypeVar("T", Row, FigureRow)


class BrokenError(ValueError):
    """A CSV that is none of ours; the text says where."""


def is_subject(variant: str) -> bool:
    """Whether a variant's name is one of ours, with whatever mechanism."""
    return variant.startswith(SUBJECT)


def drawn(rows: Iterable[Row]) -> list[Row]:
    """Those a figure can show: of first use there are two sizes, a table says it better."""
    return [row for row in rows if not row.mode.startswith("first-use")]


def header(kind: type[AnyRow]) -> list[str]:
    return [f.name for f in fields(kind)]


def convert(kind: type[T], values: Mapping[str, str]) -> T:
    """Raises BrokenError."""
    makers = {"int": int, "float": float, "str": str}
    try:
        return kind(**{f.name: makers[str(f.type)](values[f.name]) for f in fields(kind)})
    except (KeyError, ValueError, TypeError) as error:
        raise BrokenError(f"no {kind.__name__}: {dict(values)} ({error})") from error


def read(kind: type[T], path: Path) -> list[T]:
    """The rows of a file; none when there is no such file. BrokenError, OSError."""
    if not path.exists():
        return []
    try:
        with path.open(newline="") as file:
            return [convert(kind, values) for values in csv.DictReader(file)]
    except (csv.Error, UnicodeDecodeError) as error:
        raise BrokenError(f"no CSV ({error})") from error


class Writer:
    """Appends rows to a CSV as they come, so that an interrupted run keeps what it has measured."""

    def __init__(self, kind: type[AnyRow], path: Path) -> None:
        self._file: IO[str] = path.open("w", newline="")
        self._csv = csv.DictWriter(self._file, header(kind), lineterminator="\n")
        self._csv.writeheader()
        self._file.flush()

    def add(self, rows: Iterable[AnyRow]) -> None:
        self._csv.writerows(asdict(row) for row in rows)
        self._file.flush()

    def close(self) -> None:
        """What could not be written was reported when it was added."""
        with contextlib.suppress(OSError):
            self._file.close()


def write(kind: type[AnyRow], path: Path, rows: Iterable[AnyRow]) -> None:
    """All at once. OSError."""
    writer = Writer(kind, path)
    try:
        writer.add(rows)
    finally:
        writer.close()


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles (R's type 7, as numpy's default) of at least one value."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0], 1)
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(middle, low, high, len(values))


def spreads(rows: Iterable[Row]) -> dict[str, dict[Cell, Spread]]:
    """variant -> cell -> spread of its times in us."""
    times: dict[str, dict[Cell, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        times[row.variant][row.cell].append(row.usec)
    return {variant: {cell: spread(values) for cell, values in cells.items()} for variant, cells in times.items()}


def ratio(base: Spread, subject: Spread) -> float:
    return base.median / subject.median


def _halves(speeds: Sequence[float]) -> float:
    """Where speeds fall into slow and fast ones: a bound above the slow; infinity when they are much alike."""
    ordered = sorted(speeds)
    gaps = [(fast / slow, slow) for slow, fast in pairwise(ordered)]
    widest, slow = max(gaps, default=(1.0, math.inf))
    return slow if widest > UNLIKE else math.inf


def like_ratios(rows: Iterable[Row], base: str, subject: str) -> dict[Cell, float]:
    """base / subject, only times compared that were taken while the node copied as fast: a host that moves the
    processors together or apart changes that by the run, and which variant meets what is chance. Of two speeds both
    count alike. No cell that has none in common."""
    found: dict[Cell, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.variant in (base, subject) and row.copy_speed:
            found[row.cell][row.variant].append(row)
    ratios = {}
    for cell, by in found.items():
        bound = _halves([row.copy_speed for mine in by.values() for row in mine])
        each = []
        for fast in (False, True):
            times = [[row.usec for row in by[v] if (row.copy_speed > bound) == fast] for v in (base, subject)]
            if all(times):
                each.append(statistics.median(times[0]) / statistics.median(times[1]))
        if each:
            ratios[cell] = geometric_mean(each)
    return ratios


def round_ratios(rows: Iterable[Row], base: str, subject: str) -> dict[Cell, Spread]:
    """The spread of the ratio from round to round: rounds are compared with themselves, for a host changes speed."""
    times: dict[tuple[Cell, int, str], list[float]] = defaultdict(list)
    for row in rows:
        times[row.cell, row.round, row.variant].append(row.usec)
    ratios: dict[Cell, list[float]] = defaultdict(list)
    for (cell, number, variant), values in times.items():
        if variant == base and (others := times.get((cell, number, subject))):
            ratios[cell].append(statistics.median(values) / statistics.median(others))
    return {cell: spread(values) for cell, values in ratios.items()}


def differences(rows: Iterable[Row], base: str, subject: str) -> dict[Cell, Spread]:
    """The spread of subject - base in us, from repetition to repetition: each is compared with its own moment."""
    times: dict[tuple[Cell, int, int, str], float] = {}
    for row in rows:
        times[row.cell, row.round, row.repetition, row.variant] = row.usec
    found: dict[Cell, list[float]] = defaultdict(list)
    for (cell, number, repetition, variant), usec in times.items():
        if variant == subject and (other := times.get((cell, number, repetition, base))) is not None:
            found[cell].append(usec - other)
    return {cell: spread(values) for cell, values in found.items()}


def kind_of(operation: str) -> str:
    """Of what means are taken: "" if not of this one."""
    if operation == "barrier":
        return ""
    return "messages" if operation in MESSAGES else "collectives"


def geometric_mean(values: Iterable[float]) -> float:
    """NaN of nothing."""
    logs = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def copied_bytes(collective: str, size: int, ranks: int) -> float | None:
    """Bytes that one call copies on the node when it copies each of them once; None where that says nothing.

    A copy reads a byte and writes one. A reduction of n buffers into one reads n and writes 1, so it counts as
    (n + 1) / 2 copies; an allreduce and a scan as n. A rank's own block counts: MPI demands it without MPI_IN_PLACE.
    """
    factors: dict[str, float] = {
        "bcast": ranks - 1,
        "scatter": ranks,
        "gather": ranks,
        "allgather": ranks * ranks,
        "alltoall": ranks * ranks,
        "scatterv": ranks,
        "gatherv": ranks,
        "allgatherv": ranks * ranks,
        "alltoallv": ranks * ranks,
        "alltoallw": ranks * ranks,
        "strided_allgather": ranks * ranks,
        "neighbor_alltoall": 2 * ranks,
        "neighbor_alltoallw": 2 * ranks,
        "reduce": (ranks + 1) / 2,
        "allreduce": ranks,
        "reduce_scatter": (ranks + 1) / 2,
        "reduce_scatter_block": (ranks + 1) / 2,
        "scan": ranks,
        "exscan": ranks - 1,
    }
    return factors[collective] * size if collective in factors else None


def copy_speeds(rows: Iterable[Row]) -> dict[int, Spread]:
    """ranks -> the spread of the node's copy speed over a run, in bytes per second."""
    found: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row.copy_speed:
            found[row.ranks].append(row.copy_speed)
    return {ranks: spread(values) for ranks, values in found.items()}


def memcpy_usec(row: Row) -> float | None:
    """The time memcpy() took at that moment for the bytes of a row, all ranks at once and outside the caches. A
    yardstick, not a bound: what a cache still holds moves faster."""
    needed = copied_bytes(row.collective, row.bytes, row.ranks)
    if not needed or not row.copy_speed:
        return None
    return needed / row.copy_speed * 1e6


def memcpy_times(rows: Iterable[Row]) -> dict[Cell, float]:
    """cell -> memcpy()'s time in us, the median over the rows of all variants."""
    found: dict[Cell, list[float]] = defaultdict(list)
    for row in rows:
        if usec := memcpy_usec(row):
            found[row.cell].append(usec)
    return {cell: statistics.median(values) for cell, values in found.items()}


def memcpy_ratios(rows: Iterable[Row]) -> dict[str, dict[Cell, Spread]]:
    """variant -> cell -> how many times as long as memcpy() a repetition took: each is compared with its own moment."""
    ratios: dict[str, dict[Cell, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if usec := memcpy_usec(row):
            ratios[row.variant][row.cell].append(row.usec / usec)
    return {variant: {cell: spread(values) for cell, values in by.items()} for variant, by in ratios.items()}


def size_text(count: int) -> str:
    """16384 -> 16K"""
    for unit, power in (("M", 20), ("K", 10)):
        if count >= 1 << power and count % (1 << power) == 0:
            return f"{count >> power}{unit}"
    return str(count)
