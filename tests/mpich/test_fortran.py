# SPDX-License-Identifier: BSD-3-Clause
"""Fortran's three bindings, which call C's functions."""

from __future__ import annotations

import shutil

import pytest
from mpi.programs import Programs
from mpi.stats import served
from runner import Runner


@pytest.mark.parametrize("name", ["mpifh", "usempi", "usempif08"])
def test_fortran(runner: Runner, programs: Programs, name: str) -> None:
    if not shutil.which(runner.mpi.mpifort):
        pytest.skip(f"{runner.mpi.name} has no Fortran here")
    if runner.mpi.name == "intelmpi" and name != "mpifh":
        pytest.skip("Intel MPI's modules are for Intel's compiler")
    flags = ["-fallow-argument-mismatch", "-w"] if name == "mpifh" else []
    binary = programs.build(name, [f"fortran/{name}.f90"], *flags, compiler="mpifort")
    path = runner.cwd / "stats"
    runner.mpirun(3, binary, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "bcast") == [1] * 3
    assert served(path, "allreduce") == [3] * 3
    assert served(path, "gatherv") == [3] * 3
    assert served(path, "scan") == [1] * 3  # by an operator of Fortran's
