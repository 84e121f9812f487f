# SPDX-License-Identifier: BSD-3-Clause
"""examples/wave: the wave equation in thin slabs, which is messages between neighbours."""

from __future__ import annotations

import system
from example import Example, Run, Time


def messages(one: Run) -> int:
    """How many there are in a run: in each step a rank sends one to either neighbour."""
    return 2 * int(one.values["ranks"]) * int(one.values["steps"])


def describe(one: Run) -> str:
    steps, halo_bytes = int(one.values["steps"]), int(one.values["halo_bytes"])
    return (
        f"{one.values['points']} points, {steps:,} steps; {messages(one):,} messages of {halo_bytes:,} bytes. "
        f"Largest difference from the exact wave: {one.values['error']}."
    )


def moved(one: Run) -> str:
    heap = one.copied.get("heap", 0)
    if not heap:
        return "onecopy copied none of its messages; `./onecopy doctor` tells what it can do here."
    total = messages(one) * int(one.values["halo_bytes"])
    return f"onecopy copied by a pointer: {heap / 1e9:.2f} of {total / 1e9:.2f} GB of messages."


def example() -> Example:
    return Example(
        name="wave",
        title="a wave, with halo exchanges",
        source=system.ROOT / "examples" / "wave" / "wave.c",
        libraries=["-lm"],
        arguments=[],
        times=[Time("total_s", "total"), Time("halo_s", "in halo exchanges")],
        facts=["points", "steps", "halo_bytes"],
        result=["checksum"],
        describe=describe,
        moved=moved,
    )
