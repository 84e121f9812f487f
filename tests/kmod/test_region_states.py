# SPDX-License-Identifier: BSD-3-Clause
"""The states of a region: what docs/kernel.md and kernel/region.h say is what kernel/region.c allows."""

from __future__ import annotations

import re

from runner import ROOT

Moves = dict[str, set[str]]  # to each state, from which


def code() -> Moves:
    text = (ROOT / "kernel/region.c").read_text()
    rows = re.findall(r"\[OCK_REGION_(\w+)\] =\s+(BIT.*?),\n", text, re.DOTALL)
    return {to: set(re.findall(r"BIT\(OCK_REGION_(\w+)\)", sources)) for to, sources in rows}


def docs() -> Moves:
    rows = re.findall(r"^\| ([A-Z]+) \| ([A-Z, ]+) \|", (ROOT / "docs/kernel.md").read_text(), re.MULTILINE)
    return {to: set(sources.split(", ")) for to, sources in rows}


def header() -> Moves:
    rows = re.findall(r"^ \*\t([A-Z]+) +((?:[A-Z]+ |- )+)", (ROOT / "kernel/region.h").read_text(), re.MULTILINE)
    return {to: set(sources.split()) - {"-"} for to, sources in rows}


def after(moves: Moves, state: str) -> set[str]:
    """What may come of it."""
    found: set[str] = set()
    new = {state}
    while new:
        found |= new
        new = {to for to, sources in moves.items() if sources & new} - found
    return found - {state}


def test_said_as_done() -> None:
    assert docs() == code()
    assert header() == code()


def test_lives() -> None:
    moves = code()
    order = ["LIVE", "STALE", "ORPHANED", "ENDED", "REVOKED"]
    assert after(moves, "MAKING") == {"SPOILED", *order}
    for at, state in enumerate(order):
        assert after(moves, state) == set(order[at + 1 :])  # never back
    # What ends is found nowhere any more before its mappings are revoked.
    assert moves["REVOKED"] == {"ENDED"}
