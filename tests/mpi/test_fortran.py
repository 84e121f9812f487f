# SPDX-License-Identifier: BSD-3-Clause
"""Fortran's three bindings, which in Open MPI call C's PMPI functions."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpi.programs import BINDINGS, GOT, PLACES, Programs
from mpi.stats import served, stats
from runner import Runner


def expect_served(path: Path, binding: str) -> None:
    """Each call of fortran/<binding>.f90 that there is something to serve in, by three ranks."""
    assert served(path, "bcast") == [1] * 3
    assert served(path, "allreduce") == [3] * 3
    assert served(path, "gatherv") == [3] * 3
    assert served(path, "scan") == [1] * 3  # by an operator of Fortran's
    if binding != "usempi":
        assert served(path, "alltoallv") == [1] * 3  # in place
        assert served(path, "alltoallw") == [1] * 3
        assert served(path, "neighbor_alltoall") == [1] * 3


def expect_places_served(path: Path) -> None:
    assert [served(path, call) for call in PLACES] == [[times] * 3 for times in PLACES.values()]
    assert all(line["transfers"]["served"]["bytes"] >= GOT for line in stats(path))


@pytest.mark.parametrize("name", BINDINGS)
def test_fortran(runner: Runner, programs: Programs, name: str) -> None:
    binary = programs.build(name, [f"fortran/{name}.f90"], *BINDINGS[name], compiler="mpifort")
    path = runner.cwd / "stats"
    runner.mpirun(3, binary, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    expect_served(path, name)


@pytest.mark.parametrize("name", BINDINGS)
def test_places(runner: Runner, programs: Programs, name: str) -> None:
    path = runner.cwd / "stats"
    runner.mpirun(3, programs.places(name, *BINDINGS[name]), env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    expect_places_served(path)
