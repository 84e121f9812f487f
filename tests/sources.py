# SPDX-License-Identifier: BSD-3-Clause
"""Sources of programs that tests build with each MPI: those of Debian's packages, fetched once into the cache."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from onecopy import peers

import debian

#: Of one suite on all machines, so that what is said of its programs holds on each.
SUITE = "bookworm"


def unpacked(package: str, part: str = "") -> Path:
    """The directory of the package's sources, or of a part of them, which alone is kept. Skips the test where they are
    not to be had."""
    home = peers.cache() / "sources"
    there = home / package
    if not there.exists():
        suite = debian.Suite(SUITE, home / "apt", sources=True)
        new = home / f"{package}.new"
        shutil.rmtree(new, ignore_errors=True)
        try:
            suite.update()
            archive = suite.original(package)
        except debian.DebianError as reason:
            pytest.skip(f"the sources of {package} are not to be had: {reason}")
        new.mkdir()
        command = [
            "tar",
            "-x",
            "-f",
            str(archive),
            "-C",
            str(new),
            "--strip-components=1",
            "--no-same-owner",
            "--wildcards",
        ]
        subprocess.run([*command, f"*/{part}".rstrip("/")], check=True)
        archive.unlink()
        new.rename(there)
    return there / part
