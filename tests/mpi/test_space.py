# SPDX-License-Identifier: BSD-3-Clause
"""What ranks map of each other, when there are many of them."""

from __future__ import annotations

import longform
import pytest
from mpi.programs import Programs
from mpi.stats import moved, stats
from runner import Runner


@pytest.mark.parametrize("ranks", [16, longform.param(64, short=False, minutes=1)])
def test_address_space(runner: Runner, programs: Programs, ranks: int) -> None:
    """So many arenas, mapped whole, would be 30 or 120 times the memory."""
    report = runner.cwd / "stats"
    runner.mpirun(
        ranks,
        programs.build("space", ["hazards/space.c"]),
        env={"ONECOPY_STATS": str(report), "ONECOPY_MIN": "1", "ONECOPY_MECH": "heap,staged"},
        timeout=240,
    )
    assert len(stats(report)) == ranks
    assert moved(report)["heap"] > (ranks - 1) * (1 << 20)
