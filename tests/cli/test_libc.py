# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from onecopy import libc

ZEN4 = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nflags\t\t: fpu vme erms fsrm\n\nprocessor\t: 1\n"
OURS = f"{libc.TUNABLE}={libc.NEVER}"


def describe(monkeypatch: pytest.MonkeyPatch, where: Path, processor: str, library: str) -> None:
    where.write_text(processor)
    monkeypatch.setattr(libc, "PROCESSORS", where)
    monkeypatch.setattr(os, "confstr", lambda _: library)


@pytest.mark.parametrize(
    ("processor", "library", "slow"),
    [
        (ZEN4, "glibc 2.36", True),
        (ZEN4, "glibc 2.40", False),
        (ZEN4, "", False),
        (ZEN4.replace(" erms", ""), "glibc 2.36", False),
        (ZEN4.replace("AuthenticAMD", "GenuineIntel"), "glibc 2.36", False),
        ("CPU implementer\t: 0x41\n", "glibc 2.36", False),
    ],
)
def test_where_copies_are_slow(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, processor: str, library: str, slow: bool
) -> None:
    describe(monkeypatch, tmp_path / "cpuinfo", processor, library)
    assert libc.settings({}) == ({libc.VARIABLE: OURS} if slow else {})


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("", OURS),
        ("glibc.malloc.perturb=5", f"glibc.malloc.perturb=5:{OURS}"),
        ("glibc.cpu.x86_rep_movsb_threshold=4096", None),
    ],
)
def test_what_the_user_said_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, told: str | None
) -> None:
    describe(monkeypatch, tmp_path / "cpuinfo", ZEN4, "glibc 2.36")
    assert libc.settings({libc.VARIABLE: said}) == ({libc.VARIABLE: told} if told else {})


def test_the_tunable_is_one() -> None:
    """Of the C library here, which otherwise would not heed it."""
    loader = Path("/lib64/ld-linux-x86-64.so.2")
    if not loader.exists() or libc.version() < (2, 33):
        pytest.skip("wants glibc 2.33 for x86-64, which lists what it can be told")
    env = {**os.environ, libc.VARIABLE: OURS}
    listed = subprocess.run([loader, "--list-tunables"], env=env, capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in listed.splitlines() if line.startswith(f"{libc.TUNABLE}:")]
    assert int(line.split()[1], 0) == int(libc.NEVER)
