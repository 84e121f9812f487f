# SPDX-License-Identifier: BSD-3-Clause
"""Programs that load an MPI and look its functions up, in C and Python: they find ours, and all else as ever."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mpi.programs import HERE, MakeProgram, Programs
from mpi.stats import served
from runner import Runner

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="dlsym() is left alone on this machine")
HAZARDS = HERE / "hazards"


@pytest.fixture
def library(programs: Programs) -> str:
    """The MPI's library, where the linker's programs find it."""
    plugin = programs.build("plugin.so", ["hazards/plugin.c"], "-shared", "-fPIC")
    env = {**os.environ, **programs.mpi.env}
    said = subprocess.run(["ldd", str(plugin)], capture_output=True, text=True, check=True, env=env).stdout
    found = re.search(r"libmpi(?:ch|_abi)?\.so\.\d+ => (\S+)", said)
    assert found, said
    return found[1]


@pytest.mark.parametrize("more", [[], ["deepbind"]], ids=["local", "deepbind"])
def test_program(runner: Runner, program: MakeProgram, library: str, more: list[str]) -> None:
    binary = program("lookup", "-Wl,--as-needed", "-ldl", "-pthread")
    needed = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True).stdout
    assert "libmpi" not in needed
    path = runner.cwd / "stats"
    runner.mpirun(2, binary, library, *more, preload=False)
    runner.mpirun(2, binary, library, *more, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "bcast") == [20, 20]


@pytest.mark.parametrize("link", [False, True], ids=["name", "link"])
def test_foreign_functions(runner: Runner, library: str, link: bool) -> None:
    """Under another name, too: libmpi.so is a link to it, and then what it is loaded as."""
    if link:
        other = runner.cwd / "libanything.so"
        other.symlink_to(library)
        library = str(other)
    script = HAZARDS / "foreign_functions.py"
    path = runner.cwd / "stats"
    env = {"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)}
    if link:  # what its file's own path leads to
        there = Path(library).resolve().parent
        env["LD_LIBRARY_PATH"] = f"{there}:{there}/mpich:{there}/openmpi:{os.environ.get('LD_LIBRARY_PATH', '')}"
    runner.mpirun(2, sys.executable, script, runner.mpi.abi, library, env=env)
    assert served(path, "bcast") == [20, 20]


def test_weak_references(runner: Runner, program: MakeProgram) -> None:
    """A program that asks so whether the MPI has sessions and large counts is not told that it has because the library
    has them: the one that `onecopy run` chooses for it (tests/cli/test_mpi.py) has not, either."""
    binary = program("weak", "-Wno-deprecated-non-prototype")
    alone = runner.mpirun(2, binary, preload=False).stdout
    library = "preload/libonecopy-openmpi4-mpi3.so" if alone.startswith("0000") else True
    path = runner.cwd / "stats"
    done = runner.mpirun(2, binary, preload=library, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert done.stdout == alone
    assert served(path, "bcast") == [1, 1]
