# SPDX-License-Identifier: BSD-3-Clause
"""Every MPI: the one in PATH, and the others (tests/mpis.py)."""

from __future__ import annotations

from pathlib import Path

import mpis
import pytest
from each.conftest import programs, runner
from mpi.programs import MakeProgram, Programs
from runner import OPEN_MPI, Mpi

__all__ = ["programs", "runner"]

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session", params=(OPEN_MPI.name, *mpis.NAMES))
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return OPEN_MPI if request.param == OPEN_MPI.name else mpis.find_or_skip(request.param)


@pytest.fixture
def program(programs: Programs) -> MakeProgram:
    """Builds <name>.c of this directory."""

    def make(name: str, *flags: str) -> Path:
        return programs.build(name, [str(HERE / f"{name}.c")], *flags)

    return make
