# SPDX-License-Identifier: BSD-3-Clause
"""Programs that know nothing of MPI, run under the preload with its heap awake."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import longform
import pytest
from job import Finished
from runner import OPEN_MPI, PRELOAD, Runner

HERE = Path(__file__).resolve().parent

ABIS = (OPEN_MPI.abi, "mpich", "mpi5")

# What a program of these directories is compiled with, if not cc alone.
COMPILERS = {"hooks_openmpi": "mpicc"}
SHARED = {"odd_malloc", "deep_library"}
SANITIZED = {"watched": ["-g", "-fsanitize=thread"]}
LIBRARIES = {
    "hooks_openmpi": ["-lopen-pal"],
    "hooks_ucx": ["-lucm", "-lucs"],
    # The C library first: behind UCX there is none then, so it looks for functions in all, and finds the preload's.
    "hooks_ucx_behind": ["-Wl,--no-as-needed", "-lc", "-lucm", "-lucs"],
}
SOURCES = {"hooks_ucx_behind": "hooks_ucx"}

# The heap wakes up in programs in which this name can be found.
MARKER = "int MPI_Get_version(int *v, int *s) { *v = 3; *s = 1; return 0; }\n"


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The program of tests/conform/<room>/<name>.c, or "marker", a library that makes any program look like MPI's."""
    directory = tmp_path_factory.mktemp("programs")

    def compile_one(name: str) -> Path:
        program = directory / name
        if program.exists():
            return program
        if name == "marker":
            source, flags = directory / "marker.c", ["-shared", "-fPIC"]
            source.write_text(MARKER)
        else:
            source = next(HERE.glob(f"*/{SOURCES.get(name, name)}.c"))
            flags = ["-shared", "-fPIC", "-fno-builtin"] if name in SHARED else ["-rdynamic", "-pthread"]
            flags += SANITIZED.get(name, [])
        options = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Werror", *flags]
        argv = [COMPILERS.get(name, "cc"), *options, "-o", str(program), str(source), *LIBRARIES.get(name, [])]
        subprocess.run(argv, check=True)
        return program

    return compile_one


@pytest.fixture(params=[longform.param(abi, short=abi == OPEN_MPI.abi, minutes=0.1) for abi in ABIS])
def library(request: pytest.FixtureRequest, build: Path) -> Path:
    """The preload library of each ABI: malloc is the same code in all."""
    path: Path = build / PRELOAD.format(abi=request.param)
    return path


@pytest.fixture
def preloaded(runner: Runner, library: Path, compiled: Callable[[str], Path]) -> Callable[..., Finished]:
    """preloaded(program, *args, limits="", env=, timeout=60, check=True): a C program of these directories, or a Python
    script of them, under the preload; `limits` are words for the shell's ulimit."""

    def run(
        program: str,
        *args: str,
        limits: str = "",
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
        check: bool = True,
    ) -> Finished:
        preload = str(library)
        argv = [program, *args]
        if program.endswith(".py"):
            argv[0] = str(next(HERE.glob(f"*/{program}")))
            preload += f":{compiled('marker')}"
            argv = [sys.executable, *argv]
        else:
            argv[0] = str(compiled(program))
        # The shell only sets the limits: it must not run under the preload itself.
        shell = f'ulimit {limits} && LD_PRELOAD={preload} exec "$@"' if limits else f'LD_PRELOAD={preload} exec "$@"'
        return runner.run("sh", "-c", shell, "sh", *argv, env=env, timeout=timeout, check=check)

    return run
