# SPDX-License-Identifier: BSD-3-Clause
"""Those of tests/mpi's hazards that an MPI has a part in."""

from __future__ import annotations

import os
import signal
import time

import pytest
from job import JobError, shm_files
from mpi.programs import MakeProgram
from mpi.stats import stats
from runner import Runner

from mpi import test_failures, test_hazards, test_layouts, test_neighbours, test_operators, test_sorts

for module, names in (
    (test_failures, ("unequal_amounts", "unequal_ends")),
    (test_operators, ("operators", "optional_types", "same_types")),
    (test_neighbours, ("parts",)),
    (
        test_hazards,
        (
            *("progress", "arrived", "fork", "alloc_mem_alignment", "refused", "total_decides"),
            *("unequal_preload", "one_rank_cannot_meet", "errors_without_a_communicator", "misuse_by_one_rank"),
            "malloc_beside_a_gpu",
        ),
    ),
    (
        test_sorts,
        ("one_rank_says_why", "thread_levels", "tool_in_program", "tool_in_library", "mpi_by_dlopen"),
    ),
    (test_layouts, ("unpacked",)),
):
    globals().update({f"test_{name}": getattr(module, f"test_{name}") for name in names})


def test_beyond_one_world(runner: Runner, program: MakeProgram) -> None:
    """Spawned processes may share their server with others, and are left to the MPI, as is what spans worlds."""
    beyond = program("beyond")
    path = runner.cwd / "stats"
    try:
        runner.mpirun(2, beyond, beyond, preload=False)
    except JobError as trouble:
        pytest.skip(f"the MPI alone cannot run this: {str(trouble).splitlines()[0]}")
    runner.mpirun(2, beyond, beyond, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    # One of them over an intercommunicator within the first world.
    assert sorted(line["calls"]["bcast"]["served"] for line in stats(path)) == [0, 0, 7, 7]


def test_nothing_in_place(runner: Runner, program: MakeProgram) -> None:
    """What the MPI takes of a rank that has no data counts as a call of that rank's, too."""
    path = runner.cwd / "stats"
    runner.mpirun(3, program("nothing"), preload=False)
    runner.mpirun(3, program("nothing"), env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert all(line["calls"]["bcast"]["served"] == 4 for line in stats(path))


def test_random_types(runner: Runner, program: MakeProgram) -> None:
    test_layouts.test_random_types(runner, program, "all")


@pytest.mark.parametrize("ranks", [2, 3])
def test_random_neighbours(runner: Runner, program: MakeProgram, ranks: int) -> None:
    test_neighbours.test_same_bytes(runner, program, ranks, "all")


@pytest.mark.parametrize("unlucky", [0, 2])
def test_killed_rank(runner: Runner, program: MakeProgram, unlucky: int) -> None:
    """The rest is gone within 10 seconds. What MPICH 5 leaves in /dev/shm then is its own."""
    before = shm_files()
    job = runner.start_mpi(3, program("victim"))
    pids = test_hazards.pids(job, 3)
    time.sleep(0.2)
    os.kill(pids[unlucky], signal.SIGKILL)
    assert job.wait(10, leftovers=False).returncode != 0
    left = shm_files() - before
    assert not {path for path in left if "onecopy" in path.name}
    for path in left:
        path.unlink(missing_ok=True)
