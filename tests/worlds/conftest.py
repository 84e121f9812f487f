# SPDX-License-Identifier: BSD-3-Clause
"""Every MPI: the one in PATH, and the others (tests/mpis.py)."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import mpis
import pytest
from each.conftest import programs, runner
from job import output_of
from mpi.programs import MakeProgram, Programs
from onecopy import peers
from runner import OPEN_MPI, Mpi

__all__ = ["programs", "runner"]

HERE = Path(__file__).resolve().parent
#: Of mpi4py.
VERSION = "4.1.2"


@pytest.fixture(scope="session", params=(OPEN_MPI.name, *mpis.NAMES))
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return OPEN_MPI if request.param == OPEN_MPI.name else mpis.find_or_skip(request.param)


@pytest.fixture
def program(programs: Programs) -> MakeProgram:
    """Builds <name>.c of this directory."""

    def make(name: str, *flags: str) -> Path:
        return programs.build(name, [str(HERE / f"{name}.c")], *flags)

    return make


def pip(*words: str | Path) -> None:
    """Skips the test where what is wanted is not to be had."""
    done = output_of((sys.executable, "-m", "pip", *words, "--quiet", "--no-deps"), 600)
    if done.returncode:
        pytest.skip(f"pip {' '.join(map(str, words))}: {done.stderr.strip().splitlines()[-1]}")


@pytest.fixture(scope="session")
def mpi4py() -> Path:
    """A directory of its package, and of its tests as `test`."""
    there = peers.cache() / f"mpi4py-{VERSION}"
    if not (there / ".complete").exists():
        shutil.rmtree(there, ignore_errors=True)
        there.mkdir(parents=True)
        pip("install", "--upgrade", "--target", there, f"mpi4py=={VERSION}")
        pip("download", "--no-binary", "mpi4py", "--dest", there, f"mpi4py=={VERSION}")
        (packed,) = there.glob("mpi4py-*.tar.gz")
        shutil.unpack_archive(packed, there)
        (there / f"mpi4py-{VERSION}/test").replace(there / "test")
        (there / ".complete").touch()
    return there
