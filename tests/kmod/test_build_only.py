# SPDX-License-Identifier: BSD-3-Clause
"""The kernel module compiles without a warning for the oldest and the newest kernels whose headers can be had, each
with the compiler that its distribution built it with. Those that boot here are test_guests.py's.
"""

from __future__ import annotations

import subprocess

import pytest
from runner import ROOT

UNAVAILABLE = 123  # vm/build-only could not get the headers


@pytest.mark.parametrize("version", ["5.10", "6.1", "6.12", "newest"])
@pytest.mark.timeout(1200)  # the first run fetches a compiler
def test_builds(version: str) -> None:
    argv = [str(ROOT / "vm" / "build-only"), version]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == UNAVAILABLE:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
