# SPDX-License-Identifier: BSD-3-Clause
"""What a program may do beside MPI_COMM_WORLD and its collectives: sessions, communicators made of others, the MPI's
tool interface, and going on after a failure. None of it may be changed by onecopy, and what can be served is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from job import JobError
from mpi.programs import MakeProgram
from mpi.stats import served, stats
from onecopy import record
from runner import Runner

RANKS = 3
# Calls of each collective in the programs, and what of them is made of sessions.
COPIES = 16
VARIABLES = 4
INSIDE = 7

# Alone: one session after another is too much for them.
ONE_SESSION = ("openmpi5", "debian")


def has_sessions(runner: Runner) -> bool:
    text = "#include <mpi.h>\nMPI_Session session;\n"
    argv = [runner.mpi.mpicc, "-x", "c", "-fsyntax-only", "-"]
    env = runner.environment()
    return not subprocess.run(argv, input=text, text=True, capture_output=True, check=False, env=env).returncode


def compare(runner: Runner, program: Path, *argv: str) -> Path:
    """Runs what the MPI alone can run, too; the statistics."""
    path = runner.cwd / "stats"
    try:
        runner.mpirun(RANKS, program, *argv, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    except JobError:
        if runner.mpirun(RANKS, program, *argv, preload=False, check=False).returncode == 0:
            raise
        pytest.skip("the MPI alone cannot run this")
    return path


def test_left_to_the_mpi(runner: Runner, program: MakeProgram) -> None:
    """Intercommunicators; the statistics tell of them."""
    path = compare(runner, program("left"))
    for line in stats(path):
        assert not any(call["served"] for call in line["calls"].values())
        assert line["calls"]["alltoallw"]["passed"] >= 1


@pytest.mark.parametrize("how", ["only", "again", "inside", "across"])
def test_sessions(runner: Runner, program: MakeProgram, how: str) -> None:
    """Without MPI_Init nothing is served; with it, communicators of sessions as all others, while MPI_COMM_WORLD is
    there."""
    if not has_sessions(runner):
        pytest.skip(f"{runner.mpi.name} has no sessions")
    if how == "again" and runner.mpi.name in ONE_SESSION:
        pytest.skip(f"{runner.mpi.name} alone crashes in its second session")
    path = compare(runner, program("sessions"), how)
    if how == "inside":
        assert served(path, "bcast") == served(path, "allreduce") == [INSIDE] * RANKS
    if how in ("only", "again"):
        assert not stats(path)


def test_communicators(runner: Runner, program: MakeProgram) -> None:
    """Callbacks of attributes, MPI_Comm_dup_with_info and their like."""
    path = compare(runner, program("copies"))
    assert served(path, "bcast") == served(path, "allgather") == [COPIES] * RANKS


def test_tool_interface(runner: Runner, program: MakeProgram) -> None:
    path = compare(runner, program("variables"))
    assert served(path, "bcast") == [VARIABLES] * RANKS


def test_going_on(runner: Runner, program: MakeProgram) -> None:
    """A rank dies, and the others go on without it: such jobs are left to the MPI."""
    if runner.mpi.name != "openmpi5":
        pytest.skip(f"{runner.mpi.name} ends a job in which a rank dies")
    records = runner.cwd / "records"
    records.mkdir()
    argv = runner.mpirun_argv(4, program("survives"))
    argv[1:1] = ["--with-ft", "ulfm"]
    done = runner.run(*argv, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": f"{records}/"}, check=False)
    assert done.stdout.split("\n").count("gone on") == 3, done.stderr
    assert {report["idle"] for report in record.read(records)} == {
        "this MPI goes on after ranks have died (mpirun --with-ft)"
    }
