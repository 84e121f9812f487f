# SPDX-License-Identifier: BSD-3-Clause
"""Fortran's three bindings, which call C's functions."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from mpi.programs import BINDINGS, Programs
from mpi.test_fortran import expect_places_served, expect_served
from runner import Mpi, Runner


def modules(mpi: Mpi) -> list[Path]:
    """Intel MPI has modules for versions of gfortran; its mpif90 looks for them elsewhere."""
    said = subprocess.run(["gfortran", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout
    version = said.strip().split(".")[0]
    where = Path(mpi.mpifort).parent.parent / "include/mpi/gfortran"
    return [path for path in where.glob(f"{version}.*") if (path / "mpi.mod").exists()]


def flags(mpi: Mpi, binding: str) -> list[str]:
    if not shutil.which(mpi.mpifort):
        pytest.skip(f"{mpi.name} has no Fortran here")
    if mpi.abi == "mpi5":
        pytest.skip("of the MPI 5 standard's ABI there is Fortran for Intel's compiler alone")
    if not mpi.name.startswith("intelmpi") or binding == "mpifh":
        return BINDINGS[binding]
    if binding == "usempif08":
        pytest.skip("Intel MPI's mpi_f08 is for Intel's compiler")
    if not (found := modules(mpi)):
        pytest.skip("Intel MPI has no module for this gfortran")
    return [*BINDINGS[binding], f"-I{found[0]}"]


@pytest.mark.parametrize("name", BINDINGS)
def test_fortran(runner: Runner, programs: Programs, name: str) -> None:
    binary = programs.build(name, [f"fortran/{name}.f90"], *flags(runner.mpi, name), compiler="mpifort")
    path = runner.cwd / "stats"
    runner.mpirun(3, binary, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    expect_served(path, name)


@pytest.mark.parametrize("name", BINDINGS)
def test_places(runner: Runner, programs: Programs, name: str) -> None:
    binary = programs.places(name, *flags(runner.mpi, name))
    path = runner.cwd / "stats"
    runner.mpirun(3, binary, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    expect_places_served(path)
