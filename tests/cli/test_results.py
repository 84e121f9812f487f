# SPDX-License-Identifier: BSD-3-Clause
"""Where `onecopy bench` writes to, and what it says when it cannot."""

from __future__ import annotations

import argparse
import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from onecopy import bench, cells, peers, programs, results
from onecopy.cells import AnyRow, FigureRow, Row
from onecopy.schedule import Task

Command = Callable[..., subprocess.CompletedProcess[str]]

ROW = Row(0, "mpi", "bcast", 64, 2, "warm", 0, 1, 1.0, 0)
SHORT = ("bench", "--what=small", "--collectives=bcast,gather", "--ranks=2", "--rounds=1", "--quick", "--cache=32M")


def test_by_default_no_checkout_becomes_dirty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    monkeypatch.chdir(tmp_path)
    made = results.directory(None)
    assert made.parent == Path("onecopy-out")
    results.Results(made, {})
    status = ["git", "-C", str(tmp_path), "status", "--porcelain"]
    assert subprocess.run(status, capture_output=True, text=True, check=True).stdout == ""


def test_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir("/proc")
    made = results.directory(None)
    try:
        assert made.is_dir()
        assert f"the results go to {made}" in capsys.readouterr().err
    finally:
        shutil.rmtree(made.parent)


@pytest.mark.parametrize(
    ("output", "said"),
    [("/proc/none", "cannot be made"), ("/etc/passwd", "is a file"), ("/etc/passwd/x", "cannot be made")],
)
def test_a_wrong_output(onecopy: Command, output: str, said: str) -> None:
    done = onecopy(*SHORT, "--output", output)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert f"{output} {said}" in done.stderr


def test_a_disk_that_is_full_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = results.Results(tmp_path, {"a": 1})
    add = cells.Writer.add

    def full(_self: cells.Writer, _rows: Iterable[AnyRow]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cells.Writer, "add", full)
    written.add_times([ROW])
    assert "No space left" in written.trouble
    monkeypatch.setattr(cells.Writer, "add", add)
    written.add_times([ROW])
    written.finish({"b": 2})
    assert written.trouble == ""
    assert cells.read(Row, tmp_path / "times.csv") == [ROW, ROW]
    assert cells.read(FigureRow, tmp_path / "figures.csv") == []
    assert json.loads((tmp_path / "machine.json").read_text()) == {"a": 1, "b": 2}


@pytest.mark.long(0.5)
def test_a_full_disk(onecopy: Command, tmp_path: Path) -> None:
    """The tables are printed all the same."""
    unshare = ["unshare", "-m", *([] if os.geteuid() == 0 else ["-Ur"])]
    mounted = [*unshare, "sh", "-c", f'mount -t tmpfs -o size=12k none {tmp_path} && exec "$@"', "sh"]
    if subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    sizes = ",".join(str(64 * n) for n in range(1, 31))
    words = ("--what=region", "--mech=heap,staged", "--rounds=1", "--quick", "--cache=32M", f"--sizes={sizes}")
    done = onecopy("bench", *words, "--output", tmp_path / "out", before=mounted, timeout=250)
    assert done.returncode == 1, done.stderr
    assert "No space left on device; measuring goes on" in done.stderr
    assert "1920" in done.stdout
    assert "is incomplete: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_said_of_an_empty_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = results.Results(tmp_path, {})
    bench.say_where(run)
    assert "nothing was measured" in capsys.readouterr().err
    run.add_figures([FigureRow(0, "mpi", "stream", 2, 1.0, "MB/s")])
    bench.say_where(run)
    assert "draw" not in capsys.readouterr().err
    run.add_times([ROW])
    bench.say_where(run)
    assert f"onecopy plot {tmp_path}" in capsys.readouterr().err


def test_lines_that_are_no_measurement() -> None:
    text = "a launcher's word\ncollective,bytes,ranks,mode,repetition,calls,usec,errors\nbcast,64,2,warm,0,1,1.0,0\n"
    assert bench.parse_rows(text + "bcast,64,2,wa", 0, "mpi") == [ROW]
    assert bench.parse_rows(text + "MPI says: goodbye, all, of, you, and, so, on, ok\n", 0, "mpi") == [ROW]
    assert bench.parse_rows("", 0, "mpi") == bench.parse_rows("none\n", 0, "mpi") == []
    assert bench.parse_figures("stream,fast,MB/s\nstream,2.5,MB/s\n", 0, "mpi", "stream", 2) == [
        FigureRow(0, "mpi", "stream", 2, 2.5, "MB/s")
    ]


def test_what_was_measured_before_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No process more, no temporary file: the tables come all the same."""

    made: list[results.Results] = []

    class Kept(results.Results):
        def __init__(self, directory: Path, facts: dict[str, object]) -> None:
            super().__init__(directory, facts)
            made.append(self)

    def perform(tasks: Sequence[Task]) -> None:
        assert tasks
        made[0].add_times([ROW])
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(bench, "Results", Kept)
    monkeypatch.setattr(bench, "perform", perform)
    monkeypatch.setattr("onecopy.bench.signal.signal", lambda *_: None)
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    assert bench.main(parser.parse_args(["--what=region", f"--output={tmp_path}"])) == 1
    said = capsys.readouterr()
    assert "bcast" in said.out
    assert "cannot be run: Resource temporarily unavailable" in said.err
    assert cells.read(Row, tmp_path / "times.csv") == [ROW]


def test_nowhere_to_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    with pytest.raises(programs.BuildError, match="cannot be made"):
        programs.build("firstuse", peers.installed())


def test_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", home)
    with pytest.raises(peers.MissingError, match="XDG_CACHE_HOME"):
        peers.cache()
