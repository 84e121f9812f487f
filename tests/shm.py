# SPDX-License-Identifier: BSD-3-Clause
"""A /dev/shm for one worker of pytest alone: what jobs leave there is not taken for that of jobs beside them. An MPI's
file may be nobody's for as long as its job lasts, where a rank was killed or has unmapped it."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

SHM = Path("/dev/shm")

# sched.h, sys/mount.h
CLONE_NEWNS = 0x20000
MS_NOSUID, MS_NODEV, MS_REC, MS_SLAVE = 0x2, 0x4, 0x4000, 0x80000

_own = False


def take() -> None:
    """Mounts it for this thread and all it starts, while other workers run. Not every user may: `is_own` tells."""
    global _own
    if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) == 1:
        _own = True
        return
    libc = ctypes.CDLL(None, use_errno=True)
    _own = (
        SHM.is_dir()
        and libc.unshare(CLONE_NEWNS) == 0
        and libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_SLAVE), None) == 0
        and libc.mount(b"tmpfs", bytes(SHM), b"tmpfs", ctypes.c_ulong(MS_NOSUID | MS_NODEV), b"mode=1777") == 0
    )


def is_own() -> bool:
    """Whether jobs beside this worker's have another /dev/shm."""
    return _own
