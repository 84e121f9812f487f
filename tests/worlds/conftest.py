# SPDX-License-Identifier: BSD-3-Clause
"""Every MPI that is here: the one in PATH, Open MPI 5 and what tests/mpich finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from mpi.programs import MakeProgram, Programs
from mpich.conftest import FOUND
from onecopy import peers
from runner import OPEN_MPI, Mpi, Runner

HERE = Path(__file__).resolve().parent


def open_mpi_5() -> Mpi | None:
    try:
        there = peers.peer("openmpi5").mpirun.parent
    except peers.MissingError:
        return None
    return replace(OPEN_MPI, name="openmpi5", mpirun=str(there / "mpirun"), mpicc=str(there / "mpicc"))


MPIS = {mpi.name: mpi for mpi in (OPEN_MPI, open_mpi_5(), *FOUND.values()) if mpi}


@pytest.fixture(scope="session", params=list(MPIS))
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return MPIS[request.param]


@pytest.fixture
def runner(build: Path, tmp_path: Path, mpi: Mpi) -> Iterator[Runner]:
    one = Runner(build, tmp_path, mpi)
    library = one.library()
    if not library or not library.exists():
        pytest.skip(f"{library} is not built: no mpi.h of that MPI was there")
    yield one
    one.close()


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, mpi: Mpi) -> Programs:
    return Programs(tmp_path_factory.mktemp(f"programs-{mpi.name}"), mpi)


@pytest.fixture
def program(programs: Programs) -> MakeProgram:
    """Builds <name>.c of this directory."""

    def make(name: str, *flags: str) -> Path:
        return programs.build(name, [str(HERE / f"{name}.c")], *flags)

    return make
