# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of real jobs: exact counts for a program whose calls are known, however it ends."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from job import Finished
from mpi.programs import Programs
from mpi.stats import stats
from runner import ROOT, Runner

RANKS, TURNS, MIB = 3, 20, 1 << 20
ALL = RANKS * TURNS
#: What hazards/counted.c calls, by collective and outcome, but for its last barrier.
CALLS = {
    ("bcast", "served"): ALL,
    ("bcast", "small"): ALL,
    ("bcast", "empty"): ALL,
    ("allreduce", "served"): ALL,
    ("allreduce", "operator"): ALL,
    ("alltoall", "served"): ALL,
    ("gatherv", "served"): ALL,
    ("gatherv", "small"): ALL,
    ("alltoallv", "small"): ALL,  # in place, where the one large block stays
    # 256 KiB at 64 KiB a call.
    ("barrier", "early"): 3 * RANKS,
    ("barrier", "alone"): (TURNS - 3) * RANKS,
    ("barrier", "served"): ALL,
}


@pytest.fixture
def counted(programs: Programs) -> Path:
    return programs.build("counted", ["hazards/counted.c"])


def onecopy_run(runner: Runner, *words: str | Path, env: Mapping[str, str] | None = None) -> Finished:
    ours = {"PYTHONPATH": str(ROOT / "cli"), "ONECOPY_LIBDIR": str(runner.build), "TMPDIR": str(runner.cwd / "tmp")}
    (runner.cwd / "tmp").mkdir(exist_ok=True)
    return runner.run(sys.executable, "-m", "onecopy", "run", *words, env={**ours, **(env or {})}, check=False)


def jobs(finished: Finished) -> list[list[dict[str, Any]]]:
    # An MPI that is being ended may have left half a line before it.
    line = next(line[line.index('{"jobs"') :] for line in finished.stderr.splitlines() if '{"jobs"' in line)
    return [job["ranks"] for job in json.loads(line)["jobs"]]


def outcomes(ranks: list[dict[str, Any]]) -> dict[tuple[str, str], int]:
    found: Counter[tuple[str, str]] = Counter()
    for rank in ranks:
        for cell in rank["cells"]:
            found[cell["call"], cell["outcome"]] += cell["calls"]
    return dict(found)


