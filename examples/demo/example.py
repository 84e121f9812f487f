# SPDX-License-Identifier: BSD-3-Clause
"""A program of examples/ that prints "name value" lines: how it is built, run, judged and told about."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import system
from program import DemoError, copied, mpi_argv, run, served

TIMEOUT = 300


@dataclass(frozen=True)
class Run:
    """What one run printed, and what its ranks said of onecopy."""

    onecopy: bool
    values: Mapping[str, str]
    served: Mapping[str, int] = field(default_factory=dict)  # calls by collective
    copied: Mapping[str, int] = field(default_factory=dict)  # bytes of messages by mechanism

    def seconds(self, key: str) -> float:
        return float(self.values[key])


@dataclass(frozen=True)
class Time:
    """A value in seconds. `compared` is not what a faster copy need not shorten."""

    key: str
    label: str
    compared: bool = True


@dataclass(frozen=True)
class Example:
    name: str
    title: str
    source: Path
    libraries: Sequence[str]
    arguments: Sequence[str]
    times: Sequence[Time]  # the whole first, then what of it is in the MPI
    facts: Sequence[str]  # values that go into the CSV file, too
    result: Sequence[str]  # values that must be the same in every run
    describe: Callable[[Run], str]  # the problem, from any run
    moved: Callable[[Run], str]  # what onecopy did, from a run with it

    @property
    def program(self) -> Path:
        return system.OUT / self.name

    @property
    def table(self) -> Path:
        return system.OUT / f"demo-{self.name}.csv"

    def columns(self) -> list[str]:
        return ["onecopy", *(time.key for time in self.times), *self.facts, *self.result]

    def row(self, one: Run) -> list[object]:
        return [int(one.onecopy), *(one.values[key] for key in self.columns()[1:])]


def command(*argv: str | Path) -> None:
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DemoError(f"{' '.join(map(str, argv))}\n{done.stdout}{done.stderr}")


def build(example: Example) -> None:
    """By the MPI's own compiler, with nothing of ours."""
    command("mpicc", "-O3", "-march=native", "-o", example.program, example.source, *example.libraries)


def run_example(example: Example, *, onecopy: bool, show: Callable[[int], None]) -> Run:
    """One run; `show` is given the percentage done."""
    stats = system.OUT / f"{example.name}-stats.jsonl"
    stats.unlink(missing_ok=True)

    def on_stderr(line: str) -> None:
        match = re.fullmatch(rf"{example.name}: (\d+) %", line.strip())
        if match:
            show(int(match.group(1)))

    output = run(
        mpi_argv([str(example.program), *example.arguments], onecopy=onecopy),
        cwd=system.OUT,
        timeout=TIMEOUT,
        tick=lambda: None,
        on_stderr=on_stderr,
        env={"ONECOPY_STATS": str(stats)},
    )
    values = dict(line.split(" ", 1) for line in output.stdout.splitlines() if " " in line)
    one = Run(onecopy, values, served(stats), copied(stats))
    try:
        example.row(one)
        for time in example.times:
            one.seconds(time.key)
        example.describe(one)
    except (KeyError, ValueError) as error:
        raise DemoError(f"{example.name} printed something unexpected ({error}):\n{output.stdout}") from None
    return one


def check(example: Example, runs: Sequence[Run]) -> None:
    """DemoError unless all runs have the same result."""
    results = [[one.values[key] for key in example.result] for one in runs]
    for one, result in zip(runs, results, strict=True):
        if result != results[0]:
            raise DemoError(
                f"{example.name} {'with' if one.onecopy else 'without'} onecopy computed {result}, not {results[0]}"
            )
