# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks of a run reported (ONECOPY_STATS): one JSON line each, written at MPI_Finalize."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def stats(path: Path) -> list[dict[str, Any]]:
    """In order of ranks."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return sorted(lines, key=lambda line: line["rank"])


def served(path: Path, collective: str) -> list[int]:
    """How many calls of a collective each rank was served."""
    return [line["calls"].get(collective, {}).get("served", 0) for line in stats(path)]


def moved(path: Path) -> dict[str, int]:
    """The bytes that each mechanism moved, of all ranks."""
    lines = stats(path)
    return {name: sum(line["mech"][name]["bytes"] for line in lines) for name in lines[0]["mech"]}
