# SPDX-License-Identifier: BSD-3-Clause
"""Time limits that know how slow the machine is."""

from __future__ import annotations

import subprocess
import time

import job
import longform
import pytest
from onecopy import pace


def ticking(monkeypatch: pytest.MonkeyPatch, *steps: float) -> None:
    """perf_counter() advances by these steps, over and over."""
    clock = {"now": 0.0, "turn": 0}

    def read() -> float:
        clock["now"] += steps[int(clock["turn"]) % len(steps)]
        clock["turn"] += 1
        return clock["now"]

    monkeypatch.setattr(time, "perf_counter", read)


@pytest.mark.parametrize(
    ("steps", "times"),
    [((0.001,), 1.0), ((0.001, 0.001, 0.001, 0.009), 3.0), ((0.001, 0.099), pace.MOST)],
)
def test_slowness(monkeypatch: pytest.MonkeyPatch, steps: tuple[float, ...], times: float) -> None:
    ticking(monkeypatch, *steps)
    assert pace.slowness() == pytest.approx(times, rel=0.05)


def test_slowness_of_this_machine() -> None:
    assert 1 <= pace.slowness(0.05) <= pace.MOST


def test_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine's process has more time, one that hangs has not for ever, and lives on."""
    monkeypatch.setattr(pace, "slowness", lambda: 10.0)
    with subprocess.Popen(["sh", "-c", "sleep 1; exit 3"]) as process:
        assert pace.wait(process, 0.2) == 3
    monkeypatch.setattr(pace, "slowness", lambda: 2.0)
    with subprocess.Popen(["sleep", "100"]) as process:
        with pytest.raises(subprocess.TimeoutExpired) as late:
            pace.wait(process, 0.1)
        assert late.value.timeout == pytest.approx(0.2)
        with pytest.raises(subprocess.TimeoutExpired) as late:
            pace.wait(process, 100, 0.1)
        assert late.value.timeout == pytest.approx(0.1)
        assert process.poll() is None
        process.kill()


def test_wait_until(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "slowness", lambda: 10.0)
    late = time.monotonic() + 0.3
    assert job.wait_until(lambda: time.monotonic() > late and "found", 0.1) == "found"
    monkeypatch.setattr(pace, "slowness", lambda: 1.0)
    assert job.wait_until(lambda: [], 0.05) == []
    monkeypatch.setattr(longform, "END", time.time() - longform.REST)
    with pytest.raises(pytest.skip.Exception, match="no time is left"):
        job.wait_until(lambda: [], 100)


def test_output_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "slowness", lambda: 10.0)
    done = job.output_of(["sh", "-c", "echo first; sleep 1; echo second; echo third >&2; exit 3"], 0.2)
    assert (done.returncode, done.stdout, done.stderr) == (3, "first\nsecond\n", "third\n")
    monkeypatch.setattr(pace, "slowness", lambda: 1.0)
    with pytest.raises(subprocess.TimeoutExpired):
        job.output_of(["sleep", "100"], 0.1)
    monkeypatch.setattr(longform, "END", time.time() - longform.REST)
    with pytest.raises(pytest.skip.Exception, match="no time is left"):
        job.output_of(["sleep", "100"], 100)
