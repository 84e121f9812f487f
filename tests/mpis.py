# SPDX-License-Identifier: BSD-3-Clause
"""The MPIs that tests run on beside the one in PATH: Debian's MPICH, and the peers of `onecopy bench`, two of them with
the ABI of the MPI 5 standard as well. A test of one that is not here is skipped, and says what installs it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from onecopy import peers
from runner import OPEN_MPI, Mpi

# Ranks that share cores must not wait busily for one another.
YIELD = {
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "64",
}

# A peer's name with this is that peer with programs compiled for the ABI of the standard.
STANDARD = "-mpi5"

DEBIAN = "debian"
OPEN_MPI_5 = "openmpi5"
INTEL = ("intelmpi", f"intelmpi{STANDARD}")
NAMES = (DEBIAN, OPEN_MPI_5, "mpich", "intelmpi", f"mpich{STANDARD}", f"intelmpi{STANDARD}")


def genv(name: str, value: str) -> list[str]:
    return ["-genv", name, value]


def debian() -> Mpi:
    if not shutil.which("mpiexec.mpich") or not any(Path("/usr/lib").glob("*/libmpich.so")):
        raise peers.MissingError("Debian's MPICH is not installed: make deps")
    return Mpi(DEBIAN, "mpich", "mpiexec.mpich", "mpicc.mpich", "mpifort.mpich", genv, YIELD)


def installed(name: str) -> peers.Mpi:
    try:
        return peers.peer(name)
    except peers.MissingError:
        raise peers.MissingError(f"{name} is not installed: make peers") from None


def open_mpi_5() -> Mpi:
    there = installed(OPEN_MPI_5).mpirun.parent
    mpirun, mpicc, mpifort = (str(there / command) for command in ("mpirun", "mpicc", "mpifort"))
    return replace(OPEN_MPI, name=OPEN_MPI_5, mpirun=mpirun, mpicc=mpicc, mpifort=mpifort)


def hydra(name: str) -> Mpi:
    found = installed(name.removesuffix(STANDARD))
    there = found.mpirun.parent
    env = {**found.env, **YIELD, "I_MPI_PIN": "0"}
    mpiexec, mpicc, mpifort = (str(there / command) for command in ("mpiexec.hydra", "mpicc", "mpif90"))
    if not name.endswith(STANDARD):
        return Mpi(name, "mpich", mpiexec, mpicc, mpifort, genv, env)
    if not (there.parent / "include/mpi_abi.h").exists():
        raise peers.MissingError(f"{found.name} is of a version without the ABI of the MPI 5 standard")
    return Mpi(name, "mpi5", mpiexec, mpicc, mpifort, genv, env, cflags=("-mpi_abi",))


def find(name: str) -> Mpi:
    """MissingError where it is not here."""
    if name == DEBIAN:
        return debian()
    return open_mpi_5() if name == OPEN_MPI_5 else hydra(name)


def find_or_skip(name: str) -> Mpi:
    try:
        return find(name)
    except peers.MissingError as missing:
        pytest.skip(str(missing))