def test_counts(runner: Runner, counted: Path) -> None:
    (ranks,) = jobs(onecopy_run(runner, "--stats=json", "mpirun", "-n", str(RANKS), counted))
    assert outcomes(ranks) == {**CALLS, ("barrier", "served"): ALL + RANKS}
    assert [rank["state"] for rank in ranks] == [2] * RANKS
    for rank in ranks:
        cells = {(cell["call"], cell["outcome"]): cell for cell in rank["cells"]}
        large = cells["bcast", "served"]
        assert (large["size"], large["bytes"], large["data"]) == (MIB, TURNS * MIB, TURNS * MIB)
        assert cells["allreduce", "served"]["data"] == 2 * TURNS * MIB
        assert cells["alltoall", "served"]["data"] == 2 * TURNS * (MIB // RANKS) * RANKS
        blocks = RANKS + 1 if rank["world_rank"] == 0 else 1
        assert cells["gatherv", "served"]["data"] == blocks * TURNS * (MIB // RANKS)
        assert cells["bcast", "small"]["bytes"] == TURNS * 64
        assert all(0 < cell["ns"] < rank["ns"] for cell in rank["cells"])
        assert sum(cell["ns"] for cell in rank["cells"]) <= rank["ns"]


def test_lines_say_the_same(runner: Runner, counted: Path) -> None:
    """What ONECOPY_STATS=file appends has the same keys and counts as the records."""
    path = runner.cwd / "lines"
    runner.mpirun(RANKS, counted, env={"ONECOPY_STATS": str(path)})
    (ranks,) = jobs(onecopy_run(runner, "--stats=json", "mpirun", "-n", str(RANKS), counted))
    lines = stats(path)
    assert outcomes(lines) == outcomes(ranks)
    for line, rank in zip(lines, ranks, strict=True):
        assert set(line) == set(rank)
        assert set(line["cells"][0]) == set(rank["cells"][0])
        same = ("rank", "nranks", "version", "idle", "heap", "calls", "state", "mpi", "min", "credit", "profile")
        assert {key: line[key] for key in same} == {key: rank[key] for key in same}


@pytest.mark.parametrize("options", [[], ["--no-heap"], ["--mech", "cma"], ["--mech", "staged"]], ids=" ".join)
def test_each_byte_is_moved_once(runner: Runner, counted: Path, options: list[str]) -> None:
    """Whatever the mechanism, the same bytes go from rank to rank, and none by one that was not allowed."""
    env = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
    command = ["--stats=json", *options, "--min", "8K", "mpirun", "-n", str(RANKS), str(counted)]
    (ranks,) = jobs(onecopy_run(runner, *command, env=env))
    block = MIB // RANKS
    expected = TURNS * ((RANKS - 1) * MIB + 2 * (RANKS - 1) * MIB + RANKS * (RANKS - 1) * block + (RANKS - 1) * block)
    by = {name: sum(rank["mech"][name]["bytes"] for rank in ranks) for name in ranks[0]["mech"]}
    assert sum(by.values()) == expected, by
    assert sum(by.values()) <= sum(cell["data"] for rank in ranks for cell in rank["cells"])
    assert (by["heap"] > 0) == (not options)


@pytest.mark.parametrize(("end", "states"), [("segv", {1}), ("kill", {1}), ("abort", {1, 3}), ("exit", {1})])
def test_figures_survive(runner: Runner, counted: Path, end: str, states: set[int]) -> None:
    """However ranks end: all that they did is counted, and nothing is left behind."""
    finished = onecopy_run(runner, "--stats=json", "mpirun", "-n", str(RANKS), counted, end)
    assert finished.returncode != 0
    (ranks,) = jobs(finished)
    assert outcomes(ranks) == CALLS
    assert {rank["state"] for rank in ranks} == states
    if end == "abort":
        assert ranks[-1]["code"] == 7
    assert not list((runner.cwd / "tmp").glob("onecopy*"))


def test_profile(runner: Runner, counted: Path) -> None:
    """The MPI alone, and what would have been served: the same calls."""
    finished = onecopy_run(runner, "--profile", "--stats=json", "mpirun", "-n", str(RANKS), counted)
    (ranks,) = jobs(finished)
    wanted = {(call, "profile" if how == "served" else how): n for (call, how), n in CALLS.items()}
    wanted["barrier", "profile"] += RANKS
    assert outcomes(ranks) == wanted
    assert all(rank["profile"] and not any(m["calls"] for m in rank["mech"].values()) for rank in ranks)


def test_jobs_apart(runner: Runner, counted: Path) -> None:
    script = f"mpirun -n 2 {counted}; mpirun -n 3 {counted}"
    assert [len(ranks) for ranks in jobs(onecopy_run(runner, "--stats=json", "sh", "-c", script))] == [2, 3]


def test_one_run_a_rank(runner: Runner, counted: Path) -> None:
    """mpirun onecopy run: each says which rank it speaks of."""
    ours = {"PYTHONPATH": str(ROOT / "cli"), "ONECOPY_LIBDIR": str(runner.build)}
    run: list[str | Path] = [sys.executable, "-m", "onecopy", "run", "--stats", counted]
    finished = runner.mpirun(2, *run, env=ours, preload=False)
    for rank in range(2):
        assert f"onecopy: rank {rank} of 2" in finished.stderr


def test_no_room(runner: Runner, counted: Path) -> None:
    """Ranks that cannot make their file run on without; it is not a signal that tells them."""
    where = runner.cwd / "records"
    where.mkdir()
    env = {"LD_PRELOAD": str(runner.library()), "ONECOPY_STATS": f"{where}/", "ONECOPY_VERBOSE": "1"}
    # So small a limit the MPI itself does not survive, and would leave its file behind.
    env["OMPI_MCA_btl"] = "self"
    finished = runner.run("sh", "-c", 'ulimit -f 8; exec "$0"', counted, env=env, check=False)
    assert "no statistics of this rank" in finished.stderr
    absent = runner.run(counted, env={**env, "ONECOPY_STATS": f"{runner.cwd}/absent/"})
    assert "no statistics of this rank" in absent.stderr
    assert not (runner.cwd / "absent").exists()
