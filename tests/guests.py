# SPDX-License-Identifier: BSD-3-Clause
"""The commands of vm/, as tests run them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from guest import ends_with_caller
from runner import ROOT

from kernel import UNAVAILABLE


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
    failed = re.findall(r"^(?:not ok|Bail out|FAILED|ERROR).*$", done.stdout, re.MULTILINE)
    tail = "\n".join(done.stdout.splitlines()[-30:])
    assert done.returncode == 0, "\n".join([f"ended with {done.returncode}", *failed, said, "output ends:", tail])
    return done.stdout
