# SPDX-License-Identifier: BSD-3-Clause
"""Time limits on machines whose processors are not all theirs.

A hypervisor that gives a virtual machine a part of its processors seldom says so (/proc/stat's `steal` stays 0), and
what takes a minute elsewhere takes ten there. A limit that is there to find what hangs must not end what is slow.
"""

from __future__ import annotations

import subprocess
import time

#: No limit gets longer than by this.
MOST = 10.0
_PIECE = range(4000)  # about a tenth of a millisecond


def slowness(seconds: float = 1.0) -> float:
    """How many times as long as it would undisturbed work takes here just now: 1 on a processor of one's own, 4 on one
    that is away for three quarters of the time. Equal pieces of work run for `seconds`; the fastest, which nothing
    disturbed, says how long all of them should have taken. At most MOST."""
    begin = last = time.perf_counter()
    fastest = seconds
    pieces = 0
    while last - begin < seconds:
        sum(_PIECE)
        now = time.perf_counter()
        fastest = min(fastest, now - last)
        last = now
        pieces += 1
    return min(MOST, max(1.0, (last - begin) / (pieces * fastest)))


def wait(process: subprocess.Popen[bytes], limit: float, most: float = float("inf")) -> int:
    """The status of a process that ends within `limit` seconds, longer by how slow this machine is just now, but never
    later than after `most`. Otherwise subprocess.TimeoutExpired, which names how long that was, and the process lives
    on."""
    begin = time.monotonic()
    try:
        return process.wait(min(limit, most))
    except subprocess.TimeoutExpired:
        longer = min(limit * slowness(), most)
    try:
        return process.wait(max(0.0, begin + longer - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise subprocess.TimeoutExpired(process.args, longer) from None
