# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's package of PyPI, which is for every MPI of two binary interfaces (MPI4PY_BUILD_MPIABI): the library that
MPI4PY_LIBMPI names when it is imported is an MPI that no other word of the command and no PATH tells of."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli.test_wheel import PROGRAM
from job import output_of
from mpi.programs import MakeProgram
from onecopy import mpi as mpis
from onecopy import peers
from runner import OPEN_MPI, ROOT, Runner

pytestmark = [pytest.mark.long(1), pytest.mark.timeout(1200)]

RANKS = 2
CALLS = ("bcast", "allreduce", "allgather")
#: Says then which MPI it was.
CODE = """
import runpy, sys
runpy.run_path(sys.argv[1])
print(*{line.split()[-1] for line in open("/proc/self/maps") if "/libmpi" in line})
"""


def library_of(program: Path) -> Path:
    """The MPI's."""
    return next(Path(file) for name, file in mpis.linked_libraries(program) if file and mpis.LIBRARY.match(name))


def started(runner: Runner, package: Path, library: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in runner.environment().items() if not name.startswith("LD_")}
    env |= {"PATH": os.environ["PATH"], "PYTHONPATH": str(package), "MPI4PY_LIBMPI": str(library)}
    env["ONECOPY_BUILD"] = str(runner.build)
    launcher = shutil.which(runner.mpi.mpirun) or runner.mpi.mpirun
    command = (launcher, "-n", str(RANKS), sys.executable, "-c", CODE, PROGRAM)
    return output_of([ROOT / "onecopy", "run", "--verbose", "--stats=json", *command], 300, env=env, cwd=runner.cwd)


def test_library_at_run_time(runner: Runner, mpi4py: Path, program: MakeProgram) -> None:
    if runner.mpi.name not in (OPEN_MPI.name, *peers.PACKAGES):
        pytest.skip(f"the package of mpi4py is not built for {runner.mpi.name}")
    library = library_of(program("copies"))
    done = started(runner, mpi4py, library)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("right") == 1
    assert done.stdout.count(str(library.resolve())) == RANKS
    said = done.stderr.splitlines()
    chosen = runner.library("preload/libonecopy-{abi}-mpi3.so" if runner.open_mpi() == 4 else True)
    assert f"onecopy: preloads {chosen}" in said
    (job,) = json.loads(said[-1])["jobs"]
    assert [[rank["calls"][call]["served"] > 0 for call in CALLS] for rank in job["ranks"]] == [[True] * 3] * RANKS
