# SPDX-License-Identifier: BSD-3-Clause
"""HPC Challenge on every MPI: it judges its results, and onecopy changes none of its verdicts."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import sources
from job import output_of
from mpi.stats import served
from runner import Mpi, Runner

pytestmark = [pytest.mark.long(4), pytest.mark.timeout(1800)]

#: As hpcc's own input has it, a grid of two rows.
RANKS = 4
SETTINGS: dict[str, dict[str, str]] = {"default": {}, "all": {"ONECOPY_MIN": "1"}}
#: What its makefiles are told of a machine and its MPI.
MACHINE = """
ARCH = tests
TOPdir = ../../..
INCdir = $(TOPdir)/include
BINdir = $(TOPdir)/bin/$(ARCH)
LIBdir = $(TOPdir)/lib/$(ARCH)
HPLlib = $(LIBdir)/libhpl.a
F2CDEFS = -DAdd_ -DF77_INTEGER=int -DStringSunStyle
HPL_INCLUDES = -I$(INCdir) -I$(INCdir)/$(ARCH)
HPL_LIBS = $(HPLlib) -l:libblas.so.3 -lm
HPL_DEFS = $(F2CDEFS) $(HPL_INCLUDES)
SHELL = /bin/sh
CD = cd
CP = cp
LN_S = ln -s
MKDIR = mkdir
RM = rm -f
TOUCH = touch
CC = {mpicc}
CCNOOPT = $(HPL_DEFS) -w
CCFLAGS = $(HPL_DEFS) -O2 -w
LINKER = $(CC)
LINKFLAGS = $(CCFLAGS)
ARCHIVER = ar
ARFLAGS = r
RANLIB = echo
"""
#: Calls that MPI 3 has under other names alone.
RENAMED = {"MPI_Address": "MPI_Get_address", "MPI_Type_struct": "MPI_Type_create_struct"}
#: What its report says of whether results are right.
VERDICTS = r"PASSED|FAILED|Found \d+ errors|\d+ tests completed and \w+ residual checks|Success=\d|with error \d+"


@pytest.fixture(scope="module")
def hpcc(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its directory, built by the MPI's compiler."""
    there = tmp_path_factory.mktemp(f"hpcc-{mpi.name}") / "hpcc"
    shutil.copytree(sources.unpacked("hpcc"), there)
    for path in there.rglob("*.c"):
        text = path.read_text(errors="surrogateescape")
        for before, name in RENAMED.items():
            text = re.sub(rf"\b{before}\b", name, text)
        path.write_text(text, errors="surrogateescape")
    (there / "hpl/Make.tests").write_text(MACHINE.format(mpicc=" ".join((mpi.mpicc, *mpi.cflags))))
    done = output_of(("make", "-C", there, "arch=tests"), 600, env={**os.environ, **mpi.env})
    assert (there / "hpcc").exists(), done.stdout[-2000:] + done.stderr[-2000:]
    return there


def verdicts(runner: Runner, hpcc: Path, name: str, env: Mapping[str, str] | None) -> list[str]:
    """Of a run, in its order. @env: what onecopy is told, nothing without it."""
    there = runner.cwd / name
    there.mkdir()
    shutil.copy(hpcc / "_hpccinf.txt", there / "hpccinf.txt")
    told = None if env is None else {"ONECOPY_STATS": f"{there}/stats", **env}
    command = ("sh", "-c", 'cd "$0" && exec "$1"', there, hpcc / "hpcc")
    runner.mpirun(RANKS, *command, env=told, preload=env is not None, timeout=300)
    return re.findall(VERDICTS, (there / "hpccoutf.txt").read_text(errors="replace"))


def test_hpcc(runner: Runner, hpcc: Path) -> None:
    alone = verdicts(runner, hpcc, "alone", None)
    assert "Success=1" in alone
    assert "FAILED" not in alone
    for name, setting in SETTINGS.items():
        assert verdicts(runner, hpcc, name, setting) == alone
        for call in ("bcast", "allreduce", "alltoall"):
            assert min(served(runner.cwd / name / "stats", call)) > 0 or name == "default", call
