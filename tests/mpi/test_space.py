# SPDX-License-Identifier: BSD-3-Clause
"""What ranks map of each other, when there are many of them."""

from __future__ import annotations

from mpi.programs import Programs
from mpi.stats import moved, stats
from runner import Runner


def test_address_space(runner: Runner, programs: Programs) -> None:
    """Sixteen arenas, mapped whole, would be 30 times the memory."""
    report = runner.cwd / "stats"
    runner.mpirun(
        16,
        programs.build("space", ["hazards/space.c"]),
        env={"ONECOPY_STATS": str(report), "ONECOPY_MIN": "1", "ONECOPY_MECH": "heap,staged"},
        timeout=240,
    )
    assert len(stats(report)) == 16
    assert moved(report)["heap"] > 16 * 15 * (1 << 20) // 16
