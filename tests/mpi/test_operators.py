# SPDX-License-Identifier: BSD-3-Clause
"""Reductions by operators and of types that onecopy has no arithmetic of."""

from __future__ import annotations

import pytest
from mpi.programs import MakeProgram
from mpi.stats import stats
from runner import Runner


@pytest.mark.parametrize("setting", ["heap", "staged"])
def test_operators(runner: Runner, program: MakeProgram, setting: str) -> None:
    """Users' operators, and types that only the MPI can reduce: in rank order. Wrong ones are the MPI's to report."""
    path = runner.cwd / "stats"
    env = {"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path), "ONECOPY_MECH": setting}
    alone = runner.mpirun(3, program("operators"), "alone", preload=False).stdout
    finished = runner.mpirun(3, program("operators"), env=env)
    assert finished.stdout == alone
    calls = int(finished.stdout.splitlines()[-1])
    assert calls >= 30
    for line in stats(path):
        assert sum(call["served"] for call in line["calls"].values()) == calls
        assert sum(cell["calls"] for cell in line["cells"] if cell["outcome"] == "operator") == 6
