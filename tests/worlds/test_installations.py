# SPDX-License-Identifier: BSD-3-Clause
"""Installations of MPIs beside each other: `onecopy run` and `onecopy doctor` where the mpirun in PATH is another one's
than the program's. None of it is made up: programs, launchers and libraries are those of the MPIs that are here."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from job import output_of
from mpi.programs import MakeProgram
from onecopy import peers
from runner import OPEN_MPI, ROOT, Runner

RANKS = 2
#: What `copies` makes of each collective.
COPIES = 16

Onecopy = Callable[..., subprocess.CompletedProcess[str]]


def path_of_others(runner: Runner) -> str:
    """PATH where the first mpirun is another MPI's: Debian's Open MPI, or for that one MPICH of PyPI."""
    if runner.mpi.name != OPEN_MPI.name:
        return os.environ["PATH"]
    try:
        return f"{peers.peer('mpich').mpirun.parent}:{os.environ['PATH']}"
    except peers.MissingError as reason:
        pytest.skip(str(reason))


def launcher(runner: Runner) -> Path:
    return Path(shutil.which(runner.mpi.mpirun) or runner.mpi.mpirun)


@pytest.fixture
def onecopy(runner: Runner) -> Onecopy:
    """The command, in the environment of who has another MPI in PATH: nothing of it is about the program's."""
    path = path_of_others(runner)
    first = shutil.which("mpirun", path=path)
    assert first
    assert Path(first).resolve() != launcher(runner).resolve()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ONECOPY", "LD_"))}
    env |= {"PATH": path, "ONECOPY_BUILD": str(runner.build)}
    return lambda *words: output_of([ROOT / "onecopy", *words], 120, env=env, cwd=runner.cwd)


def needs(runner: Runner) -> list[str]:
    """The variables by which the MPI is told something."""
    return [f"{name}={value}" for name, value in runner.mpi.env.items() if name != "PATH"]


def script(runner: Runner, *command: str | Path) -> Path:
    """One that starts a command as the program's MPI wants it."""
    path = runner.cwd / "start"
    lines = ["#!/bin/sh", f"export {shlex.join(needs(runner))}", f"exec {' '.join(map(str, command))}", ""]
    path.write_text("\n".join(lines))
    path.chmod(0o755)
    return path


def expect_served(runner: Runner, done: subprocess.CompletedProcess[str]) -> None:
    """By the library of the program's MPI, each rank of the command's only job."""
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stderr.splitlines()
    assert f"onecopy: preloads {runner.library()}" in said
    (job,) = json.loads(said[-1])["jobs"]
    served = [[rank["calls"][call]["served"] for call in ("bcast", "allgather")] for rank in job["ranks"]]
    assert served == [[COPIES] * 2] * RANKS


RUN = ("run", "--verbose", "--stats=json", "--min", "1")


def test_script(runner: Runner, program: MakeProgram, onecopy: Onecopy) -> None:
    """A script has the launcher; the program is a word of the command, or the script's own."""
    copies = program("copies")
    expect_served(runner, onecopy(*RUN, script(runner, launcher(runner), "-n", str(RANKS), '"$@"'), copies))
    start = script(runner, launcher(runner), "-n", str(RANKS), copies)
    expect_served(runner, onecopy(*RUN, start))
    assert json.loads(onecopy("doctor", "--json", start).stdout)["program"]["preload"] == str(runner.library())


def test_launcher(runner: Runner, program: MakeProgram, onecopy: Onecopy) -> None:
    """The one that doctor names for the program starts it."""
    copies = program("copies")
    facts = json.loads(onecopy("doctor", "--json", copies).stdout)["program"]
    assert facts["preload"] == str(runner.library())
    assert "why" not in facts
    named = shutil.which(facts["launcher"], path=path_of_others(runner))
    assert named
    assert Path(named).parent == launcher(runner).parent
    expect_served(runner, onecopy(*RUN, "env", *needs(runner), facts["launcher"], "-n", str(RANKS), copies))
