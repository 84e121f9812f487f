# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own tests, as its source distribution has them, on Open MPI and every MPI of PyPI that is installed: by the
MPI alone, under onecopy as it is, and with all served that can be. None fails that does not fail alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mpi.stats import stats
from onecopy import peers
from runner import OPEN_MPI, Mpi, Runner

pytestmark = [pytest.mark.long(3), pytest.mark.timeout(2400)]

HERE = Path(__file__).resolve().parent
RANKS = 2
#: Modules of its tests that are not run: those that start processes or let them fail, which MPIs alone do not get
#: through, one in which Intel MPI alone waits for ever, and those about the package itself.
LEFT_OUT = {"dynproc", "spawn", "ulfm", "util_sync"}
LEFT_OUT |= {"cffi", "ctypes", "doc", "mpiabi", "mpiapi", "package", "pickle", "toplevel"}
SETTINGS: dict[str, dict[str, str]] = {"default": {}, "all": {"ONECOPY_MIN": "1"}}


def python(mpi: Mpi) -> Path:
    """The interpreter of the MPI's environment, in which mpi4py looks for its libraries."""
    return Path(mpi.mpirun).with_name("python3")


def library(runner: Runner) -> str | bool:
    """What `onecopy run` chooses: mpi4py asks by weak references what the MPI has."""
    old = runner.mpi.name == OPEN_MPI.name and runner.open_mpi() == 4
    return "preload/libonecopy-openmpi4-mpi3.so" if old else True


def verdicts(runner: Runner, mpi4py: Path, name: str, env: dict[str, str] | None) -> list[dict[str, Any]]:
    """Of each rank: what became of each module. @env: what onecopy is told, nothing without it."""
    modules = sorted(path.stem for path in (mpi4py / "test").glob("test_*.py"))
    modules = [module for module in modules if module.removeprefix("test_") not in LEFT_OUT]
    output = runner.cwd / name
    ours = {"PYTHONPATH": str(mpi4py), "ONECOPY_STATS": str(runner.cwd / f"{name}.stats"), **(env or {})}
    command: list[str | Path] = [python(runner.mpi), HERE / "mpi4py_suite.py", mpi4py / "test", output, *modules]
    preload = env is not None and library(runner)
    done = runner.mpirun(RANKS, *command, env=ours, preload=preload, timeout=400, check=env is not None)
    if env is None and done.returncode:
        pytest.skip(f"the MPI alone does not get through them: {done.stderr.strip()[-200:]}")
    ranks = []
    for rank in range(RANKS):
        lines = map(json.loads, output.with_name(f"{name}.{rank}").read_text().splitlines())
        ranks.append({module: (tests, skipped, set(failed)) for module, tests, skipped, failed in lines})
        assert list(ranks[-1]) == modules
    return ranks


def test_own_tests(runner: Runner, mpi4py: Path) -> None:
    if runner.mpi.name not in (OPEN_MPI.name, *peers.PACKAGES):
        pytest.skip(f"the package of mpi4py is not built for {runner.mpi.name}")
    alone = verdicts(runner, mpi4py, "alone", None)
    print("alone:", sum(tests for tests, _, _ in alone[0].values()), "tests")
    for name, setting in SETTINGS.items():
        for rank, (without, within) in enumerate(zip(alone, verdicts(runner, mpi4py, name, setting), strict=True)):
            for module, (tests, skipped, failed) in within.items():
                assert (tests, skipped) == without[module][:2], f"rank {rank}: {module}"
                assert failed <= without[module][2], f"rank {rank}, {name}: {failed - without[module][2]}"
    for line in stats(runner.cwd / "all.stats"):
        assert all(line["calls"][call]["served"] for call in ("bcast", "allreduce", "alltoallw", "reduce_scatter"))
