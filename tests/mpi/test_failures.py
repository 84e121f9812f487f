# SPDX-License-Identifier: BSD-3-Clause
"""Calls that fail: which ranks are told, of what, and that nobody waits for ever."""

from __future__ import annotations

import re
import socket

import pytest
from mpi.programs import MakeProgram, Programs
from mpi.stats import served, stats
from mpi.test_hazards import MODES
from runner import OUTLIVE, Runner


@pytest.fixture
def outliving(runner: Runner) -> None:
    """Skips the test where mpirun cannot let ranks outlive another."""
    if runner.open_mpi() != 4:
        pytest.skip("this mpirun ends the job with its first rank: wants Open MPI 4")


def ends(out: str) -> dict[int, str]:
    """How the call ended at each rank that said so."""
    return {int(rank): how for rank, how in re.findall(r"^rank (\d): (.*)$", out, re.M)}


@pytest.mark.usefixtures("outliving")
@pytest.mark.parametrize("call", ["scatterv", "gatherv"])
def test_death_of_another(runner: Runner, program: MakeProgram, call: str) -> None:
    """The root finds a rank dead, and still does its part for one that has only a small block."""
    done = runner.mpirun(4, program("dies"), call, env=OUTLIVE)
    how = ends(done.stdout)
    assert re.match(r"rank 2 of MPI_COMM_WORLD .* died", how[0])
    assert how[1] == how[3] == "success"


@pytest.mark.usefixtures("outliving")
@pytest.mark.parametrize("last", [[], ["late"]], ids=["together", "late"])
def test_death_in_one_line(runner: Runner, program: MakeProgram, last: list[str]) -> None:
    """Who died, where, and in which collective that was noticed: said once, and to each program.

    One that comes late finds others gone too, which had noticed, and left.
    """
    done = runner.mpirun(4, program("dies"), "allreduce", *last, env=OUTLIVE)
    how = ends(done.stdout)
    wanted = rf"rank 2 of MPI_COMM_WORLD \(rank 2 of the communicator, process \d+ on {socket.gethostname()}\) died, "
    wanted += "noticed in MPI_Allreduce"
    assert set(how) == {0, 1, 3}
    assert all(re.fullmatch(wanted, text) for text in how.values()), how
    ours = [line for line in done.stderr.splitlines() if "onecopy" in line]
    assert len(ours) == 1, done.stderr
    assert re.fullmatch(f"onecopy: {wanted}", ours[0])


@pytest.mark.parametrize("mode", MODES)
def test_unequal_amounts(runner: Runner, program: MakeProgram, mode: str) -> None:
    """All ranks are told of that, not of a death."""
    env = {"ONECOPY_MIN": "1", **MODES[mode]}
    assert "died" not in runner.mpirun(4, program("lengths"), env=env).stderr


@pytest.mark.parametrize("mode", MODES)
def test_unequal_ends(runner: Runner, program: MakeProgram, mode: str) -> None:
    """Two ends of a block of a v-collective differ: one may believe that it is served, the other that it is not."""
    done = runner.mpirun(4, program("apart"), env=MODES[mode])
    assert "died" not in done.stderr


def test_no_memory(runner: Runner, programs: Programs) -> None:
    """A rank without memory for its part of a v-collective still makes the MPI's call, where others wait for it."""
    path = runner.cwd / "stats"
    binary = programs.with_allocator("starved", "-DALLOCATOR_REFUSES")
    done = runner.mpirun(4, binary, env={"ONECOPY_STATS": str(path)})
    assert "died" not in done.stderr
    assert all(
        line["calls"][name]["served"] > 0 for line in stats(path) for name in ("scatterv", "alltoallv", "alltoallw")
    )
    assert min(served(path, "gatherv")) > 0
