# SPDX-License-Identifier: BSD-3-Clause
"""What every test gets: the build directory, programs and mpirun under watch, and one closing line for machines."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import longform
import pytest
import shm
import workers
from job import Finished
from runner import Runner, build_dir
from workers import FileScheduling


def pytest_configure(config: pytest.Config) -> None:
    """One seed for all random tests of a run, which workers inherit: another for each commit, so that what is found
    there is found again. Each worker has its own /dev/shm."""
    shm.take()
    if not hasattr(config, "workerinput") and not os.environ.get("ONECOPY_TEST_SEED"):
        os.environ["ONECOPY_TEST_SEED"] = str(seed_of_commit(config.rootpath))


def seed_of_commit(checkout: Path) -> int:
    """Any number outside a checkout."""
    try:
        argv = ["git", "-C", str(checkout), "rev-parse", "--short=8", "HEAD"]
        return int(subprocess.run(argv, check=True, capture_output=True, text=True).stdout, 16) % 2**32
    except (OSError, subprocess.CalledProcessError):
        return random.SystemRandom().randrange(2**32)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> FileScheduling:
    return FileScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    workers.arrange(items, config.rootpath)


def pytest_runtest_setup(item: pytest.Item) -> None:
    longform.skip_unless_asked(item)


@pytest.fixture(scope="session")
def build() -> Path:
    """The build directory: $ONECOPY_BUILD, or build/ in the checkout."""
    path = build_dir()
    if not (path / "build.ninja").exists():
        pytest.fail(f"no build in {path}: run `make` first, or set ONECOPY_BUILD")
    return path


@pytest.fixture
def runner(build: Path, tmp_path: Path) -> Iterator[Runner]:
    one = Runner(build, tmp_path)
    yield one
    one.close()


@pytest.fixture
def mpirun(runner: Runner) -> Callable[..., Finished]:
    """mpirun(ranks, program, *args, env=, preload=True, timeout=60, check=True)"""
    if not shutil.which("mpirun"):
        pytest.fail("mpirun is missing: run `make deps`")
    return runner.mpirun


_counts = {"passed": 0, "failed": 0, "skipped": 0}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # A set-up or tear-down that breaks is a failure; only the call itself can pass.
    if report.failed or report.skipped or report.when == "call":
        _counts[report.outcome] += 1


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _counts["failed"] += 1


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    # A run in which everything was skipped has shown nothing.
    if exitstatus == 0 and _counts["passed"] == 0 and not session.config.option.collectonly:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or config.option.collectonly:
        return
    print(f"random tests had ONECOPY_TEST_SEED={os.environ.get('ONECOPY_TEST_SEED')}")
    print("{passed} passed, {failed} failed, {skipped} skipped".format_map(_counts))
