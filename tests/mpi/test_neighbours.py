# SPDX-License-Identifier: BSD-3-Clause
"""Neighbourhood collectives, on grids and graphs drawn at random: what every rank receives is what it is sent, and
what it receives without onecopy, also along several edges between two ranks, whose order is the MPI's own."""

from __future__ import annotations

from collections.abc import Mapping

import longform
import pytest
from mpi.programs import MakeProgram
from mpi.stats import served, stats
from mpi.test_differential import LIBRARIES, MPI_ENV, SEED, SETTINGS, WHERE_MOST
from runner import Runner

ROUNDS = longform.rounds("ONECOPY_TEST_EXAMPLES", 12, 120)
CALLS = ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")


def digests(runner: Runner, program: MakeProgram, ranks: int, env: Mapping[str, str], preload: str | bool) -> list[str]:
    """A line for each call and rank."""
    argv = [str(program("neighbours")), str(SEED), str(ROUNDS), "large"]
    # MPICH 4.0 alone loses messages of MPI_Neighbor_alltoallw, and crashes where there are no edges and no arrays.
    if runner.mpi.name == "debian":
        argv.append("careful")
    env = {**MPI_ENV, **env}
    done = runner.mpirun(ranks, *argv, env=env, preload=preload, timeout=60 + 2 * ROUNDS)
    return sorted(line for line in done.stdout.splitlines() if "call" in line)


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        longform.param(name, ranks, short=ranks == 3 or name in WHERE_MOST, minutes=0.1)
        for name in SETTINGS
        if name != "default"
        for ranks in (2, 3, 6)
    ],
)
def test_same_bytes(runner: Runner, program: MakeProgram, ranks: int, name: str) -> None:
    print(f"ONECOPY_TEST_SEED={SEED}")
    library = runner.library(LIBRARIES.get(name, True))
    if not library or not library.exists():
        pytest.skip("this build has no such library")
    path = runner.cwd / "stats"
    env = {**SETTINGS[name], "ONECOPY_STATS": str(path)}
    served = digests(runner, program, ranks, env, LIBRARIES.get(name, True))
    assert served == digests(runner, program, ranks, {}, preload=False)
    assert len(served) == 8 * ROUNDS * ranks
    for line in stats(path):
        counts = [count for name, count in line["calls"].items() if name.startswith("neighbor_")]
        assert sum(count["served"] for count in counts) >= ROUNDS


def test_limits(runner: Runner, program: MakeProgram) -> None:
    """By default short blocks are the MPI's, and of long ones each edge is served or left by itself."""
    path = runner.cwd / "stats"
    runner.mpirun(3, program("neighbours"), str(SEED), str(ROUNDS), env={"ONECOPY_STATS": str(path)})
    for line in stats(path):
        counts = [line["calls"][f"neighbor_{call}"] for call in CALLS]
        assert sum(count["passed"] for count in counts) > 0
        assert sum(count["served"] for count in counts) > 0


def test_parts(runner: Runner, program: MakeProgram) -> None:
    path = runner.cwd / "stats"
    runner.mpirun(4, program("parts"), env={"ONECOPY_STATS": str(path)}, timeout=60)
    assert sorted(served(path, "neighbor_alltoall"))[0] == 0 < max(served(path, "neighbor_alltoall"))


def test_wrong_calls(runner: Runner, program: MakeProgram) -> None:
    """Ends of different lengths are an error at both, and what the MPI refuses it is to refuse itself."""
    path = runner.cwd / "stats"
    runner.mpirun(2, program("neighbours_differ"), env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    for line in stats(path):
        assert line["calls"]["neighbor_alltoall"]["passed"] == 6  # three of either; an error is not served
