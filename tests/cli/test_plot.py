# SPDX-License-Identifier: BSD-3-Clause
"""`onecopy plot` reads CSV and writes PNGs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from onecopy import cells, peers, plot
from onecopy.cells import FigureRow, Row

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


def words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text))


def test_figures_name_their_origin(tmp_path: Path) -> None:
    fill(tmp_path)
    rows = cells.read(Row, tmp_path / "times.csv")
    facts = {
        "variants": {"mpi": "mpirun (Open MPI) 4.1.4", "onecopy": "mpirun (Open MPI) 4.1.4"},
        "date": "2026-11-22T12:09:50+00:00",
        "cpu": "AMD EPYC",
        "cpus": 2,
        "other_work": 1.5,
    }
    said = plot.caption(facts, rows)
    for figure in (
        plot.speedups(rows, "mpi", "onecopy", "off-cache", said),
        plot.times(rows, 2, "off-cache", ["mpi", "onecopy"], said),
    ):
        assert figure is not None
        text = words(figure)
        for wanted in ("Open MPI 4.1.4", "2 cores of AMD EPYC", "2026-11-22", "3 rounds", "busy machine: 1.5 of 2"):
            assert wanted in text
        assert "mpi\n" not in text
    bare = plot.caption({}, rows)
    assert (bare.origin, bare.care, bare.name("mpi")) == ("machine unknown · 3 rounds", "", "mpi")
    assert plot.speedups(rows, "mpi", "onecopy", "off-cache", bare)


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("mpirun (Open MPI) 4.1.4", "Open MPI 4.1.4"),
        ("mpirun (Open MPI) 5.0.11", "Open MPI 5.0.11"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.14 Build 2024", "Intel MPI 2021.14"),
        ("MPICH 5.0.1", "MPICH 5.0.1"),
        ("", ""),
    ],
)
def test_names_of_mpis(said: str, title: str) -> None:
    assert peers.title(said) == title


def test_nothing_to_draw(onecopy: Command, tmp_path: Path) -> None:
    done = onecopy("plot", tmp_path)
    assert done.returncode == 1
    assert "holds no times.csv" in done.stderr
    cells.write(Row, tmp_path / "times.csv", [])
    done = onecopy("plot", tmp_path)
    assert done.returncode == 1
    assert f"no measurements in {tmp_path}" in done.stderr
    cells.write(FigureRow, tmp_path / "figures.csv", [FigureRow(0, "mpi", "stream", 2, 1.0, "MB/s")])
    assert "rates of programs alone" in onecopy("plot", tmp_path).stderr
    cells.write(Row, tmp_path / "times.csv", [Row(0, "mpi", "bcast", 4, 2, "first-use-free", 0, 1, 1.0, 0)])
    assert "first use alone" in onecopy("plot", tmp_path).stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a,b\n1,2\n", "no Row"),
        (b"\xff\xfe\x00", "no CSV"),
        (
            ",".join(cells.header(Row)).encode() + b"\n0,mpi,bcast,64,2,off-cache,0,1,0.0,0,0\n",
            "a call takes no 0.0 us",
        ),
    ],
)
def test_a_csv_that_is_none_of_ours(onecopy: Command, tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "times.csv").write_bytes(content)
    done = onecopy("plot", tmp_path)
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_nowhere_to_write(onecopy: Command, tmp_path: Path) -> None:
    fill(tmp_path)
    for output in ("/proc/none", tmp_path / "times.csv", "/dev/full/x"):
        done = onecopy("plot", tmp_path, "--output", output)
        assert done.returncode == 1
        assert done.stderr.startswith(f"onecopy: {output}")
        assert len(done.stderr.splitlines()) == 1
