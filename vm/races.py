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


@dataclass(frozen=True)
class Race:
    title: str  # both functions, or the one that is known
    text: str
    ours: bool  # a function of ours was on the way to one of the accesses


def split(log: str) -> tuple[str, list[Race]]:
    """The log without reports, and these."""
    found = [Race(m["title"].strip(), m[0].strip(), bool(OURS.search(m["body"]))) for m in REPORT.finditer(log)]
    return REPORT.sub("", log), found


def summary(races: Iterable[Race]) -> str:
    """A line for each title, those seen most often first."""
    return "\n".join(f"{count} x {title}" for title, count in Counter(r.title for r in races).most_common())
