# SPDX-License-Identifier: BSD-3-Clause
"""Why a run left no statistics: from how the command ended and what its programs are."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from onecopy import elf, mpi

PYTHON = re.compile(r"^python[\d.]*$")
#: Starts programs that are not on its own command line, or not as words of it.
STARTER = re.compile(r"^(sh|bash|dash|zsh|ksh|env|nice|time|timeout|taskset|numactl|perl|make|srun|python[\d.]*)$")


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def ending(status: int) -> str:
    """What a wait status says; launchers and shells report a signal of their child as 128 and its number."""
    if os.WIFSIGNALED(status):
        return f"was ended by {signal_name(os.WTERMSIG(status))}"
    code = os.WEXITSTATUS(status)
    if 128 < code < 128 + signal.NSIG:
        return f"ended with status {code} ({signal_name(code - 128)})"
    return f"ended with status {code}"


def program_of(command: Sequence[str]) -> Path | None:
    """The last program in the command line before its arguments: the first that is no launcher."""
    return next((path for path in mpi.executables(command) if not mpi.is_launcher(path)), None)


def lacks_mpi4py(python: Path) -> bool:
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('mpi4py') is None)"
    try:
        done = subprocess.run([str(python), "-c", look], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 1


def kind(path: Path) -> str:
    """Why a program by itself calls no MPI that we would see; "" when it may well."""
    if PYTHON.match(path.name) and lacks_mpi4py(path):
        return f"{path.name} has no mpi4py (Debian's python3 has it in python3-mpi4py)"
    try:
        program = elf.read(path)
    except elf.NotElfError:
        return ""
    if refusal := mpi.refusal_of(path, program):
        return f"{path.name} {refusal.why}, so nothing could be preloaded: {refusal.fix}"
    if STARTER.match(path.name):
        return ""
    if mpi.abi_of_program(path, program) is None:
        if mpi.sends_by_itself(path):
            return f"{path.name} is no MPI program; how its messages were copied, --verbose says at its end"
        return f"{path.name} is no MPI program: it is not linked to an MPI library"
    return ""


def of(command: Sequence[str], status: int, interrupted: int) -> str:
    """Why no rank left a record. @status is the command's wait status, @interrupted a signal that was sent to it."""
    program = program_of(command)
    name = program.name if program else command[0]
    if interrupted:
        return f"interrupted by {signal_name(interrupted)} before any rank was in MPI_Init"
    if program and (why := kind(program)):
        return why
    if status:
        return f"{Path(command[0]).name} {ending(status)} before any rank was in MPI_Init"
    if program and STARTER.match(name):
        return f"{name} started no program that called MPI_Init"
    return f"{name} did not call MPI_Init (MPI sessions without it are left to the MPI)"
