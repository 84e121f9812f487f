# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest
from mpi.programs import Programs


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("programs"))
