# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from pathlib import Path

import pytest
from mpi.programs import MakeProgram, Programs


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("programs"))


@pytest.fixture
def program(programs: Programs) -> MakeProgram:
    """Builds hazards/<name>.c."""

    def make(name: str, *flags: str) -> Path:
        return programs.build(name, [f"hazards/{name}.c"], *flags)

    return make
