# SPDX-License-Identifier: BSD-3-Clause
"""What `onecopy run --stats` makes of the ranks' records, and says where there are none."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onecopy import cause, record, stats
from onecopy.record import Report

Done = subprocess.CompletedProcess[str]
Command = Callable[..., Done]
ROOT = Path(__file__).resolve().parents[2]


def cell(call: str = "bcast", outcome: str = "served", size: int = 1 << 20, calls: int = 1, ms: int = 1) -> Report:
    return {
        "call": call,
        "outcome": outcome,
        "size": size,
        "calls": calls,
        "bytes": calls * size,
        "data": calls * size,
        "ns": ms * 1000000,
    }


def report(rank: int = 0, size: int = 1, job: int = 1, cells: list[Report] | None = None, **more: Any) -> Report:
    cells = [cell()] if cells is None else cells
    return {
        "rank": rank,
        "nranks": size,
        "version": "0.1.0",
        "idle": "",
        "heap": "",
        "calls": record.by_call(cells),
        "mech": {name: {"calls": 0, "bytes": 0} for name in record.MECHANISMS},
        "refused": 0,
        "messages": {name: {"calls": 0, "bytes": 0} for name in record.MECHANISMS},
        "transfers": {name: {"calls": 0, "bytes": 0} for name in record.TRANSFERS},
        "helped": 0,
        "state": record.FINISHED,
        "job": f"{job:016x}",
        "pid": 100 + rank,
        "code": 0,
        "start": 0,
        "world_rank": rank,
        "world_size": size,
        "profile": 0,
        "host": "here",
        "mpi": "Open MPI v4.1.4",
        "min": 8192,
        "credit": 262144,
        "ns": 4000000000,
        "cells": cells,
        **more,
    }


def test_sizes_for_people() -> None:
    assert [stats.size(n) for n in (8, 1536, 3 << 30)] == ["8 B", "1.5 KiB", "3.0 GiB"]


@pytest.mark.parametrize(
    ("ranks", "said"), [([0], "0"), ([3, 1, 2, 0], "0-3"), ([0, 2, 3, 4, 9], "0, 2-4, 9"), ([1, 2], "1-2")]
)
def test_rank_lists(ranks: list[int], said: str) -> None:
    assert stats.rank_list(ranks) == said


def test_jobs_are_told_apart() -> None:
    named = [report(rank, 2, job) for job in (7, 8) for rank in (0, 1)]
    assert [len(job.ranks) for job in stats.jobs(named)] == [2, 2]
    # Without a launcher's name: a rank that comes again begins another job.
    nameless = [report(0, 1, 0), report(0, 2, 0), report(1, 2, 0)]
    assert [len(job.ranks) for job in stats.jobs(nameless)] == [2, 1]


def test_times_are_per_rank() -> None:
    slow = report(1, 2, cells=[cell(ms=3000), cell(outcome="small", ms=500)])
    job = stats.Job([report(0, 2, cells=[cell(ms=1000)]), slow])
    assert job.mean(job.total("served")) == pytest.approx(2)
    assert job.mean(job.total()) == pytest.approx(2.25)
    text = "\n".join(stats.table(job))
    assert "2.000   1.000   3.000  50.0 %  served" in text
    assert "below 8 KiB" in text


def test_threads_may_be_inside_for_longer_than_the_run() -> None:
    text = "\n".join(stats.lines(stats.Job([report(cells=[cell(ms=6000)])])))
    assert "6.000 s a rank (150.0 % of the run, its threads added up)" in text


def test_missing_ranks_are_named() -> None:
    job = stats.Job([report(1, 4), report(2, 4, state=record.RUNNING)])
    text = "\n".join(stats.lines(job))
    assert "ranks 1-2 of 4" in text
    assert "ended without MPI_Finalize: rank 2" in text


def test_refusals_are_told() -> None:
    assert "refused" not in "\n".join(stats.lines(stats.Job([report(0, 2), report(1, 2)])))
    text = "\n".join(stats.lines(stats.Job([report(0, 2, refused=1), report(1, 2, refused=2)])))
    assert "3 copies refused by a mechanism" in text


def test_profile_estimates() -> None:
    slow = report(0, 2, profile=1, cells=[cell(outcome="profile", ms=2000)])
    fast = report(1, 2, profile=1, cells=[cell(outcome="profile", ms=1000), cell(outcome="small", ms=9)])
    text = " ".join(stats.estimate(stats.Job([slow, fast])))
    assert "1.500 s of 4.000 s (37.5 %)" in text
    assert "spends 1.000 s" in text
    nothing = stats.Job([report(0, 1, profile=1, cells=[cell(outcome="small")])])
    assert "nothing" in stats.estimate(nothing)[0]


def test_messages_are_told() -> None:
    none = stats.lines(stats.Job([report()]))
    assert not [line for line in none if "messages" in line]
    some = {**report()["messages"], "heap": {"calls": 3, "bytes": 3 << 20}, "cma": {"calls": 1, "bytes": 1 << 20}}
    (line,) = [line for line in stats.lines(stats.Job([report(messages=some)])) if "messages" in line]
    assert "  heap        3.0 MiB in 3 copies" in stats.table(stats.Job([report(messages=some)]))
    assert line == "large messages of the MPI: 3.0 MiB by heap (3 copies), 1.0 MiB by cma (1 copy)"
    shared = stats.Job([report(messages=some, helped=1 << 20)])
    (line,) = [line for line in stats.lines(shared) if "messages" in line]
    assert line.endswith("(1 copy), 1.0 MiB of it by ranks that waited for them")
    assert "  1.0 MiB of it by ranks that waited for them" in stats.table(shared)


def test_transfers_are_told() -> None:
    assert not [line for line in stats.lines(stats.Job([report()])) if "one-sided" in line]
    some = {**report()["transfers"], "served": {"calls": 3, "bytes": 3 << 20}}
    (line,) = [line for line in stats.lines(stats.Job([report(transfers=some)])) if "one-sided" in line]
    assert line == "one-sided transfers: 3.0 MiB by a pointer (3 calls)"
    some |= {"window": {"calls": 1, "bytes": 1 << 20}, "epoch": {"calls": 2, "bytes": 1 << 20}}
    job = stats.Job([report(transfers=some)])
    (line,) = [line for line in stats.lines(job) if "one-sided" in line]
    assert line == "one-sided transfers: 3.0 MiB by a pointer (3 calls), 2.0 MiB left to the MPI (3 calls)"
    table = " ".join(" ".join(stats.table(job)).split())
    assert "3.0 MiB in 3 calls: copied by a pointer" in table
    assert "1.0 MiB in 1 call: left to the MPI in windows that are the MPI's memory" in table


def test_columns_are_explained() -> None:
    """Below the table, with each outcome that it has and none that it has not."""
    table = stats.table(stats.Job([report(0, 2), report(1, 2, cells=[cell(), cell(outcome="small")])]))
    said = " ".join(" ".join(table).split())
    for column in ("size", "calls", "data", "mean", "min", "max", "share"):
        assert column in stats.HEAD.split()
        assert re.search(rf"\b{column}\b[a-z, ]*: [a-z]", said), column
    assert "calls, data: of all ranks, so that a call counts once on each rank; data is what the send" in said
    assert [line.split()[1] for line in table if line.startswith("all ")] == ["3"]
    for name in stats.OUTCOMES:
        job = stats.Job([report()])
        assert (f"{stats.word(name)}: {stats.meaning(name, job)}." in said) == (name in ("served", "small")), name


def test_tables_are_no_wider_than_a_hundred_columns() -> None:
    names, sizes = ("reduce_scatter", "bcast"), (0, 1, 1 << 13, 1 << 30)
    calls = [cell(n, how, size, 10**7, 10**8) for n in names for how in stats.OUTCOMES for size in sizes]
    text = {**report(cells=calls), "idle": "words " * 40, "heap": "more words " * 20, "profile": 1}
    text["mech"] = {name: {"calls": 10**9, "bytes": 10**14} for name in record.MECHANISMS}
    widest = max(map(len, stats.table(stats.Job([text]))))
    assert widest <= stats.WIDTH + len("intercommunicator"), "but for the outcome"


def test_what_is_no_record_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(record.MAGIC)
    (tmp_path / "other").write_bytes(b"x" * 30000)
    (tmp_path / "directory").mkdir()
    assert record.read(tmp_path) == []


def test_no_place_for_records(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(self: Path, _: bytes) -> int:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"), record.directory():
        pass
    assert not list(tmp_path.iterdir())


# ---- the command ----------------------------------------------------------------------------------------------------


def run_stub(onecopy: Command, fake_mpi: Path, style: str, state: int = record.FINISHED) -> Done:
    env = {"PATH": f"{fake_mpi}:{os.environ['PATH']}", "STUB_REPORTS": str(state)}
    return onecopy("run", style, "true", env=env)


def test_a_record_is_read_as_it_is_written(onecopy: Command, fake_mpi: Path) -> None:
    done = run_stub(onecopy, fake_mpi, "--stats")
    assert done.returncode == 0
    said = done.stderr.splitlines()
    assert said[0] == "onecopy: 1 rank, 4.000 s: 10 of 13 collective calls served (bcast 10)"
    assert said[1] == "onecopy: inside collectives: 1.002 s a rank (25.1 % of the run), 1.000 s of it in served ones"
    assert said[2] == "onecopy: left to the MPI: 3 too small (0.002 s)"
    assert said[3] == "onecopy: moved between ranks: 2.0 KiB by heap"


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (record.STARTING, "1 rank ended inside MPI_Init"),
        (record.RUNNING, "ended without MPI_Finalize: rank 0"),
        (record.ABORTED, "rank 0 called MPI_Abort(7)"),
    ],
)
def test_how_ranks_ended(onecopy: Command, fake_mpi: Path, state: int, said: str) -> None:
    assert said in run_stub(onecopy, fake_mpi, "--stats=table", state=state).stderr


def test_json(onecopy: Command, fake_mpi: Path) -> None:
    found = json.loads(run_stub(onecopy, fake_mpi, "--stats=json").stderr)
    assert found["status"] == 0
    (rank,) = found["jobs"][0]["ranks"]
    assert rank["calls"]["bcast"] == {"served": 10, "passed": 3, "bytes": 2048}
    assert [(c["outcome"], c["ns"]) for c in rank["cells"]] == [("served", 10**9), ("small", 2 * 10**6)]
    assert set(rank) == set(report())


def test_nothing_is_left_behind(onecopy: Command, fake_mpi: Path, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    env = {"PATH": f"{fake_mpi}:{os.environ['PATH']}", "STUB_REPORTS": "2", "TMPDIR": str(tmp_path / "tmp")}
    assert "10 of 13" in onecopy("run", "--stats", "true", env=env).stderr
    killed = onecopy("run", "--stats", "--profile", "sh", "-c", "env >/dev/null; kill -9 $$", env=env)
    assert "10 of 13" in killed.stderr
    assert not list((tmp_path / "tmp").iterdir())


def test_profile_serves_nothing(onecopy: Command, fake_mpi: Path) -> None:
    env = {"PATH": f"{fake_mpi}:{os.environ['PATH']}"}
    assert onecopy("run", "--profile", "sh", "-c", "echo $ONECOPY", env=env).stdout == "profile\n"


# ---- why there is nothing -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["ls", "/"], "ls is no MPI program"),
        (["sh", "-c", "exit 5"], "sh ended with status 5 before any rank was in MPI_Init"),
        (["sh", "-c", "kill -SEGV $$"], "sh was ended by SIGSEGV before"),
        (["sh", "-c", "sh -c 'kill -SEGV $$'; exit 139"], "sh ended with status 139 (SIGSEGV) before"),
        (["sh", "-c", ":"], "sh started no program that called MPI_Init"),
    ],
)
def test_causes(onecopy: Command, fake_mpi: Path, command: list[str], said: str) -> None:
    done = onecopy("run", "--stats", *command, env={"PATH": f"{fake_mpi}:{os.environ['PATH']}"})
    assert f"onecopy: no statistics: {said}" in done.stderr


def test_verbose_says_what_is_no_mpi_program(onecopy: Command, fake_mpi: Path) -> None:
    done = onecopy("run", "--verbose", "ls", "/", env={"PATH": f"{fake_mpi}:{os.environ['PATH']}"})
    assert "onecopy: preloads /" in done.stderr
    assert "ls is no MPI program" in done.stderr


def test_python_without_mpi4py(tmp_path: Path) -> None:
    python = tmp_path / "python3.99"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    python.chmod(0o755)
    assert "python3.99 has no mpi4py" in cause.of(["mpirun", str(python), "x.py"], 256, 0)


def heed_interrupts() -> None:
    """In the child: what is started in the background may be told not to."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_interrupted(environment: dict[str, str], fake_mpi: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "onecopy", "run", "--stats", "sh", "-c", "echo ready; exec sleep 30"],
        env={**environment, "PATH": f"{fake_mpi}:{environment['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert "no statistics: interrupted by SIGINT" in said
