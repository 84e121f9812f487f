# SPDX-License-Identifier: BSD-3-Clause
"""examples/wave: the same field to the last bit, however many ranks there are, with onecopy and without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from runner import Runner


@pytest.fixture(scope="module")
def program(compiled: Callable[..., Path]) -> Path:
    return compiled("wave", "-lm")


# Of the second and the third no number of ranks but one divides the planes; the last has faces of 1 MB.
@pytest.mark.parametrize("grid", ["3x3x3", "5x17x9", "7x41x130", "6x320x400"])
def test_same_field(values: Callable[..., dict[str, str]], program: Path, grid: str) -> None:
    runs = [
        values(ranks, program, "-g", grid, "-s", "40", preload=preload)
        for ranks in (1, 2, 3)
        for preload in (False, True)
    ]
    _, rows, columns = map(int, grid.split("x"))
    assert [run["ranks"] for run in runs] == ["1", "1", "2", "2", "3", "3"]
    assert {(run["points"], run["steps"], run["halo_bytes"]) for run in runs} == {(grid, "40", str(8 * rows * columns))}
    assert len({run["checksum"] for run in runs}) == 1
    assert all(float(run["error"]) < 1e-12 for run in runs)


def test_another_field_after_another_step(values: Callable[..., dict[str, str]], program: Path) -> None:
    checksums = {values(2, program, "-g", "5x17x9", "-s", n, preload=True)["checksum"] for n in ("1", "2", "3")}
    assert len(checksums) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["8x8x8"], "usage: "),
        (["-x"], "usage: "),
        (["-g"], "usage: "),
        (["-g", "8x8"], "usage: "),
        (["-g", "8x8x8x8"], "usage: "),
        (["-g", "8x8x8000000"], "usage: "),
        (["-g", "1x8x8"], "fewer planes than ranks"),
        (["-g", "-8x8x8"], "fewer planes than ranks"),
        (["-g", "8x2x8"], "a plane needs 3 rows and 3 columns: a point inside its rim"),
        (["-g", "8x8x-8"], "a plane needs 3 rows and 3 columns: a point inside its rim"),
        (["-g", "8x99999x99999"], "a plane is too large for one message"),
        (["-s", "many"], "usage: "),
        (["-s", "0"], "fewer steps than one"),
    ],
)
def test_refused(runner: Runner, program: Path, options: list[str], message: str) -> None:
    done = runner.mpirun(2, program, *options, check=False)
    assert done.returncode != 0
    assert done.stderr.count(f"wave: {message}") == 1, done.stderr
    assert "total_s" not in done.stdout
