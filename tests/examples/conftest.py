# SPDX-License-Identifier: BSD-3-Clause
"""The examples that are MPI programs: compiled as their heads say, what they print read."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from runner import ROOT, Runner


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """compiled(name, *libraries)"""

    def compile_example(name: str, *libraries: str) -> Path:
        program = tmp_path_factory.mktemp(name) / name
        flags = ["-O3", "-march=native", "-Wall", "-Wextra", "-Werror"]
        source = ROOT / "examples" / name / f"{name}.c"
        subprocess.run(["mpicc", *flags, "-o", program, source, *libraries], check=True)
        return program

    return compile_example


@pytest.fixture
def values(runner: Runner) -> Callable[..., dict[str, str]]:
    """values(ranks, program, *args, preload=): what it printed, by name"""

    def run(ranks: int, *argv: str | Path, preload: bool) -> dict[str, str]:
        done = runner.mpirun(ranks, *argv, preload=preload)
        return dict(line.split(" ", 1) for line in done.stdout.splitlines())

    return run
