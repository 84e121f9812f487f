# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks of a run reported: one JSON line each, written at MPI_Finalize (ONECOPY_STATS, docs/design.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


@dataclass
class Count:
    served: int = 0
    passed: int = 0
    bytes: int = 0

    def add(self, other: Count) -> None:
        self.served += other.served
        self.passed += other.passed
        self.bytes += other.bytes


@dataclass
class Summary:
    ranks: int = 0
    version: str = ""
    calls: dict[str, Count] = field(default_factory=dict)
    mechanisms: dict[str, Count] = field(default_factory=dict)
    #: Why some ranks had no shared heap, each reason once.
    heap: list[str] = field(default_factory=list)
    #: Why some ranks were left to the MPI altogether, each reason once.
    idle: list[str] = field(default_factory=list)
    #: Lines that were no report.
    broken: int = 0

    def add(self, report: Mapping[str, Any]) -> None:
        """Raises KeyError, TypeError or ValueError, and then nothing is added."""
        calls = {n: Count(int(c["served"]), int(c["passed"]), int(c["bytes"])) for n, c in report["calls"].items()}
        mechanisms = {n: Count(int(m["calls"]), 0, int(m["bytes"])) for n, m in report["mech"].items()}
        reasons = ((self.heap, str(report["heap"])), (self.idle, str(report.get("idle", ""))))
        self.ranks += 1
        self.version = str(report["version"])
        for known, reason in reasons:
            if reason and reason not in known:
                known.append(reason)
        for mine, theirs in ((self.calls, calls), (self.mechanisms, mechanisms)):
            for name, count in theirs.items():
                mine.setdefault(name, Count()).add(count)


def read(lines: Iterable[str]) -> Summary:
    summary = Summary()
    for line in lines:
        if not line.strip():
            continue
        try:
            summary.add(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            summary.broken += 1
    return summary


def size(count: float) -> str:
    """1536 -> 1.5 KiB"""
    units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while count >= 1024 and len(units) > 1:
        count /= 1024
        units.pop(0)
    return f"{count:.0f} {units[0]}" if units[0] == "B" else f"{count:.1f} {units[0]}"


def line(summary: Summary) -> str:
    """The summary in one line."""
    if summary.ranks == 0:
        if summary.broken:
            return "what the ranks wrote is no report: is the preload library of another version?"
        return (
            "no rank reported: the program did not call MPI_Finalize, or not through the dynamic linker (ctypes and "
            "others that look MPI up by dlsym), or the preload library was not loaded"
        )
    served = sum(c.served for c in summary.calls.values())
    passed = sum(c.passed for c in summary.calls.values())
    moved = sum(c.bytes for c in summary.calls.values())
    text = (
        f"{summary.ranks} rank{'s' * (summary.ranks != 1)}: {served} of {served + passed} calls served, {size(moved)}"
    )
    by_size = sorted(summary.calls.items(), key=lambda item: -item[1].bytes)
    if busiest := [f"{name} {count.served}" for name, count in by_size if count.served][:4]:
        text += f" ({', '.join(busiest)})"
    if used := [f"{name} {m.served} ({size(m.bytes)})" for name, m in summary.mechanisms.items() if m.served]:
        text += f"; by {', '.join(used)}"
    if summary.heap:
        text += f"; no shared heap: {'; '.join(summary.heap)}"
    if summary.idle:
        text += f"; not used: {'; '.join(summary.idle)}"
    return text


def table(summary: Summary) -> Table:
    """The summary call by call. Raises ModuleNotFoundError where rich is not installed."""
    from rich.table import Table

    result = Table(title=f"onecopy {summary.version}, {summary.ranks} ranks", title_justify="left")
    result.add_column("")
    for column in ("served", "left to the MPI", "bytes"):
        result.add_column(column, justify="right")
    for name, count in sorted(summary.calls.items()):
        result.add_row(name, f"{count.served:,}", f"{count.passed:,}", size(count.bytes))
    result.add_section()
    for name, count in summary.mechanisms.items():
        result.add_row(f"by {name}", f"{count.served:,}", "", size(count.bytes))
    for text in [*(f"no shared heap: {why}" for why in summary.heap), *(f"not used: {why}" for why in summary.idle)]:
        result.add_section()
        result.add_row(text, "", "", "")
    return result
