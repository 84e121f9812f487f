# SPDX-License-Identifier: BSD-3-Clause
"""examples/asp: the distances that numpy finds, however many ranks there are, with onecopy and without."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import longform
import numpy as np
import pytest

FAR = 1 << 29


@pytest.fixture(scope="module")
def program(compiled: Callable[..., Path]) -> Path:
    return compiled("asp")


def checksum(distance: np.ndarray) -> str:
    """As asp.c has it: FNV-1a over the words of each row, added up."""
    nodes = len(distance)
    sums = np.uint64(0xCBF29CE484222325) ^ np.arange(nodes, dtype=np.uint64)
    for j in range(nodes):
        sums = (sums ^ distance[:, j].astype(np.uint64)) * np.uint64(0x100000001B3)
    return f"{int(sums.sum()):016x}"


# Ranks without a row; batches and tiles that are not full; more columns than a tile has, more rows than a batch.
@pytest.mark.parametrize("nodes", [1, 2, pytest.param(7, marks=pytest.mark.long(0.1)), 203, 1100])
def test_distances(values: Callable[..., dict[str, str]], program: Path, tmp_path: Path, nodes: int) -> None:
    rng = random.Random(nodes)
    distance = np.full((nodes, nodes), FAR)
    np.fill_diagonal(distance, 0)
    lines = [f"nodes {nodes}"]
    # Few enough for some points to be out of reach.
    for _ in range(3 * nodes // 2):
        a, b, length = rng.randrange(nodes), rng.randrange(nodes), rng.randrange(1000)
        lines.append(f"edge {a} {b} {length}")
        distance[a, b] = distance[b, a] = min(distance[a, b], length)
    graph = tmp_path / "graph.txt"
    graph.write_text("\n".join(lines) + "\n")
    for k in range(nodes):
        np.minimum(distance, distance[:, k, None] + distance[k], out=distance)
    for ranks in (1, 2, 3) if longform.ASKED or nodes < 1000 else (3,):
        for preload in (False, True):
            assert values(ranks, program, "-w", graph, preload=preload)["checksum"] == checksum(distance)
