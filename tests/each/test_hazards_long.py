# SPDX-License-Identifier: BSD-3-Clause
"""More of what tests/mpi has for the MPI in PATH, on each of the others: in the long form alone."""

from __future__ import annotations

import pytest
from mpi.programs import MakeProgram, Programs
from mpi.test_differential import WHERE_MOST
from runner import Runner

from mpi import (
    test_containers,
    test_differential,
    test_failures,
    test_hazards,
    test_layouts,
    test_neighbours,
    test_operators,
    test_sorts,
    test_space,
)

pytestmark = pytest.mark.long(0.1)

for module, names in (
    (test_containers, ("container", "filter_that_kills")),
    (test_failures, ("no_memory",)),
    (
        test_hazards,
        (
            *("oversubscribed", "overwritten_at_once", "unequal_settings", "stale_memory", "read_only"),
            *("limit_in_a_forked_child", "limits_itself", "malloc_where_served", "malloc_of_refused_ranks"),
            *("descriptors_closed_before", "descriptor_closed_after", "standard_descriptors_closed"),
            *("no_memory_for_a_communicator", "fresh_receive_buffers", "filled_after_the_last_allocation"),
            "kept_memory_gets_huge_pages",
        ),
    ),
    (test_layouts, ("holes", "own_block", "shared_types", "kinds", "displaced_blocks", "huge_element")),
    (test_neighbours, ("limits", "wrong_calls")),
    (test_operators, ("one_buffer",)),
    (test_sorts, ("off", "allocator_in_library", "allocator_that_frees_in_other_ways", "statistics")),
):
    globals().update({f"test_{name}": getattr(module, f"test_{name}") for name in names})


def test_address_space(runner: Runner, programs: Programs) -> None:
    test_space.test_address_space(runner, programs, 16)


@pytest.mark.parametrize("name", WHERE_MOST)
def test_blocks(runner: Runner, program: MakeProgram, name: str) -> None:
    test_differential.test_blocks(runner, program, 3, name)


@pytest.mark.parametrize("name", WHERE_MOST)
def test_random_types(runner: Runner, program: MakeProgram, name: str) -> None:
    test_layouts.test_random_types(runner, program, name)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("name", [name for name in test_differential.SETTINGS if name not in ("default", "all")])
def test_random_neighbours(runner: Runner, program: MakeProgram, ranks: int, name: str) -> None:
    test_neighbours.test_same_bytes(runner, program, ranks, name)
