# SPDX-License-Identifier: BSD-3-Clause
"""What `onecopy doctor` says of the kernel module where there is one: tests/kmod runs this file in a guest, as root."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from runner import build_dir

Command = Callable[..., subprocess.CompletedProcess[str]]

DEVICE = Path("/dev/onecopy")
GROUP = 60  # "games": some group that nobody is in
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--bounding-set=-all")
OUTSIDER = (*NOBODY, "--clear-groups")
MEMBER = (*NOBODY, f"--groups={GROUP}")

pytestmark = pytest.mark.skipif(
    not DEVICE.exists() or os.geteuid() != 0, reason="needs the kernel module and root: runs in a guest"
)


@pytest.fixture(autouse=True)
def device() -> Iterator[None]:
    """As the udev rule makes it; afterwards as it was."""
    before = DEVICE.stat()
    os.chown(DEVICE, 0, GROUP)
    DEVICE.chmod(0o660)
    yield
    if not DEVICE.exists():
        os.mknod(DEVICE, before.st_mode, before.st_rdev)
    os.chown(DEVICE, before.st_uid, before.st_gid)
    DEVICE.chmod(before.st_mode & 0o777)


def examine(onecopy: Command, *before: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Of map, of kcopy, and the host's facts by name."""
    if before and (not shutil.which(before[0]) or subprocess.run([*before, "true"], check=False).returncode):
        pytest.skip(f"{before[0]} is missing or refused")
    # Not the stub of the other tests: other users may not look into pytest's directories.
    env = {"PYTHONDONTWRITEBYTECODE": "1", "ONECOPY_LIBDIR": str(build_dir() / "lib")}
    done = onecopy("doctor", "--json", before=before, env=env)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    found = {m["name"]: m for m in report["mechanisms"]}
    return found["map"], found["kcopy"], {fact["name"]: fact["value"] for fact in report["host"]}


@pytest.mark.parametrize("before", [(), MEMBER], ids=["root", "member of the group"])
def test_usable(onecopy: Command, before: tuple[str, ...]) -> None:
    for mechanism in examine(onecopy, *before)[:2]:
        assert (mechanism["usable"], mechanism["why"]) == (True, "")


def test_outsider(onecopy: Command) -> None:
    """The group is named, and who is to be in it."""
    for mechanism in examine(onecopy, *OUTSIDER)[:2]:
        assert not mechanism["usable"]
        assert "may not be opened: mode 660" in mechanism["why"]
        assert "usermod -aG" in mechanism["fix"]
        assert "nobody" in mechanism["fix"]


def test_no_udev_rule(onecopy: Command) -> None:
    os.chown(DEVICE, 0, 0)
    DEVICE.chmod(0o600)
    for mechanism in examine(onecopy, *OUTSIDER)[:2]:
        assert "may not be opened: mode 600" in mechanism["why"]
        assert "udev rule" in mechanism["fix"]


def test_no_device(onecopy: Command) -> None:
    """As in a container that was not given it."""
    DEVICE.unlink()
    for mechanism in examine(onecopy)[:2]:
        assert "loaded, but /dev/onecopy is not here" in mechanism["why"]
        assert "udevadm" in mechanism["fix"] or "--device" in mechanism["fix"]


def test_nothing_may_be_pinned(onecopy: Command) -> None:
    found = examine(onecopy, "sh", "-c", 'ulimit -l 0; exec "$@"', "sh", *MEMBER)
    for mechanism in found[:2]:
        assert "RLIMIT_MEMLOCK is 0" in mechanism["why"]
        assert mechanism["fix"] == "ulimit -l unlimited"


def test_little_may_be_pinned(onecopy: Command) -> None:
    """Usable, and how much is said."""
    mapped, kcopy, facts = examine(onecopy, "sh", "-c", 'ulimit -l 256; exec "$@"', "sh", *MEMBER)
    assert mapped["usable"]
    assert kcopy["usable"]
    assert facts["RLIMIT_MEMLOCK"] == "256.0 KiB"
