# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark programs: those the build made for the MPI in PATH, or made here with an MPI's own compiler.

bench/programs/programs.txt says which sources each program has.
"""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from onecopy import install, peers

FLAGS = ("-O2", "-std=gnu11", "-D_GNU_SOURCE")


class BuildError(RuntimeError):
    """A program that cannot be built; the text carries the compiler's words."""


def sources(name: str) -> list[Path]:
    directory = install.bench_sources()
    isa = "x86" if platform.machine() in ("x86_64", "i686", "i386") else "none"
    for line in (directory / "programs.txt").read_text().splitlines():
        program, _, files = line.partition(":")
        if program == name:
            return [directory / file for file in files.replace("@isa@", isa).split()]
    raise BuildError(f"{directory / 'programs.txt'} knows no program {name}")


def build(name: str, mpi: peers.Mpi) -> Path:
    """Compiles into the cache, unless what is there is newer than every source."""
    if mpi.mpicc is None:
        raise BuildError(f"no mpicc for {mpi.name} (Debian: apt install libopenmpi-dev)")
    target = peers.cache() / "bench" / mpi.name / name
    needed = sources(name)
    newest = max(path.stat().st_mtime for path in install.bench_sources().iterdir())
    if target.exists() and target.stat().st_mtime > newest:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_suffix(f".{os.getpid()}")
    done = subprocess.run(
        [str(mpi.mpicc), *FLAGS, "-o", str(fresh), *map(str, needed)],
        capture_output=True,
        text=True,
        env=mpi.environment(1),
        check=False,
    )
    if done.returncode:
        raise BuildError(f"{mpi.mpicc} cannot build {name}:\n{done.stderr.strip()}")
    fresh.replace(target)
    return target


def find(name: str, mpi: peers.Mpi) -> Path:
    """The program for an MPI. BuildError when there is none and none can be made."""
    built = install.find(name) if mpi.name == "mpi" else None
    return built or build(name, mpi)
