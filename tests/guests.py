# SPDX-License-Identifier: BSD-3-Clause
"""The commands of vm/, as tests run them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import longform
import pytest
from guest import ends_with_caller
from runner import ROOT

from kernel import UNAVAILABLE

#: The kernel of the short form; the long form builds `uml` anyway, for what MPI programs do there.
FAST = "uml" if longform.ASKED else "uml-quick"

NOTES = 20  # lines shown of what one case said


def run(tool: str, *argv: str | Path, env: Mapping[str, str] | None = None) -> str:
    """What vm/`tool` printed. Skips the test where a kernel cannot be had, fails it with the command's verdict."""
    command = [str(ROOT / "vm" / tool), *map(str, argv)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=ends_with_caller(signal.SIGTERM),
    )
    said = done.stderr.strip()
    if done.returncode == UNAVAILABLE:
        pytest.skip(said)
    tail = "\n".join(done.stdout.splitlines()[-30:])
    assert done.returncode == 0, "\n".join(
        [f"ended with {done.returncode}", *failures(done.stdout), said, "output ends:", tail]
    )
    return done.stdout


def failures(output: str) -> list[str]:
    """Verdicts of what failed, each after what that case said: the reason, and the seed that shows it again."""
    found: list[str] = []
    notes: list[str] = []
    for line in output.splitlines():
        if re.match("not ok|Bail out|FAILED|ERROR", line):
            found += [*notes, line]
        if line.startswith("# == "):
            notes = []
        elif re.match("ok |not ok ", line):
            notes = [note for note in notes if "seed" in note]
        elif line.startswith("#"):
            notes = [*notes, line][-NOTES:]
    return found
