# SPDX-License-Identifier: BSD-3-Clause
"""Runs one program to its end, shows how far it is, and says clearly when it failed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import system


class DemoError(Exception):
    """Something is not as it must be; the text is for the user."""


@dataclass(frozen=True)
class Output:
    stdout: str
    seconds: float


def mpi_argv(program: Sequence[str], *, onecopy: bool) -> list[str]:
    """What a user would type, with or without onecopy in front."""
    front = [str(system.ONECOPY), "run"] if onecopy else []
    return [*front, "mpirun", "-n", str(system.ranks()), *program]


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    timeout: float,
    tick: Callable[[], None],
    on_stderr: Callable[[str], None] | None = None,
    env: dict[str, str] | None = None,
) -> Output:
    """Runs a command, calling `tick` ten times a second. DemoError when it fails or takes too long."""
    began = time.monotonic()
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env={**system.environment(), **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    out: list[str] = []
    err: list[str] = []

    def drain(stream: IO[str], lines: list[str], on_line: Callable[[str], None] | None) -> None:
        for line in stream:
            lines.append(line)
            if on_line:
                on_line(line)

    readers = [
        threading.Thread(target=drain, args=(process.stdout, out, None), daemon=True),
        threading.Thread(target=drain, args=(process.stderr, err, on_stderr), daemon=True),
    ]
    for reader in readers:
        reader.start()
    try:
        while process.poll() is None:
            if time.monotonic() - began > timeout:
                raise DemoError(f"{' '.join(argv)}\nhad not ended after {timeout:g} s")
            tick()
            time.sleep(0.1)
    finally:
        if process.poll() is None:
            _stop(process)
    seconds = time.monotonic() - began
    for reader in readers:
        reader.join(timeout=5)
    if process.returncode != 0:
        raise DemoError(f"{' '.join(argv)}\nended with {process.returncode}:\n{''.join((out + err)[-30:])}")
    return Output("".join(out), seconds)


def _stop(process: subprocess.Popen[str]) -> None:
    """mpirun ends its ranks when it is asked to; only then is it killed."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sig)
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            continue
        return


def served(stats: Path) -> dict[str, int]:
    """Calls onecopy itself served, by collective."""
    return _totals(stats, "calls", "served")


def copied(stats: Path) -> dict[str, int]:
    """Bytes of the MPI's own large messages, by mechanism."""
    return _totals(stats, "messages", "bytes")


def _totals(stats: Path, part: str, count: str) -> dict[str, int]:
    """The ranks' ONECOPY_STATS lines added up."""
    totals: dict[str, int] = {}
    if not stats.exists():
        return totals
    for line in stats.read_text().splitlines():
        for name, entry in json.loads(line)[part].items():
            totals[name] = totals.get(name, 0) + int(entry[count])
    return totals


def listed(calls: Mapping[str, int]) -> str:
    named = [f"{count:,} x {name}" for name, count in sorted(calls.items()) if count]
    return ", ".join(named) if named else "none of its calls"
