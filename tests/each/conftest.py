# SPDX-License-Identifier: BSD-3-Clause
"""What tests/mpi has for the MPI in PATH, on each of the others (tests/mpis.py): what takes `runner` and `programs`
runs once with each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import mpis
import pytest
from mpi.conftest import program
from mpi.programs import Programs
from runner import Mpi, Runner

__all__ = ["program"]


@pytest.fixture(scope="session", params=mpis.NAMES)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return mpis.find_or_skip(request.param)


@pytest.fixture
def runner(build: Path, tmp_path: Path, mpi: Mpi) -> Iterator[Runner]:
    one = Runner(build, tmp_path, mpi)
    yield one
    one.close()


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, mpi: Mpi) -> Programs:
    return Programs(tmp_path_factory.mktemp(f"programs-{mpi.name}"), mpi)
