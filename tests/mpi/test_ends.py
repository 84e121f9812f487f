# SPDX-License-Identifier: BSD-3-Clause
"""What ends while something else goes on: communicators that are freed, memory that is replaced."""

from __future__ import annotations

import pytest
from mpi.programs import MakeProgram
from mpi.stats import moved, served
from runner import Runner


@pytest.mark.parametrize("least", ["", "1"], ids=["default", "all-served"])
def test_collectives_in_delete_callbacks(runner: Runner, program: MakeProgram, least: str) -> None:
    """They are the MPI's on every rank, whenever that has set the attribute; the next communicator is a new one."""
    path = runner.cwd / "stats"
    env = {"ONECOPY_STATS": str(path), **({"ONECOPY_MIN": least} if least else {})}
    runner.mpirun(3, program("ending"), env=env)
    calls = sorted(served(path, "bcast"))
    assert len(calls) == 3
    assert calls[0] > 0
    # Of the eight turns: three on the first communicator, and three on the second where that has not one rank.
    if least:
        assert calls == [24, 48, 48]


def test_memory_over_static_data(runner: Runner, program: MakeProgram) -> None:
    """Peers see what the program has put there; nothing of its static data is taken for the arena's."""
    path = runner.cwd / "stats"
    env = {"ONECOPY_STATS": str(path), "ONECOPY_MIN": "1", "ONECOPY_VERBOSE": "1"}
    finished = runner.mpirun(2, program("overlaid"), env=env)
    assert served(path, "bcast") == [6, 6]
    assert moved(path)["staged"] > 0
    assert "mapped other memory over it" in finished.stderr


def test_memory_over_blocks(runner: Runner, program: MakeProgram) -> None:
    """Peers go on to read the arena, and see what the program had there before."""
    path = runner.cwd / "stats"
    runner.mpirun(2, program("covered"), env={"ONECOPY_STATS": str(path)})
    assert served(path, "scatter") == [4, 4]
