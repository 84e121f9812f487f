# SPDX-License-Identifier: BSD-3-Clause
"""Calls with large counts, MPI_Bcast_c and its sisters. tests/mpi/driver makes small ones at random."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from mpi.programs import MakeProgram, Programs
from mpi.stats import served
from mpi.test_layouts import available
from runner import OPEN_MPI, Runner

FUNCTION = b"PMPI_Bcast_c\0"


@pytest.fixture(autouse=True)
def large_counts(runner: Runner) -> None:
    if runner.mpi.abi == OPEN_MPI.abi:
        pytest.skip("Open MPI 4 and 5 have no calls with large counts")


def test_far_apart(runner: Runner, program: MakeProgram) -> None:
    """Blocks of one buffer more than 2 GiB from each other."""
    path = runner.cwd / "stats"
    runner.mpirun(3, program("far"), env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    for call in ("scatterv", "gatherv", "allgatherv", "alltoallv"):
        assert served(path, call) == [1] * 3


def test_tool(runner: Runner, program: MakeProgram) -> None:
    path = runner.cwd / "stats"
    runner.mpirun(2, program("tool_large"), env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "allgather") == [1] * 2


def test_fortran(runner: Runner, programs: Programs) -> None:
    if runner.mpi.name != "debian" or not shutil.which(runner.mpi.mpifort):
        pytest.skip(f"{runner.mpi.name} has no mpi_f08 for gfortran")
    binary = programs.build("largef08", ["fortran/largef08.f90"], compiler="mpifort")
    path = runner.cwd / "stats"
    runner.mpirun(3, binary, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    for call in ("bcast", "allreduce", "allgatherv"):
        assert served(path, call) == [1] * 3


@pytest.mark.long(2)
def test_large(runner: Runner, program: MakeProgram) -> None:
    """More elements than an int counts."""
    if available() < 14 << 30:
        pytest.skip("wants 14 GiB of memory to be free")
    path = runner.cwd / "stats"
    runner.mpirun(2, program("large"), env={"ONECOPY_STATS": str(path)}, timeout=240)
    assert served(path, "bcast") == served(path, "allreduce") == [1, 1]


def linked_mpi(program: Path, env: Mapping[str, str]) -> Path:
    """The library that the program gets."""
    shown = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True, env=env).stdout
    found = re.search(r"libmpi(?:ch|_abi)?\.so\S* => (\S+)", shown)
    assert found, shown
    return Path(found[1])


def test_mpi_without(runner: Runner, program: MakeProgram) -> None:
    """An MPI of the ABI from before MPI 4: this one's library, in which one function has another name."""
    binary = program("lacks")
    whole = linked_mpi(binary, runner.environment())
    content = whole.read_bytes()
    assert FUNCTION in content
    (runner.cwd / whole.name).write_bytes(content.replace(FUNCTION, FUNCTION.replace(b"_c", b"_?")))
    search = f"{runner.cwd}:{whole.parent}:{whole.parent / 'mpich'}"
    done = runner.mpirun(2, binary, env={"ONECOPY_MIN": "1", "LD_LIBRARY_PATH": search})
    assert done.stdout.split() == ["unsupported"] * 2
