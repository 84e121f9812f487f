# SPDX-License-Identifier: BSD-3-Clause
"""Those of tests/mpi's hazards that an MPI has a part in; test_hazards_long.py has those that take longer."""

from __future__ import annotations

import longform
import mpis
import pytest
from mpi.programs import MakeProgram
from mpi.stats import stats
from runner import Runner

from mpi import test_failures, test_hazards, test_layouts, test_neighbours, test_operators, test_sorts

KILLS = longform.rounds("ONECOPY_TEST_KILLS", 2, 30)

for module, names in (
    (test_failures, ("unequal_amounts", "unequal_ends", "death_that_ends_the_job")),
    (test_operators, ("operators", "optional_types", "same_types")),
    (test_neighbours, ("parts",)),
    (
        test_hazards,
        (
            *("progress", "arrived", "fork", "alloc_mem_alignment", "refused", "total_decides"),
            *("unequal_preload", "one_rank_cannot_meet", "errors_without_a_communicator", "misuse_by_one_rank"),
            *("misuse", "misuse_of_served_calls", "malloc_beside_a_gpu"),
        ),
    ),
    (
        test_sorts,
        ("one_rank_says_why", "thread_levels", "tool_in_program", "tool_in_library", "mpi_by_dlopen"),
    ),
    (test_layouts, ("unpacked", "hollow_array", "rows_dealt_out", "uncommitted_type")),
):
    globals().update({f"test_{name}": getattr(module, f"test_{name}") for name in names})


def test_beyond_one_world(runner: Runner, program: MakeProgram) -> None:
    """Spawned processes may share their server with others, and are left to the MPI, as is what spans worlds."""
    beyond = program("beyond")
    path = runner.cwd / "stats"
    runner.alone_or_skip(2, beyond, beyond)
    runner.mpirun(2, beyond, beyond, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    # One of them over an intercommunicator within the first world. Open MPI 5 does not preload what is spawned.
    spawned = [] if runner.mpi.name == mpis.OPEN_MPI_5 else [0, 0]
    assert sorted(line["calls"]["bcast"]["served"] for line in stats(path)) == [*spawned, 7, 7]


def test_nothing_in_place(runner: Runner, program: MakeProgram) -> None:
    """What the MPI takes of a rank that has no data counts as a call of that rank's, too."""
    if runner.mpi.name == mpis.OPEN_MPI_5:
        pytest.skip("Open MPI takes none of such ranks")
    path = runner.cwd / "stats"
    runner.mpirun(3, program("nothing"), preload=False)
    runner.mpirun(3, program("nothing"), env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert all(line["calls"]["bcast"]["served"] == 4 for line in stats(path))


@pytest.mark.parametrize("what", ["maps", "nulls", "ways", "place"])
def test_edges(runner: Runner, program: MakeProgram, what: str) -> None:
    """Of what one rank cannot know of another nothing depends."""
    if what == "place" and runner.mpi.name == mpis.OPEN_MPI_5:
        pytest.skip("Open MPI takes no MPI_IN_PLACE of ranks without data")
    runner.mpirun(2, program("edges"), what, preload=False)
    runner.mpirun(2, program("edges"), what)


def test_random_types(runner: Runner, program: MakeProgram) -> None:
    test_layouts.test_random_types(runner, program, "all")


@pytest.mark.parametrize("ranks", [2, 3])
def test_random_neighbours(runner: Runner, program: MakeProgram, ranks: int) -> None:
    test_neighbours.test_same_bytes(runner, program, ranks, "all")


@pytest.mark.timeout(1200 + 10 * KILLS)
def test_killed_rank(runner: Runner, program: MakeProgram) -> None:
    """Whoever dies whenever. What MPICH 5 leaves in /dev/shm then is its own."""
    test_hazards.kill_many(runner, program("victim"), KILLS, most=4, leftovers=False)
