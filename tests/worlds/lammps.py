# SPDX-License-Identifier: BSD-3-Clause
"""LAMMPS as a program of the tests: how it is called, and what a run of it says."""

from __future__ import annotations

from pathlib import Path

COMMAND = ("lmp", "-in", Path(__file__).with_name("lammps.in"), "-log", "none")


def energies(log: str) -> list[str]:
    """The table that it prints: temperature, energies, pressure, to the last digit."""
    lines = log.splitlines()
    (begin,) = (i for i, line in enumerate(lines) if line.split()[:2] == ["Step", "Temp"])
    table = lines[begin + 1 : next(i for i, line in enumerate(lines) if line.startswith("Loop time"))]
    assert len(table) == 6
    return table
