# SPDX-License-Identifier: BSD-3-Clause
"""`onecopy plot` reads CSV and writes PNGs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from onecopy import cells
from onecopy.cells import Row

Command = Callable[..., subprocess.CompletedProcess[str]]

PNG = b"\x89PNG\r\n\x1a\n"


def fill(directory: Path, ranks: tuple[int, ...] = (2, 4)) -> None:
    times = cells.Writer(Row, directory / "times.csv")
    for number in range(3):
        times.add(
            Row(number, variant, name, size, n, "off-cache", 0, 10, size / 1e4 * factor + number, 0, 2e10)
            for variant, factor in (("mpi", 1.0), ("onecopy", 0.3))
            for name in ("bcast", "reduce")
            for size in (16384, 65536, 1 << 20)
            for n in ranks
        )
    times.close()


def test_pngs_of_a_run(onecopy: Command, tmp_path: Path) -> None:
    fill(tmp_path)
    done = onecopy("plot", tmp_path, "--output", tmp_path / "pictures")
    assert done.returncode == 0, done.stderr
    names = sorted(Path(line).name for line in done.stdout.splitlines())
    assert names == ["speedup-onecopy-mpi-off-cache.png", "times-2-ranks-off-cache.png", "times-4-ranks-off-cache.png"]
    for name in names:
        data = (tmp_path / "pictures" / name).read_bytes()
        assert data.startswith(PNG)


def test_nothing_to_draw(onecopy: Command, tmp_path: Path) -> None:
    done = onecopy("plot", tmp_path)
    assert done.returncode == 1
    assert "holds no times.csv" in done.stderr
    (tmp_path / "times.csv").write_text("a,b\n1,2\n")
    done = onecopy("plot", tmp_path)
    assert done.returncode == 1
    assert "no Row" in done.stderr
