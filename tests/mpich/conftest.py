# SPDX-License-Identifier: BSD-3-Clause
"""The MPIs of the MPICH family that are here: Debian's MPICH, and those that `onecopy bench --peer` has installed, with
the ABI of the MPI 5 standard as well. What takes `runner` and `programs` runs once with each."""

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

# A peer's name with this is that peer with programs compiled for the ABI of the standard.
STANDARD = "-mpi5"


def genv(name: str, value: str) -> list[str]:
    return ["-genv", name, value]


def debian() -> Mpi | None:
    if not shutil.which("mpiexec.mpich") or not any(Path("/usr/lib").glob("*/libmpich.so")):
        return None
    return Mpi("debian", "mpich", "mpiexec.mpich", "mpicc.mpich", "mpifort.mpich", genv, YIELD)


def peer(name: str) -> Mpi | None:
    try:
        found = peers.peer(name.removesuffix(STANDARD))
    except peers.MissingError:
        return None
    there = found.mpirun.parent
    env = {**found.env, **YIELD, "I_MPI_PIN": "0"}
    mpiexec, mpicc, mpifort = (str(there / command) for command in ("mpiexec.hydra", "mpicc", "mpif90"))
    if not name.endswith(STANDARD):
        return Mpi(name, "mpich", mpiexec, mpicc, mpifort, genv, env)
    if not (there.parent / "include/mpi_abi.h").exists():
        return None
    return Mpi(name, "mpi5", mpiexec, mpicc, mpifort, genv, env, cflags=("-mpi_abi",))


NAMES = ("mpich", "intelmpi", f"mpich{STANDARD}", f"intelmpi{STANDARD}")
FOUND = {mpi.name: mpi for mpi in (debian(), *map(peer, NAMES)) if mpi}


@pytest.fixture(scope="session", params=list(FOUND) or ["none"])
def mpi(request: pytest.FixtureRequest) -> Mpi:
    if request.param not in FOUND:
        pytest.skip("no MPICH and no Intel MPI: make deps, or onecopy bench --peer mpich")
    return FOUND[request.param]


@pytest.fixture
def runner(build: Path, tmp_path: Path, mpi: Mpi) -> Iterator[Runner]:
    one = Runner(build, tmp_path, mpi)
    yield one
    one.close()


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, mpi: Mpi) -> Programs:
    return Programs(tmp_path_factory.mktemp(f"programs-{mpi.name}"), mpi)
