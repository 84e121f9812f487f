# SPDX-License-Identifier: BSD-3-Clause
"""The report of `onecopy doctor` as plain text: no package is needed, and no line is broken, so that paths and commands
can be copied from it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

GREEN, RED, BOLD, DIM = "32", "31", "1", "2"


def coloured() -> bool:
    return bool(sys.stdout) and sys.stdout.isatty() and "NO_COLOR" not in os.environ


class Style:
    def __init__(self, colours: bool) -> None:
        self._colours = colours

    def __call__(self, code: str, text: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self._colours and text else text


def _mechanisms(found: Sequence[Mapping[str, Any]], style: Style) -> Iterator[str]:
    width = max(len(m["name"]) for m in found)
    indent = " " * (width + 7)
    yield style(BOLD, "mechanisms, between two processes of this host, best first")
    said: dict[tuple[str, str], str] = {}
    for m in found:
        usable = style(GREEN, "yes") if m["usable"] else style(RED, "no ")
        yield f"  {m['name']:<{width}}  {usable}  {m['what']}"
        if m["usable"]:
            continue
        before = said.setdefault((m["why"], m["fix"]), m["name"])
        if before != m["name"]:
            yield f"{indent}why: as {before}"
            continue
        yield f"{indent}why: {m['why']}"
        if m["fix"]:
            yield f"{indent}fix: {style(BOLD, m['fix'])}"


def _pairs(title: str, facts: Sequence[tuple[str, str, str]], style: Style) -> Iterator[str]:
    """Name, value and note. The notes start in one column, but for values that are longer than most."""
    yield style(BOLD, title)
    names = max((len(name) for name, _, _ in facts), default=0)
    values = max((len(value) for _, value, _ in facts if len(value) <= 24), default=0)
    for name, value, note in facts:
        yield f"  {name:<{names}}  {value:<{values}}  {style(DIM, note)}".rstrip()


def _program(facts: Mapping[str, Any], style: Style) -> Iterator[str]:
    rows = [
        ("kind", "kind"),
        ("mpi", "MPI"),
        ("preload", "preload"),
        ("launcher", "launcher"),
        ("note", "note"),
        ("why", "why not"),
        ("fix", "fix"),
    ]
    shown = [(name, str(facts[key]), "") for key, name in rows if facts.get(key)]
    yield from _pairs(f"program {facts['path']}", shown, style)


def lines(report: Mapping[str, Any], colours: bool) -> Iterator[str]:
    style = Style(colours)
    yield from _mechanisms(report["mechanisms"], style)
    yield ""
    host_mpi = report["mpi"]
    mpi_facts = [
        ("version", host_mpi.get("version", "none"), ""),
        ("launcher", host_mpi.get("launcher", "none"), ""),
        ("preload", host_mpi.get("preload", "none"), ""),
        ("messages", host_mpi.get("messages", ""), ""),
        ("why", host_mpi.get("why", ""), ""),
        ("fix", host_mpi.get("fix", ""), ""),
    ]
    yield from _pairs("MPI in PATH", [fact for fact in mpi_facts if fact[1]], style)
    yield ""
    yield from _pairs("host", [(f["name"], f["value"], f["note"]) for f in report["host"]], style)
    yield ""
    if "program" in report:
        yield from _program(report["program"], style)
        yield ""
    yield style(GREEN if report["helps"] else RED, report["verdict"])
