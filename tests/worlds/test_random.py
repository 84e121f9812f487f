# SPDX-License-Identifier: BSD-3-Clause
"""Random collectives of programs that are not C's: Fortran's, through each of its bindings, and Python's, with buffers
and with objects. They leave the same bytes as with the MPI alone.

ONECOPY_TEST_EXAMPLES=n makes n runs of each, ONECOPY_TEST_SEED repeats one."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import hypothesis
import longform
import numpy as np
import pytest
from each.test_collectives import without_in_place
from each.test_fortran import flags
from hypothesis import HealthCheck, Phase, given, settings
from job import JobError, output_of
from mpi.programs import BINDINGS, Programs
from mpi.script import Script, scripts
from mpi.stats import stats
from mpi.test_differential import SEED, served_at_least
from onecopy import peers
from runner import NO_SINGLE_COPY, OPEN_MPI, Runner
from worlds.test_mpi4py import library, python

HERE = Path(__file__).resolve().parent
EXAMPLES = longform.rounds("ONECOPY_TEST_EXAMPLES", 1, 4)
RANKS = 3
#: Rounds of a Fortran program.
ROUNDS = 300 if longform.ASKED else 60
#: Whose mpi4py Debian's is.
DEBIAN = Path("/usr/bin/python3")
SETTINGS = {"default": {}, "all": {"ONECOPY_MIN": "1"}} | (
    {"heap off": {"ONECOPY_MIN": "1", "ONECOPY_HEAP": "off"}} if longform.ASKED else {}
)
#: What the short form has of Fortran: each binding, each MPI of Debian's.
SHORT = {("openmpi", "mpifh"), ("openmpi", "usempif08"), ("debian", "usempi")}


def report_of(runner: Runner, name: str) -> Path:
    return runner.cwd / f"{name.replace(' ', '-')}.stats"


def digests(
    runner: Runner, ranks: int, argv: Sequence[str | Path], name: str, env: Mapping[str, str], preload: bool | str
) -> list[list[str]]:
    """What each rank tells of each line or round."""
    out = runner.cwd / name.replace(" ", "-")
    report = report_of(runner, name)
    report.unlink(missing_ok=True)
    words = [out if word == "OUT" else word for word in argv]
    more = {**NO_SINGLE_COPY, "ONECOPY_STATS": str(report), **env}
    runner.mpirun(ranks, *words, env=more, preload=preload, timeout=240)
    return [Path(f"{out}.{rank}").read_text().splitlines() for rank in range(ranks)]


def compare(
    runner: Runner,
    ranks: int,
    argv: Sequence[str | Path],
    least: Mapping[str, int],
    preload: bool | str = True,
    env: Mapping[str, str] | None = None,
) -> None:
    """@least: calls that each rank is served at least, under each of SETTINGS; @env: for all of them, and alone."""
    print(f"ONECOPY_TEST_SEED={SEED}, {ranks} ranks: {' '.join(map(str, argv))}")
    common = env or {}
    try:
        alone = digests(runner, ranks, argv, "alone", common, False)
    except JobError as trouble:
        if not runner.mpi.name.startswith("intelmpi"):  # which crashes now and then
            raise
        pytest.skip(f"{runner.mpi.name} alone does not get through: {str(trouble)[-300:]}")
    for name, setting in SETTINGS.items():
        ours = digests(runner, ranks, argv, name, {**common, **setting}, preload)
        for rank, (mine, theirs) in enumerate(zip(ours, alone, strict=True)):
            assert len(mine) == len(theirs)
            for line, (own, other) in enumerate(zip(mine, theirs, strict=True), 1):
                assert own == other, f"{name}, rank {rank}, line {line}"
        lines = stats(report_of(runner, name))
        served = [sum(call["served"] for call in line["calls"].values()) for line in lines]
        assert len(served) == ranks
        assert min(served) >= least[name], f"{name}: {served}"


@pytest.mark.timeout(600 * EXAMPLES)
@pytest.mark.parametrize("binding", BINDINGS)
def test_fortran(runner: Runner, programs: Programs, binding: str) -> None:
    """fortran/random.F90, of which each binding is the same source."""
    if not longform.ASKED and (runner.mpi.name, binding) not in SHORT:
        pytest.skip("long: part of `make test-all`")
    options = [f"-D{binding.upper()}", *flags(runner.mpi, binding)]
    program = programs.build(f"random-{binding}", ["fortran/random.F90"], *options, compiler="mpifort")
    least = {name: ROUNDS // 4 if env else 1 for name, env in SETTINGS.items()}
    # Ranks whose types differ are an error to MPICH and its kin, which look at them.
    alike = [] if runner.mpi.abi == "openmpi4" else ["alike"]
    if runner.mpi.name == "debian":
        alike.append("careful")
    for example in range(EXAMPLES):
        compare(runner, RANKS, [program, str((SEED + example) % 2**32), str(ROUNDS), "OUT", *alike], least)


def interpreter(runner: Runner, package: str, request: pytest.FixtureRequest) -> tuple[Path, dict[str, str]]:
    """A Python, and where it is to look for mpi4py, NumPy and these tests."""
    both = f"{Path(np.__file__).parents[1]}:{HERE.parent}"
    if package == "pypi":
        if runner.mpi.name not in (OPEN_MPI.name, *peers.PACKAGES):
            pytest.skip(f"the package of mpi4py is not built for {runner.mpi.name}")
        return python(runner.mpi), {"PYTHONPATH": f"{request.getfixturevalue('mpi4py')}:{both}"}
    if runner.mpi.name != OPEN_MPI.name:
        pytest.skip("Debian's mpi4py is built for its Open MPI")
    env = {"PYTHONPATH": both}
    look = output_of((DEBIAN, "-c", "import mpi4py, numpy"), 60, env={**os.environ, **env})
    if look.returncode:
        pytest.skip(f"packaging/install-deps test: {look.stderr.strip().splitlines()[-1]}")
    return DEBIAN, env


def for_python(runner: Runner, script: Script) -> Script:
    """Some of the calls with objects, and none that the MPI alone does not survive."""
    lines = list(script.lines)
    if runner.mpi.name.startswith("intelmpi"):
        lines = without_in_place(lines, "alltoall[vw]", r"\S+")
    if runner.mpi.name == "mpich":  # "Invalid datatype", where types have gaps and messages are passed on
        gaps = re.compile(r"^call (scatter|gather) .* (short|long|double|ldouble)_int ")
        lines = [line for line in lines if not gaps.search(line)]
    drawn = random.Random(SEED)
    for i, line in enumerate(lines):
        if line.startswith("call ") and drawn.random() < 0.3:
            lines[i] = line.replace("call", "object", 1)
    if runner.mpi.abi != "openmpi4":
        lines.append("alike")
    return Script(script.ranks, tuple(lines))


@pytest.mark.parametrize(
    "package", [longform.param("debian", short=True, minutes=1), longform.param("pypi", short=False, minutes=1)]
)
@pytest.mark.timeout(600 * EXAMPLES)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@hypothesis.seed(SEED)
@given(script=scripts(max_lines=120, max_ranks=4))
def test_mpi4py(runner: Runner, request: pytest.FixtureRequest, package: str, script: Script) -> None:
    binary, env = interpreter(runner, package, request)
    script = for_python(runner, script)
    text = runner.cwd / "script"
    text.write_text(script.text())
    program: list[str | Path] = [binary, HERE / "scripted.py", text, "OUT"]
    # What C's driver does in other lines is more than is done here.
    calls = Script(script.ranks, tuple(line for line in script.lines if line.startswith("call ")))
    least = {name: served_at_least(runner.mpi, calls, setting) for name, setting in SETTINGS.items()}
    print(script.text())
    compare(runner, script.ranks, program, least, library(runner) if package == "pypi" else True, env)
