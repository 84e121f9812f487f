# SPDX-License-Identifier: BSD-3-Clause
"""Builds the C and Fortran programs of these tests with the MPI's own compilers, once a session."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from runner import OPEN_MPI, Mpi

HERE = Path(__file__).resolve().parent
CFLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-ffp-contract=off", "-Wall"]

#: Of Fortran, and what gfortran is told for each: mpif.h has no interfaces, so that each call with another type is a
#: mismatch to it.
BINDINGS = {"mpifh": ["-fallow-argument-mismatch", "-w"], "usempi": [], "usempif08": []}
#: The calls of fortran/places.F90, and the bytes of the get that each rank makes.
PLACES = {"bcast": 1, "allgather": 2, "scatter": 2, "alltoall": 1, "reduce": 1, "gather": 1, "reduce_scatter": 1}
GOT = 20000 * 4

MakeProgram = Callable[..., Path]


class Programs:
    def __init__(self, where: Path, mpi: Mpi = OPEN_MPI) -> None:
        self.where = where
        self.mpi = mpi

    def build(self, name: str, sources: Sequence[str], *flags: str, compiler: str = "mpicc") -> Path:
        """The program `name`, from files of this directory. Fails the test when it does not compile."""
        program = self.where / name
        if program.exists():
            return program
        wrapper = {"mpicc": self.mpi.mpicc, "mpifort": self.mpi.mpifort}.get(compiler, compiler)
        if not shutil.which(wrapper):
            pytest.fail(f"{wrapper} is missing: run `make deps`")
        options = CFLAGS if compiler in ("mpicc", "cc") else ["-O1"]
        options = [*options, *(self.mpi.cflags if compiler == "mpicc" else ())]
        modules = ["-J", str(self.where)] if compiler == "mpifort" else []
        command = [
            wrapper,
            *options,
            *modules,
            "-o",
            str(program),
            *[str(HERE / source) for source in sources],
            *flags,
        ]
        env = {**os.environ, **self.mpi.env}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
        return program

    def with_allocator(self, name: str, *options: str) -> Path:
        """The program of hazards/<name>.c, linked to an allocator of its own."""
        library = f"lib{name}-allocator.so"
        directory = self.build(library, ["hazards/allocator.c"], "-shared", "-fPIC", *options).parent
        flags = [f"-L{directory}", "-Wl,--no-as-needed", f"-l:{library}", f"-Wl,-rpath,{directory}"]
        return self.build(name, [f"hazards/{name}.c"], *flags, *options)

    def places(self, binding: str, *flags: str) -> Path:
        source = ["fortran/places.F90"]
        return self.build(f"places-{binding}", source, f"-D{binding.upper()}", *flags, compiler="mpifort")

    def driver(self) -> Path:
        sources = sorted(str(path.relative_to(HERE)) for path in (HERE / "driver").glob("*.c"))
        return self.build("driver", sources, "-lpthread", "-lm")
