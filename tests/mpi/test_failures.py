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


#: Who died, where, and in which collective that was noticed.
DEATH = rf"rank 2 of MPI_COMM_WORLD \(rank 2 of the communicator, process \d+ on {socket.gethostname()}\) died, "
DEATH += "noticed in MPI_Allreduce"


@pytest.mark.usefixtures("outliving")
@pytest.mark.parametrize("last", [[], ["late"]], ids=["together", "late"])
def test_death_in_one_line(runner: Runner, program: MakeProgram, last: list[str]) -> None:
    """It is said once, and to each program.

    One that comes late finds others gone too, which had noticed, and left.
    """
    done = runner.mpirun(4, program("dies"), "allreduce", *last, env=OUTLIVE)
    how = ends(done.stdout)
    assert set(how) == {0, 1, 3}
    assert all(re.fullmatch(DEATH, text) for text in how.values()), how
    ours = [line for line in done.stderr.splitlines() if "onecopy" in line]
    assert len(ours) == 1, done.stderr
    assert re.fullmatch(f"onecopy: {DEATH}", ours[0])


def test_death_that_ends_the_job(runner: Runner, program: MakeProgram) -> None:
    """With the MPI's own handler of errors, too, unless the launcher is faster, which says it then."""
    # What MPICH 5 leaves in /dev/shm then is its own.
    done = runner.start_mpi(4, program("dies"), "allreduce", "fatal").wait(60, leftovers=False)
    assert done.returncode
    assert not ends(done.stdout)
    ours = [line for line in done.stderr.splitlines() if "onecopy: " in line]
    assert len(ours) <= 1, done.stderr
    told = done.stdout + done.stderr
    assert re.search(f"onecopy: {DEATH}$", told, re.M) if ours else re.search(r"(?i)\bsignal:? +9\b", told), told


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
