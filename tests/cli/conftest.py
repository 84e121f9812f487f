# SPDX-License-Identifier: BSD-3-Clause
"""The command under test, and small programs for it, made by the C compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import hypothesis
import pytest
from job import output_of

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., subprocess.CompletedProcess[str]]

# No test asserts a time: a busy machine makes any example slow.
hypothesis.settings.register_profile("onecopy", deadline=None)
hypothesis.settings.load_profile("onecopy")

#: Stands for a preload library: leaves a record, as a rank does. STUB_REPORTS is the state that it ended in.
STUB = """
#include <stdio.h>
#include <stdlib.h>
#include "record.h"
static struct oc_record record = {
{{OC_RECORD_MAGIC, .world_size = 1, .node_size = 1, .start_ns = 5000000000, .end_ns = 9000000000, .min = 8192,
.credit = 262144, .mech_calls = {10}, .mech_bytes = {2048}, .version = "0.1.0", .host = "here"}},
{{"bcast", "served", 16384, 10, 2048, 4096, 1000000000}, {"bcast", "small", 1, 3, 24, 24, 2000000}},
};
__attribute__((destructor)) static void report(void)
{
	const char *where = getenv("ONECOPY_STATS"), *state = getenv("STUB_REPORTS");
	char path[4096];
	FILE *out;

	if (!where || !state)
		return;
	snprintf(path, sizeof(path), "%sa", where);
	out = fopen(path, "wx");
	if (!out)
		return;
	record.state = atoi(state);
	record.code = 7;
	fwrite(&record, sizeof(record), 1, out);
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
    """A directory with libraries of the preload libraries' names."""
    directory = tmp_path_factory.mktemp("libs")
    include = [f"-I{ROOT / name}" for name in ("mpi", "include")]
    for abi in ("openmpi4", "mpich", "mpi5"):
        compiled(directory / f"libonecopy-{abi}.so", STUB, "-shared", "-fPIC", *include)
    return directory


@pytest.fixture(scope="session")
def fake_mpi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with libraries of MPIs' sonames and an mpirun that tells its version."""
    directory = tmp_path_factory.mktemp("mpi")
    for soname in ("libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1", "libmpi.so.99"):
        compiled(directory / soname, "int MPI_Init(void) { return 0; }", "-shared", "-fPIC", f"-Wl,-soname,{soname}")
    mpirun = directory / "mpirun"
    mpirun.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "mpirun (Open MPI) 4.1.4"\nexit 0\n')
    mpirun.chmod(0o755)
    return directory


@pytest.fixture
def environment(stub_libs: Path) -> dict[str, str]:
    """The user's, with the stub library and nothing else of onecopy."""
    hidden = ("LD_PRELOAD", "PYTHONUNBUFFERED")
    env = {k: v for k, v in os.environ.items() if not k.startswith("ONECOPY") and k not in hidden}
    # The wrapper would take .venv's Python; the tests' own has what it needs.
    return {**env, "ONECOPY_LIBDIR": str(stub_libs), "PYTHONPATH": str(ROOT / "cli")}


@pytest.fixture
def onecopy(environment: dict[str, str], tmp_path: Path) -> Command:
    """onecopy(*words, env=, before=[...]): the command, run to its end."""

    def call(
        *words: str | Path, env: dict[str, str] | None = None, before: Sequence[str | Path] = (), timeout: float = 150
    ) -> subprocess.CompletedProcess[str]:
        argv = [*before, sys.executable, "-m", "onecopy", *words]
        return output_of(argv, timeout, env={**environment, **(env or {})}, cwd=tmp_path)

    return call
