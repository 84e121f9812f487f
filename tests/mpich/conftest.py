# SPDX-License-Identifier: BSD-3-Clause
"""The MPIs of the MPICH ABI that are here: Debian's MPICH, and those that `onecopy bench --peer` has installed. What
takes `runner` and `programs` runs once with each."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from mpi.conftest import program
from mpi.programs import Programs
from onecopy import peers
from runner import Mpi, Runner

__all__ = ["program"]

# Ranks that share cores must not wait busily for one another.
YIELD = {
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "64",
}


def genv(name: str, value: str) -> list[str]:
    return ["-genv", name, value]


def debian() -> Mpi | None:
    if not shutil.which("mpiexec.mpich") or not any(Path("/usr/lib").glob("*/libmpich.so")):
        return None
    return Mpi("debian", "mpich", "mpiexec.mpich", "mpicc.mpich", "mpifort.mpich", genv, YIELD)


def peer(name: str) -> Mpi | None:
    try:
        found = peers.peer(name)
    except peers.MissingError:
        return None
    there = found.mpirun.parent
    env = {**found.env, **YIELD, "I_MPI_PIN": "0"}
    return Mpi(name, "mpich", str(there / "mpiexec.hydra"), str(there / "mpicc"), str(there / "mpif90"), genv, env)


FOUND = {mpi.name: mpi for mpi in (debian(), peer("mpich"), peer("intelmpi")) if mpi}


@pytest.fixture(scope="session", params=list(FOUND) or ["none"])
def mpi(request: pytest.FixtureRequest, build: Path) -> Mpi:
    if request.param not in FOUND:
        pytest.skip("no MPICH and no Intel MPI: make deps, or onecopy bench --peer mpich")
    if not (build / "preload/libonecopy-mpich.so").exists():
        pytest.skip("libonecopy-mpich.so is not built: no mpi.h of an MPICH was there")
    return FOUND[request.param]


@pytest.fixture
def runner(build: Path, tmp_path: Path, mpi: Mpi) -> Iterator[Runner]:
    one = Runner(build, tmp_path, mpi)
    yield one
    one.close()


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, mpi: Mpi) -> Programs:
    return Programs(tmp_path_factory.mktemp(f"programs-{mpi.name}"), mpi)
