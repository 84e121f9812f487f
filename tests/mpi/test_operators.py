# SPDX-License-Identifier: BSD-3-Clause
"""Reductions by operators and of types that onecopy has no arithmetic of."""

from __future__ import annotations

import pytest
from mpi.programs import MakeProgram
from mpi.stats import served, stats
from runner import RANK, Runner

#: Calls of the program that are the MPI's: wrong ones, and users' operators on numbers.
LEFT = 6 + 5 + 2

#: What an MPI says it takes, and ends in.
ENDS_IN = {
    "debian": [f"MPIX_C_FLOAT16.{op}" for op in ("sum", "prod", "max", "min")],
    "mpich": [f"MPIX_BFLOAT16.{op}" for op in ("prod", "max", "min")],
}


@pytest.mark.parametrize("setting", ["heap", "staged"])
def test_operators(runner: Runner, program: MakeProgram, setting: str) -> None:
    """Users' operators, and types that only the MPI can reduce: in rank order. Wrong ones are the MPI's to report."""
    path = runner.cwd / "stats"
    env = {"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path), "ONECOPY_MECH": setting}
    alone = runner.mpirun(3, program("operators"), "alone", preload=False).stdout
    finished = runner.mpirun(3, program("operators"), env=env)
    assert finished.stdout == alone
    calls = int(finished.stdout.splitlines()[-1])
    assert calls >= 25
    for line in stats(path):
        assert sum(call["served"] for call in line["calls"].values()) == calls
        assert sum(cell["calls"] for cell in line["cells"] if cell["outcome"] == "operator") == LEFT


@pytest.mark.parametrize("setting", ["heap", "staged"])
def test_optional_types(runner: Runner, program: MakeProgram, setting: str) -> None:
    """Types that an MPI may have, such as halves: what is served of them is what the MPI alone makes of them."""
    path = runner.cwd / "stats"
    env = {"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path), "ONECOPY_MECH": setting}
    command = (program("optional"), *ENDS_IN.get(runner.mpi.name, ()))
    alone = runner.mpirun(2, *command, preload=False).stdout
    assert runner.mpirun(2, *command, env=env).stdout == alone
    assert "MPI_C_BOOL lor scan" in alone
    assert all(calls > 0 for calls in served(path, "scan"))


@pytest.mark.parametrize("where", ["one", "between"])
def test_same_types(runner: Runner, program: MakeProgram, where: str) -> None:
    """By which constructors ranks have made a type does not decide who reduces it; between groups it is the MPI."""
    path = runner.cwd / "stats"
    runner.mpirun(4, program("sametypes"), where, env={"ONECOPY_STATS": str(path)}, timeout=60)
    assert all(calls > 0 if where == "one" else calls == 0 for calls in served(path, "allreduce"))


def test_unequal_mpi(runner: Runner, program: MakeProgram) -> None:
    """A rank whose MPI does not look at arguments cannot tell what it reduces: no rank is to count on it."""
    script = f'[ "{RANK}" != 0 ] || export OMPI_MCA_mpi_param_check=0; exec "$0" right'
    path = runner.cwd / "stats"
    env = {"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)}
    runner.mpirun(3, "sh", "-c", script, program("operators"), env=env, timeout=60)
    assert not any(call["served"] for line in stats(path) for call in line["calls"].values())


@pytest.mark.parametrize("ranks", [2, 4])
def test_one_buffer(runner: Runner, program: MakeProgram, ranks: int) -> None:
    """A send buffer that is the receive buffer, too, is served as if in place, by whichever ranks."""
    path = runner.cwd / "stats"
    runner.mpirun(ranks, program("onebuffer"), env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "reduce_scatter") == [30] * ranks
