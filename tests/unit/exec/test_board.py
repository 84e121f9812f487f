# SPDX-License-Identifier: BSD-3-Clause
"""The protocol of operations (lib/exec/board.h), explored as a model: every order of every rank's steps."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

MODEL = Path(__file__).with_name("board.pml")

HOLDS = [
    "OPS=5",
    "OPS=5 FLIGHT=3",
    "FAILURES=2 DEATHS=1",
    "FLIGHT=2 FAILURES=2 DEATHS=1",
    "N=3",
    "N=3 FLIGHT=2",
    "N=3 OPS=5 FLIGHT=3",
    "N=3 FAILURES=1 DEATHS=1",
    pytest.param("N=3 OPS=3 FLIGHT=2 FAILURES=1 DEATHS=1", marks=pytest.mark.long(2)),
]
BREAKS = [
    "BUG_REUSE",
    "BUG_RETIRED N=3 OPS=5 FLIGHT=3",
    "BUG_STALE",
    "BUG_QUIT FAILURES=1",
    "BUG_FENCE FAILURES=1",
    "BUG_ISSUE FLIGHT=2",
]


def errors(where: Path, settings: str) -> int:
    """How many errors Spin's search ends with; it stops at the first, and does not end early without one."""
    if not shutil.which("spin"):
        pytest.skip("no spin (Debian's package of that name): packaging/install-deps model")
    defines = [f"-D{setting}" for setting in settings.split()]
    subprocess.run(["spin", "-a", *defines, str(MODEL)], cwd=where, check=True, capture_output=True)
    subprocess.run(["cc", "-O1", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], cwd=where, check=True)
    search = subprocess.run(["./pan", "-m500000"], cwd=where, check=False, capture_output=True, text=True, timeout=600)
    found = re.search(r"errors: (\d+)\n", search.stdout)
    assert found, search.stdout
    assert "Search not completed" not in search.stdout or int(found[1])
    assert "max search depth too small" not in search.stdout
    return int(found[1])


@pytest.mark.parametrize("settings", HOLDS)
def test_holds(tmp_path: Path, settings: str) -> None:
    assert errors(tmp_path, settings) == 0


@pytest.mark.parametrize("settings", BREAKS)
def test_planted(tmp_path: Path, settings: str) -> None:
    """The model is fine enough for the errors that the protocol is there to prevent."""
    assert errors(tmp_path, settings) == 1
