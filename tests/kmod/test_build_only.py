# SPDX-License-Identifier: BSD-3-Clause
"""The kernel module compiles without a warning for the oldest and the newest kernels whose headers can be had, each
with the compiler that its distribution built it with. Those that boot here are test_guests.py's.
"""

from __future__ import annotations

import guests
import pytest


@pytest.mark.long(3)
@pytest.mark.parametrize("version", ["5.10", "6.1", "6.12", "newest"])
@pytest.mark.timeout(1200)  # the first run fetches a compiler
def test_builds(version: str) -> None:
    print(guests.run("build-only", version))
