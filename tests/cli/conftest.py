# SPDX-License-Identifier: BSD-3-Clause
"""The command under test, and small programs for it, made by the C compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., subprocess.CompletedProcess[str]]

#: Stands for a preload library: says that it was loaded by a report, as a rank does at MPI_Finalize.
STUB = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((destructor)) static void report(void)
{
	FILE *out = getenv("ONECOPY_STATS") ? fopen(getenv("ONECOPY_STATS"), "a") : NULL;

	if (!out || !getenv("STUB_REPORTS"))
		return;
	fprintf(out, "{\\"rank\\":0,\\"nranks\\":1,\\"version\\":\\"0.1.0\\",\\"heap\\":\\"\\",");
	fprintf(out, "\\"calls\\":{\\"bcast\\":{\\"served\\":10,\\"passed\\":3,\\"bytes\\":2048}},");
	fprintf(out, "\\"mech\\":{\\"heap\\":{\\"calls\\":10,\\"bytes\\":2048}}}\\n");
	fclose(out);
}
"""


def compiled(path: Path, source: str, *flags: str | Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.with_name(path.name + ".c")
    text.write_text(source)
    subprocess.run(["cc", "-o", path, text, *flags], check=True)
    return path


@pytest.fixture
def compile_c(tmp_path: Path) -> Callable[..., Path]:
    """compile_c(name, source, *flags): a program or library in the test's directory."""
    return lambda name, source, *flags: compiled(tmp_path / name, source, *flags)


@pytest.fixture(scope="session")
def stub_libs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a library of the preload library's name."""
    directory = tmp_path_factory.mktemp("libs")
    compiled(directory / "libonecopy-openmpi4.so", STUB, "-shared", "-fPIC")
    return directory


@pytest.fixture(scope="session")
def fake_mpi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with libraries of MPIs' sonames and an mpirun that tells its version."""
    directory = tmp_path_factory.mktemp("mpi")
    for soname in ("libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi.so.99"):
        compiled(directory / soname, "int MPI_Init(void) { return 0; }", "-shared", "-fPIC", f"-Wl,-soname,{soname}")
    mpirun = directory / "mpirun"
    mpirun.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "mpirun (Open MPI) 4.1.4"\nexit 0\n')
    mpirun.chmod(0o755)
    return directory


@pytest.fixture
def environment(stub_libs: Path) -> dict[str, str]:
    """The user's, with the stub library and nothing else of onecopy."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("ONECOPY") and k != "LD_PRELOAD"}
    # The wrapper would take .venv's Python; the tests' own has what it needs.
    return {**env, "ONECOPY_LIBDIR": str(stub_libs), "PYTHONPATH": str(ROOT / "cli")}


@pytest.fixture
def onecopy(environment: dict[str, str], tmp_path: Path) -> Command:
    """onecopy(*words, env=, before=[...]): the command, run to its end."""

    def call(
        *words: str | Path, env: dict[str, str] | None = None, before: Sequence[str | Path] = (), timeout: float = 150
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*map(str, before), sys.executable, "-m", "onecopy", *map(str, words)],
            env={**environment, **(env or {})},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return call
