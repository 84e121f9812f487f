# SPDX-License-Identifier: BSD-3-Clause
"""examples/asp: all-pairs shortest paths over Europe's airways, which is broadcasts."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import system
from example import Example, Run, Time, command
from program import DemoError, listed

DIRECTORY = system.ROOT / "examples" / "asp"


def make_graph() -> Path:
    graph = system.OUT / "airways.txt"
    if not graph.exists():
        command(sys.executable, DIRECTORY / "graph.py", graph)
    return graph


def describe(one: Run, names: dict[int, str]) -> str:
    nodes, edges, row_bytes, bcasts = (int(one.values[key]) for key in ("nodes", "edges", "row_bytes", "bcasts"))
    a, b, metres = (int(word) for word in one.values["farthest"].split())
    return (
        f"{nodes:,} points, {edges:,} airway segments; {bcasts:,} broadcasts, {nodes * row_bytes / 1e6:.0f} MB in all. "
        f"Farthest apart: {names[a]} and {names[b]}, {metres / 1000:,.0f} km along airways."
    )


def moved(one: Run) -> str:
    if not any(one.served.values()):
        raise DemoError("onecopy served none of asp's calls; `./onecopy doctor` tells what it can do here")
    return f"onecopy served: {listed(one.served)}."


def example() -> Example:
    graph = make_graph()
    points = re.findall(r"^point (\d+) \S+ \S+ (\S+)$", graph.read_text(), re.MULTILINE)
    names = {int(number): name for number, name in points}
    return Example(
        name="asp",
        title="all-pairs shortest paths",
        source=DIRECTORY / "asp.c",
        libraries=[],
        arguments=["-w", str(graph)],
        times=[
            Time("total_s", "total"),
            Time("bcast_s", "in broadcasts"),
            Time("wait_s", "waiting for each other", compared=False),
        ],
        facts=["nodes", "row_bytes", "bcasts"],
        result=["checksum", "farthest"],
        describe=lambda one: describe(one, names),
        moved=moved,
    )
