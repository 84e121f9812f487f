# SPDX-License-Identifier: BSD-3-Clause
"""Builds and runs examples/asp, and reads what it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import system
from program import DemoError, mpi_argv, run, served

SOURCE = system.ROOT / "examples" / "asp" / "asp.c"
GRAPH_MAKER = system.ROOT / "examples" / "asp" / "graph.py"
TIMEOUT = 300


@dataclass(frozen=True)
class Result:
    """One run's figures. Times are seconds; `bcast` and `wait` are means over the ranks."""

    nodes: int
    edges: int
    row_bytes: int
    total: float
    bcast: float
    wait: float
    checksum: str
    farthest: tuple[int, int, int]
    served: dict[str, int]


def prepare() -> tuple[Path, Path]:
    """The program, compiled by the MPI's own compiler with nothing of ours, and the graph, made once."""
    program, graph = system.OUT / "asp", system.OUT / "airways.txt"
    commands = [["mpicc", "-O3", "-march=native", "-o", str(program), str(SOURCE)]]
    if not graph.exists():
        commands.append([sys.executable, str(GRAPH_MAKER), str(graph)])
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise DemoError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return program, graph


def point_names(graph: Path) -> dict[int, str]:
    found = re.findall(r"^point (\d+) \S+ \S+ (\S+)$", graph.read_text(), re.MULTILINE)
    return {int(number): name for number, name in found}


def run_asp(program: Path, graph: Path, *, onecopy: bool, show: Callable[[int], None]) -> Result:
    """One run; `show` is given the percentage done."""
    stats = system.OUT / "asp-stats.jsonl"
    stats.unlink(missing_ok=True)

    def on_stderr(line: str) -> None:
        match = re.fullmatch(r"asp: (\d+) %", line.strip())
        if match:
            show(int(match.group(1)))

    output = run(
        mpi_argv([str(program), "-w", str(graph)], onecopy=onecopy),
        cwd=system.OUT,
        timeout=TIMEOUT,
        tick=lambda: None,
        on_stderr=on_stderr,
        env={"ONECOPY_STATS": str(stats)},
    )
    values = dict(line.split(" ", 1) for line in output.stdout.splitlines() if " " in line)
    try:
        a, b, metres = (int(word) for word in values["farthest"].split())
        return Result(
            nodes=int(values["nodes"]),
            edges=int(values["edges"]),
            row_bytes=int(values["row_bytes"]),
            total=float(values["total_s"]),
            bcast=float(values["bcast_s"]),
            wait=float(values["wait_s"]),
            checksum=values["checksum"],
            farthest=(a, b, metres),
            served=served(stats),
        )
    except (KeyError, ValueError) as error:
        raise DemoError(f"asp printed something unexpected ({error}):\n{output.stdout}") from None
