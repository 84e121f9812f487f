# SPDX-License-Identifier: BSD-3-Clause
"""What huge pages the shared heap has here, and what would give it more: the rules of lib/heap/huge.c."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from onecopy import machine

SETTINGS = "/sys/kernel/mm/transparent_hugepage"
APPARMOR_KNOB = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
ADVISE = f"as root on the host: echo advise > {SETTINGS}/shmem_enabled"
REPORTS = "/sys/module/page_reporting/parameters/page_reporting_order"
LARGEST = 10  # order of free blocks
COLLAPSES = (6, 1)  # the first Linux with MADV_COLLAPSE


def refusal() -> str:
    """Why no file system of our own can be made, "" where it can."""
    if re.search(r"^Seccomp:\s*2$", machine.read("/proc/self/status"), re.MULTILINE):
        return "a seccomp filter is in place"
    if os.geteuid() and machine.read(APPARMOR_KNOB) not in ("", "0"):
        return "AppArmor restricts user namespaces"
    if _release() < (5, 2):
        return "it takes Linux 5.2"
    try:
        done = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", "true"], capture_output=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""  # nobody to ask
    return "user namespaces cannot be made" if done.returncode else ""


def _release() -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def reports_free_pages() -> bool:
    """In a virtual machine whose host has to back each huge page anew: lib/base/thp.c."""
    order = machine.read(REPORTS).strip()
    return order.isdigit() and int(order) <= LARGEST


def judge() -> tuple[str, str]:
    """What is had, and a judgement with what an administrator could do."""
    if os.environ.get("ONECOPY_THP") == "never":
        return "none", "ONECOPY_THP is never"
    private = machine.selected(f"{SETTINGS}/enabled")
    shared = machine.selected(f"{SETTINGS}/shmem_enabled")
    if private not in ("always", "madvise"):
        if not Path(SETTINGS).exists():
            return "none", "the kernel has none: as without onecopy"
        return "none", f"enabled is {private}: as without onecopy"
    if shared == "deny":
        return "none", f"shmem_enabled is deny; {ADVISE}"
    had = "as for private memory" if private == "always" else "where asked for, or blocks are filled"
    why = refusal()
    if private == "madvise" and reports_free_pages() and os.environ.get("ONECOPY_THP") != "always":
        had = "where the program asks for them" + (", else in time" if _release() >= COLLAPSES else "")
        dear = "the host of this virtual machine makes them dear; ONECOPY_THP=always has them at once"
        return had, f"{dear}; {why}" if why else f"good: {dear}"
    if not why:
        return had, "good: in a file system of its own"
    if shared in ("advise", "always", "within_size", "force"):
        return had, f"good: shmem_enabled is {shared}"
    if _release() >= COLLAPSES:
        return "late, of what has filled up", f"{why}; {ADVISE}"
    return "none", f"{why}; {ADVISE}"
