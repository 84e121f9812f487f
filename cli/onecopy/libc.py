# SPDX-License-Identifier: BSD-3-Clause
"""What the C library is told that programs share memory under.

On AMD's processors memcpy() of glibc before 2.40 uses REP MOVSB for 4 KiB and more, which is 10 to 20 times as slow
where the destination is 1 to 15 bytes further in its page than the source is in its own (glibc bug 30994). Blocks of
the shared heap begin with a page, glibc's 16 bytes into one, and Open MPI's memory of MPI_Win_allocate 8: so it is the
copies to such memory that are slow with onecopy, and those from it without. glibc 2.40 does not use REP MOVSB there;
here the older ones are told not to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "GLIBC_TUNABLES"
TUNABLE = "glibc.cpu.x86_rep_movsb_threshold"
#: More bytes than are ever copied.
NEVER = str(1 << 62)
MENDED = (2, 40)
PROCESSORS = Path("/proc/cpuinfo")
ONE = 4096  # no more bytes tell of one of them: a large machine's take long to list


def version() -> tuple[int, ...]:
    """Of this process's glibc, () if it has another C library. A program's is the same but in odd cases."""
    try:
        said = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        said = ""
    match = re.fullmatch(r"glibc (\d+)\.(\d+)", said)
    return (int(match[1]), int(match[2])) if match else ()


def has_slow_copies() -> bool:
    """Whether memcpy() is slow where source and destination lie unfavourably."""
    try:
        with PROCESSORS.open("rb") as file:
            processor = file.read(ONE).decode(errors="replace")
    except OSError:
        return False
    amd = re.search(r"^vendor_id\s*: (AuthenticAMD|HygonGenuine)$", processor, re.MULTILINE)
    return bool(amd and re.search(r"^flags\s*:.*\berms\b", processor, re.MULTILINE) and () < version() < MENDED)


def settings(env: Mapping[str, str]) -> dict[str, str]:
    """Variables to be set beside those of `env`. What the user has said of it stands."""
    said = env.get(VARIABLE, "")
    if TUNABLE in said or not has_slow_copies():
        return {}
    return {VARIABLE: ":".join([*([said] if said else []), f"{TUNABLE}={NEVER}"])}
