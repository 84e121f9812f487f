# SPDX-License-Identifier: BSD-3-Clause
"""What ONECOPY_VERBOSE says at the start of a job: once for all ranks of a node."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from mpi.programs import Programs
from runner import Runner


@pytest.fixture
def counted(programs: Programs) -> Path:
    return programs.build("counted", ["hazards/counted.c"])


def said(runner: Runner, binary: Path, ranks: int, env: Mapping[str, str]) -> list[str]:
    finished = runner.mpirun(ranks, binary, env={"ONECOPY_VERBOSE": "1", **env})
    return [line.removeprefix("onecopy: ") for line in finished.stderr.splitlines() if line.startswith("onecopy:")]


def test_what_is_used_is_said_once(runner: Runner, counted: Path) -> None:
    lines = said(runner, counted, 3, {"ONECOPY_MECH": "cma,staged", "ONECOPY_MIN": "4096"})
    assert sum("3 of 3 ranks served" in line and "Open MPI" in line for line in lines) == 1
    assert sum("moves by cma, staged; collectives from 4096 bytes on" in line for line in lines) == 1
    assert all(line.startswith("rank 0: ") for line in lines), lines


def test_the_heap_is_named_where_it_is_used(runner: Runner, counted: Path) -> None:
    assert any("moves by heap, " in line for line in said(runner, counted, 2, {}))
    lines = said(runner, counted, 2, {"ONECOPY_HEAP": "off"})
    assert not any("moves by heap" in line for line in lines)
    assert sum("shared heap: not under malloc, as --no-heap" in line for line in lines) == 1


def test_reasons_that_ranks_share_are_said_once(runner: Runner, counted: Path) -> None:
    lines = said(runner, counted, 3, {"ONECOPY_MECH": "none"})
    assert lines == ["ranks 0-2: not used: ONECOPY_MECH names no mechanism"]
    assert said(runner, counted, 1, {}) == ["rank 0: not used: one rank on this machine"]


def test_reasons_of_one_rank_are_its_own(runner: Runner, counted: Path) -> None:
    script = 'case "$OMPI_COMM_WORLD_RANK" in 1) export ONECOPY_MECH=none ;; esac; exec "$0"'
    finished = runner.mpirun(3, "sh", "-c", script, counted, env={"ONECOPY_VERBOSE": "1"})
    lines = sorted(line for line in finished.stderr.splitlines() if line.startswith("onecopy:"))
    assert lines == [
        "onecopy: rank 1: not used: ONECOPY_MECH names no mechanism",
        "onecopy: ranks 0,2: not used: another rank of this machine cannot take part",
    ]


@pytest.mark.skipif(Path("/dev/onecopy").exists(), reason="wants the module not to be there")
def test_refusals_at_join_are_said_once(runner: Runner, counted: Path) -> None:
    """What the ranks find as they join comes from all of them at once, or from those whose reason it is."""
    lines = said(runner, counted, 3, {})
    assert sum("no map, no kcopy" in line and line.startswith("ranks 0-2: ") for line in lines) == 1, lines
    assert not any("no map, no kcopy" in line and line.startswith("rank ") for line in lines), lines
    script = 'case "$OMPI_COMM_WORLD_RANK" in 1) export ONECOPY_MECH=heap,staged ;; esac; exec "$0"'
    finished = runner.mpirun(4, "sh", "-c", script, counted, env={"ONECOPY_VERBOSE": "1"})
    assert re.search(r"^onecopy: ranks 0,2-3: no map, no kcopy", finished.stderr, re.M)
