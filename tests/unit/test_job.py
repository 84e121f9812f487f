# SPDX-License-Identifier: BSD-3-Clause
"""The watch over jobs finds what they leave, and that alone."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

import pytest
from job import JobError
from runner import Runner
from shm import SHM


@pytest.fixture
def name() -> str:
    return f"onecopy-{uuid.uuid4().hex}"


@pytest.mark.skipif(not SHM.is_dir(), reason="there is no /dev/shm")
def test_file_left(runner: Runner, name: str) -> None:
    path = SHM / name
    with pytest.raises(JobError, match=f"left behind: .*{name}"):
        runner.start("touch", path).wait(10, grace=0.1)
    assert not path.exists()


@pytest.mark.skipif(not SHM.is_dir(), reason="there is no /dev/shm")
def test_file_in_use(runner: Runner, name: str) -> None:
    """Another's, who has it open."""
    with (SHM / name).open("w"):
        before = runner.start("true")
        before._shm_before = set()
        before.wait(10, grace=0.1)
    (SHM / name).unlink()


def test_process_left(runner: Runner) -> None:
    with pytest.raises(JobError, match=r"left behind: processes \[[0-9]"):
        runner.start("sh", "-c", "sleep 60 &").wait(10, grace=0.1)


def test_workers(runner: Runner, name: str) -> None:
    """What one worker of several leaves is not seen by others, where it may mount."""
    code = "import sys, shm; shm.take(); shm.is_own() and (shm.SHM / sys.argv[1]).touch(); print(shm.is_own())"
    env = {"PYTHONPATH": str(Path(__file__).resolve().parent.parent), "PYTEST_XDIST_WORKER_COUNT": "2"}
    if runner.run(sys.executable, "-c", code, name, env=env).stdout == "False\n":
        pytest.skip("no rights to mount a /dev/shm for one worker")
