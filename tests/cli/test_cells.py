# SPDX-License-Identifier: BSD-3-Clause
"""Rows, their CSV, statistics, tables and plots, without any measurement."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onecopy import bench, cells, tables
from onecopy.cells import Cell, Row
from rich.console import Console

positive = st.floats(min_value=1e-3, max_value=1e9)
rows = st.builds(
    Row,
    round=st.integers(0, 9),
    variant=st.sampled_from(["mpi", "openmpi5", "onecopy"]),
    collective=st.sampled_from(["bcast", "allreduce", "barrier"]),
    bytes=st.sampled_from([0, 8, 16384, 4 << 20]),
    ranks=st.sampled_from([2, 4]),
    mode=st.sampled_from(["off-cache", "warm"]),
    repetition=st.integers(0, 3),
    calls=st.integers(1, 1000),
    usec=positive,
    errors=st.just(0),
    copy_speed=st.sampled_from([0.0, 1e10]),
)


@given(st.lists(rows))
def test_csv_round_trip(tmp_path_factory: pytest.TempPathFactory, written: list[Row]) -> None:
    path = tmp_path_factory.mktemp("csv") / "times.csv"
    out = cells.Writer(Row, path)
    out.add(written)
    out.close()
    assert cells.read(Row, path) == written


def test_a_foreign_csv_is_told(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("round,variant\n1,mpi\n")
    with pytest.raises(cells.BrokenError, match="no Row"):
        cells.read(Row, path)
    assert cells.read(Row, tmp_path / "none.csv") == []


@given(st.lists(positive, min_size=1))
def test_quartiles_enclose_the_median(values: list[float]) -> None:
    one = cells.spread(values)
    assert min(values) <= one.low <= one.median <= one.high <= max(values)
    assert one.count == len(values)


def test_spread_of_known_values() -> None:
    assert cells.spread([1, 2, 3, 4, 5]) == cells.Spread(3, 2, 4, 5)
    assert cells.spread([7]) == cells.Spread(7, 7, 7, 1)


def test_ratios_and_means() -> None:
    made = [
        Row(number, variant, "bcast", 65536, 2, "off-cache", 0, 10, usec, 0)
        for number, (slow, fast) in enumerate([(10, 5), (40, 10), (30, 10)])
        for variant, usec in (("mpi", slow), ("onecopy", fast))
    ]
    cell = Cell("bcast", 65536, 2, "off-cache")
    found = cells.spreads(made)
    assert cells.ratio(found["mpi"][cell], found["onecopy"][cell]) == 3  # 30 / 10
    assert cells.round_ratios(made, "mpi", "onecopy")[cell].median == 3  # of 2, 4, 3
    assert cells.geometric_mean([1, 4]) == pytest.approx(2)
    assert math.isnan(cells.geometric_mean([]))


def test_like_is_compared_with_like() -> None:
    """Of a node that copied at two speeds, one of which one variant met more often; and of a cell that has none in
    common, nothing."""

    def row(variant: str, usec: float, speed: float, size: int = 64) -> Row:
        return Row(0, variant, "bcast", size, 2, "off-cache", 0, 1, usec, 0, speed)

    made = [row("mpi", 30, 30e9), row("mpi", 32, 31e9), row("mpi", 20, 57e9), row("mpi", 8, 30e9, 128)]
    made += [row("onecopy", 15.5, 29e9), row("onecopy", 5, 55e9), row("onecopy", 5, 60e9), row("onecopy", 4, 58e9, 128)]
    assert cells.like_ratios(made, "mpi", "onecopy") == {Cell("bcast", 64, 2, "off-cache"): pytest.approx(8**0.5)}
    alike = [row("mpi", 30, 50e9), row("onecopy", 10, 55e9)]
    assert list(cells.like_ratios(alike, "mpi", "onecopy").values()) == [pytest.approx(3)]
    assert not cells.like_ratios([row("mpi", 30, 0), row("onecopy", 10, 0)], "mpi", "onecopy")


def test_differences_are_those_of_one_moment() -> None:
    # The host is three times as fast in the second half: each call costs 10 more, whatever the medians say.
    made = [
        Row(0, variant, "bcast", 8, 2, "same-process", repetition, 10, usec, 0)
        for repetition, usec in enumerate([300, 310, 100, 105])
        for variant, usec in (("mpi", usec), ("onecopy", usec + 10))
    ]
    made.append(Row(1, "onecopy", "bcast", 8, 2, "same-process", 0, 10, 999, 0))  # with nothing beside it
    found = cells.differences(made, "mpi", "onecopy")
    assert found == {Cell("bcast", 8, 2, "same-process"): cells.Spread(10, 10, 10, 4)}


def test_time_of_memcpy() -> None:
    mib = 1 << 20
    for name, copies in {"bcast": 3, "gather": 4, "alltoall": 16, "reduce": 2.5, "allreduce": 4}.items():
        row = Row(0, "mpi", name, mib, 4, "off-cache", 0, 10, 1.0, 0, 3e9)
        assert cells.memcpy_usec(row) == pytest.approx(copies * mib / 3e9 * 1e6)
    assert cells.memcpy_usec(Row(0, "mpi", "barrier", 0, 2, "off-cache", 0, 10, 1.0, 0, 3e9)) is None
    assert cells.memcpy_usec(Row(0, "mpi", "bcast", mib, 1, "off-cache", 0, 10, 1.0, 0, 3e9)) is None
    assert cells.memcpy_usec(Row(0, "mpi", "bcast", mib, 2, "warm", 0, 10, 1.0, 0)) is None


def test_a_repetition_is_compared_with_memcpy_of_its_moment() -> None:
    """A host that halves its speed halves that of memcpy with it: the ratio stays."""
    made = [
        Row(n, "onecopy", "bcast", 10**6, 2, "off-cache", 0, 1, 150e6 / (v / 1e4), 0, v)
        for n, v in ((0, 1e10), (1, 5e9), (2, 4e9))
    ]
    cell = Cell("bcast", 10**6, 2, "off-cache")
    found = cells.memcpy_ratios(made)["onecopy"][cell]
    assert (found.low, found.median, found.high) == pytest.approx((1.5, 1.5, 1.5))
    assert cells.memcpy_times(made)[cell] == pytest.approx(200)
    assert cells.copy_speeds(made)[2].median == 5e9


def test_a_line_cut_off_by_a_killed_program_is_left_out() -> None:
    text = (
        "collective,bytes,ranks,mode,repetition,calls,usec,errors\n"
        "bcast,16384,2,off-cache,0,100,3.5,0\n"
        "bcast,65536,2,off-ca"
    )
    assert bench.parse_rows(text, 3, "mpi") == [Row(3, "mpi", "bcast", 16384, 2, "off-cache", 0, 100, 3.5, 0)]
    assert bench.parse_rows("", 0, "mpi") == []


@given(st.lists(rows, min_size=1, max_size=30))
def test_tables_of_anything(tmp_path_factory: pytest.TempPathFactory, made: list[Row]) -> None:
    """Missing cells, variants and limits leave gaps, never an error."""
    out = Console(record=True, width=200, file=Path("/dev/null").open("w"))  # noqa: SIM115
    for table in tables.times(made):
        out.print(table)
    tables.write_summary(made, tmp_path_factory.mktemp("summary") / "summary.csv")
    tables.summary(made)
    out.file.close()


def test_size_text() -> None:
    assert [cells.size_text(n) for n in (8, 1024, 16384, 1 << 20, 1536)] == ["8", "1K", "16K", "1M", "1536"]
