# SPDX-License-Identifier: BSD-3-Clause
"""MPIs of PyPI in the user's cache: installed once, whoever asks for them."""

from __future__ import annotations

import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from onecopy import peers


def done(command: list[str], returncode: int = 0, said: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess(command, returncode, "", said)


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "onecopy/peers/mpich"


def test_two_at_once(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second waits for the first, and finds all there."""
    together = threading.Barrier(2)
    met: list[bool] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        prefix.mkdir(exist_ok=True)
        try:
            together.wait(0.2)
            met.append(True)
        except threading.BrokenBarrierError:
            met.append(False)
        return done(command)

    monkeypatch.setattr("onecopy.peers.subprocess.run", run)
    with ThreadPoolExecutor(2) as pool:
        for outcome in [pool.submit(peers.install, "mpich") for _ in range(2)]:
            outcome.result()
    assert met == [False, False]  # its environment, and what is installed there
    assert peers.peer("mpich").mpirun == prefix / "bin/mpirun"


def test_one_that_failed(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is half there is made again."""
    answers = [done([], 1, "no network")]

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        prefix.mkdir(exist_ok=True)
        (prefix / "half").touch()
        return answers.pop() if answers else done(command)

    monkeypatch.setattr("onecopy.peers.subprocess.run", run)
    with pytest.raises(peers.MissingError, match="no network"):
        peers.install("mpich")
    with pytest.raises(peers.MissingError, match="not installed"):
        peers.peer("mpich")
    peers.install("mpich")
    assert peers.peer("mpich").mpicc


def test_nowhere_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    with pytest.raises(peers.MissingError, match="mpich cannot be installed"):
        peers.install("mpich")


def test_all_of_them(prefix: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`make peers` goes on after one that cannot be had, and says so."""

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        (prefix.parent / "intelmpi").mkdir(exist_ok=True)
        (prefix.parent / "openmpi5").mkdir(exist_ok=True)
        return done(command, int("mpich" in command[-1]), "no such package")

    monkeypatch.setattr("onecopy.peers.subprocess.run", run)
    assert peers.main() == 1
    said = capsys.readouterr()
    assert "mpich cannot be installed: no such package" in said.err
    assert [line.split()[0] for line in said.out.splitlines()] == ["openmpi5", "intelmpi"]
