# SPDX-License-Identifier: BSD-3-Clause
"""Data races, as the kernel's detector (KCSAN) reports them in its log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

# A report stands between two bars. One that the log ends in counts as well.
REPORT = re.compile(
    r"^(?:\[[^]\n]*\] )?={60,}\n(?:\[[^]\n]*\] )?BUG: KCSAN: (?P<title>.*)\n"
    r"(?P<body>(?:.*\n)*?)(?:(?:\[[^]\n]*\] )?={60,}(?:\n|$)|\Z)",
    re.MULTILINE,
)
# How a trace names functions of the module and of the tests' DMA provider, inlined ones of the kernel included.
OURS = re.compile(r"\[(?:onecopy|softdma)\]")
# Functions of kernel/workqueue.c. Its workers read a work item's word plainly while who queues the item again sets
# PENDING in it, a bit apart from what they look at: a race of the workqueue with itself, whoever queues.
QUEUEING = ("queue_work_on", "queue_delayed_work_on", "mod_delayed_work_on", "__queue_work", "insert_work")
WORKING = ("process_one_work", "worker_thread", "assign_work", "move_linked_works", "__pwq_activate_work")
WORKQUEUES = frozenset(f"data-race in {' / '.join(sorted((a, b)))}" for a in QUEUEING for b in WORKING)


@dataclass(frozen=True)
class Race:
    title: str  # both functions, or the one that is known
    text: str
    ours: bool  # a function of ours was on the way to one of the accesses, and it is not the workqueue's own race


def ours(title: str, body: str) -> bool:
    return bool(OURS.search(body)) and title not in WORKQUEUES


def split(log: str) -> tuple[str, list[Race]]:
    """The log without reports, and these."""
    titled = [(m["title"].strip(), m) for m in REPORT.finditer(log)]
    found = [Race(title, m[0].strip(), ours(title, m["body"])) for title, m in titled]
    return REPORT.sub("", log), found


def summary(races: Iterable[Race]) -> str:
    """A line for each title, those seen most often first."""
    return "\n".join(f"{count} x {title}" for title, count in Counter(r.title for r in races).most_common())
