# SPDX-License-Identifier: BSD-3-Clause
"""The kernel module's tests, each kernel in a guest of its own: User-Mode Linux with every check there is, Debian's
own kernels for huge pages, DMA engines and compilers of other ages.

What runs in the guest is tests/kmod/run; vm/run adds its own verdict of kernel log, counters and leaks. A kernel that
cannot be had here is a skip that says why; one that was had and does not do is a failure.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from runner import ROOT

RUN = ROOT / "vm" / "run"
# Programs that take long under emulation run on User-Mode Linux in full and, with this share of their rounds, there.
SCALE = {"uml-debug": "100", "6.1": "20", "6.12": "20"}
UNAVAILABLE = 123  # vm/run could not get the kernel


@pytest.mark.parametrize("kernel", SCALE)
@pytest.mark.timeout(3600)  # the first run builds a kernel
def test_module(kernel: str, build: Path) -> None:
    environment = {**os.environ, "KMOD_SCALE": SCALE[kernel]}
    argv = [str(RUN), "--kernel", kernel, "--timeout", "600", "--", str(ROOT / "tests/kmod/run"), str(build)]
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    said = done.stderr.strip()
    if done.returncode == UNAVAILABLE:
        pytest.skip(said)
    failed = re.findall(r"^(?:not ok|Bail out).*$", done.stdout, re.MULTILINE)
    tail = "\n".join(done.stdout.splitlines()[-30:])
    assert done.returncode == 0, "\n".join([f"ended with {done.returncode}", *failed, said, "output ends:", tail])
    summary = re.search(r"^# (\d+) passed, (\d+) skipped, (\d+) failed", done.stdout, re.MULTILINE)
    assert summary, f"no summary:\n{tail}"
    assert int(summary[1]) > 0
    assert summary[3] == "0"
