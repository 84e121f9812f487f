# SPDX-License-Identifier: BSD-3-Clause
"""The ranks' records: files in a directory, mapped by the ranks while they run (mpi/record_layout.h says how they are
laid out), or lines of JSON that they wrote at MPI_Finalize. Both are read as the same mapping, a report; docs/stats.md
has the keys."""

from __future__ import annotations

import contextlib
import shutil
import struct
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Report = dict[str, Any]

MAGIC = b"ocstats5"
HEADER = struct.Struct("=8s2IQ5Ii4Q5Q5QQ5Q5QQ5Q5Q16s96s64s256s256s")
HEADER_BYTES = 2048
CELL = struct.Struct("=24s16s5Q")
MECHANISMS = ("heap", "map", "kcopy", "cma", "staged")
TRANSFERS = ("served", "window", "types", "epoch", "memory")
STATES = STARTING, RUNNING, FINISHED, ABORTED = range(4)
#: What has to fit where records go: those of some ranks.
PROBE = b"\0" * (1 << 17)


def text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode(errors="replace")


def by_call(cells: list[Report]) -> dict[str, dict[str, int]]:
    calls: dict[str, dict[str, int]] = {}
    for cell in cells:
        entry = calls.setdefault(cell["call"], {"served": 0, "passed": 0, "bytes": 0})
        if cell["outcome"] == "served":
            entry["served"] += cell["calls"]
            entry["bytes"] += cell["bytes"]
        else:
            entry["passed"] += cell["calls"]
    return calls


def by_name(names: Sequence[str], calls: Sequence[int], moved: Sequence[int]) -> dict[str, dict[str, int]]:
    return {name: {"calls": n, "bytes": size} for name, n, size in zip(names, calls, moved, strict=True)}


def parse(data: bytes) -> Report:
    """Raises ValueError for what is no record."""
    if len(data) < HEADER_BYTES or not data.startswith(MAGIC):
        raise ValueError("no record of a rank")
    values = HEADER.unpack_from(data)
    _, state, pid, job, world_rank, world_size, node_rank, node_size, profile, code = values[:10]
    start, end, least, credit = values[10:14]
    copies, moved = values[14:19], values[19:24]
    version, mpi, host, idle, heap = map(text, values[46:51])
    cells: list[Report] = []
    for at in range(HEADER_BYTES, len(data) - CELL.size + 1, CELL.size):
        call, outcome, size, calls, total, held, ns = CELL.unpack_from(data, at)
        if calls:
            cells.append(
                {
                    "call": text(call),
                    "outcome": text(outcome),
                    "size": size,
                    "calls": calls,
                    "bytes": total,
                    "data": held,
                    "ns": ns,
                }
            )
    return {
        "rank": node_rank,
        "nranks": node_size or 1,
        "version": version,
        "idle": idle,
        "heap": heap,
        "calls": by_call(cells),
        "mech": by_name(MECHANISMS, copies, moved),
        "refused": values[24],
        "messages": by_name(MECHANISMS, values[25:30], values[30:35]),
        "helped": values[35],
        "transfers": by_name(TRANSFERS, values[36:41], values[41:46]),
        "state": state,
        "job": f"{job:016x}",
        "pid": pid,
        "code": code,
        "start": start,
        "world_rank": world_rank,
        "world_size": world_size,
        "profile": profile,
        "host": host,
        "mpi": mpi,
        "min": least,
        "credit": credit,
        "ns": end - start,
        "cells": cells,
    }


def read(directory: Path) -> list[Report]:
    """All that is there and is a record, in the order in which the ranks started."""
    reports = []
    for path in directory.iterdir():
        with contextlib.suppress(OSError, ValueError):
            reports.append(parse(path.read_bytes()))
    return sorted(reports, key=lambda report: (report["start"], report["world_rank"]))


@contextlib.contextmanager
def directory(shared: bool = False) -> Iterator[Path]:
    """For the records of one run, where there is room for some; gone afterwards. OSError when there is none. Where the
    ranks are on several nodes, which mostly share the working directory, it is `shared` there if it can be."""
    refused: OSError | None = None
    for parent in ([Path.cwd()] if shared else []) + [None, "/dev/shm"]:
        try:
            path = Path(tempfile.mkdtemp(prefix=".onecopy-stats-" if shared else "onecopy-stats-", dir=parent))
        except OSError as error:
            refused = refused or error
            continue
        try:
            try:
                (path / "probe").write_bytes(PROBE)
                (path / "probe").unlink()
            except OSError as error:
                refused = refused or error
                continue
            yield path
            return
        finally:
            shutil.rmtree(path, ignore_errors=True)
    raise refused or FileNotFoundError("no directory for temporary files")
