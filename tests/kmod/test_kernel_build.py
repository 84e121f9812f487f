# SPDX-License-Identifier: BSD-3-Clause
"""Builds of kernels: what they raise, and that one which is out of time is ended."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

import kernel

SLOW = "trap 'echo told; exit 1' TERM; echo begun; sleep 60 & wait"


def test_out_of_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    began = time.monotonic()
    with pytest.raises(kernel.UnavailableError, match="ONECOPY_KERNEL_UNTIL"):
        kernel.make(["sh", "-c", SLOW], log, time.time() + 1)
    assert time.monotonic() - began < 50
    assert log.read_text().split() == ["begun", "told"]


@pytest.mark.parametrize("until", [math.inf, 4e9])
def test_result(tmp_path: Path, until: float) -> None:
    kernel.make(["true"], tmp_path / "log", until)
    with pytest.raises(kernel.KernelError, match="ended with 3; the end of") as trouble:
        kernel.make(["sh", "-c", "echo why >&2; exit 3"], tmp_path / "log", until)
    assert "why" in str(trouble.value)
    assert not isinstance(trouble.value, kernel.UnavailableError)


def test_until(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(kernel.UNTIL, raising=False)
    assert kernel.build_until() == math.inf
    monkeypatch.setenv(kernel.UNTIL, "12.5")
    assert kernel.build_until() == 12.5
