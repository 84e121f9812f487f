# SPDX-License-Identifier: BSD-3-Clause
"""In which order `onecopy bench` runs what, and how long that will take.

The seconds of a task are a first guess, taken on one machine with two cores; what the tasks before took corrects it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: A job's start and the making of its buffers; beside the timed part of a repetition, preparing and verifying; how
#: many repetitions' time buffers are used before.
START, PREPARED = 0.8, 0.2
START_WARM, PREPARED_WARM = 0.4, 0.05
SETTLE = 20
FIRST_USE, FIGURE, REGION_START = 3.0, 1.5, 0.5


@dataclass(frozen=True)
class Task:
    title: str
    do: Callable[[], None]
    seconds: float


def collective_seconds(sizes: str, timed: float, repetitions: int, warm: bool) -> float:
    start, prepared = (START_WARM, PREPARED_WARM) if warm else (START + SETTLE * timed, PREPARED)
    return start + len(sizes.split(",")) * repetitions * (timed + prepared)


def duration(seconds: float) -> str:
    """40 s, 3 min, 1 h 20 min"""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


class Clock:
    """What is left of a list of tasks."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._left = sum(task.seconds for task in tasks)
        self._guessed = 0.0
        self._started = time.monotonic()

    def done(self, task: Task) -> None:
        self._left -= task.seconds
        self._guessed += task.seconds

    def left(self) -> float:
        taken = time.monotonic() - self._started
        return self._left * (taken / self._guessed if self._guessed else 1.0)
