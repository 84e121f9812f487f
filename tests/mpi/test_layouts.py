# SPDX-License-Identifier: BSD-3-Clause
"""Derived datatypes: what is moved from piece to piece, and what is packed, are the same bytes."""

from __future__ import annotations

import longform
import pytest
from mpi.programs import MakeProgram
from mpi.stats import served
from mpi.test_differential import LIBRARIES, SEED, SETTINGS
from runner import NO_SINGLE_COPY, Runner

ROUNDS = longform.rounds("ONECOPY_TEST_EXAMPLES", 60, 1500)


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "default"])
def test_random_types(runner: Runner, program: MakeProgram, name: str) -> None:
    """Types made by every constructor, of which each rank has its own."""
    print(f"ONECOPY_TEST_SEED={SEED}")
    library = runner.library(LIBRARIES.get(name, True))
    if not library or not library.exists():
        pytest.skip("this build has no such library")
    env = {**NO_SINGLE_COPY, **SETTINGS[name]}
    argv = (program("layouts"), str(SEED), str(ROUNDS))
    runner.mpirun(3, *argv, env=env, preload=LIBRARIES.get(name, True), timeout=60 + ROUNDS)


@pytest.mark.parametrize("call", ["bcast", "allgather", "alltoall"])
def test_unpacked(runner: Runner, program: MakeProgram, call: str) -> None:
    """Where pieces are long nobody makes a packed copy."""
    path = runner.cwd / "stats"
    runner.mpirun(2, program("unpacked"), call, env={"ONECOPY_STATS": str(path)})
    assert min(served(path, call)) > 0
