# SPDX-License-Identifier: BSD-3-Clause
"""The long form of the tests, `make test-all`: what `make test` has no time for on a fresh machine of two cores.

A test marked `long(minutes)` runs there alone, after the short ones. Where ONECOPY_TEST_UNTIL says when the run has to
be over (seconds since the epoch), one that would not end before that is skipped, and says so. After ONECOPY_TEST_END
every test is, and what waits is soon given up: on a machine that is many times as slow as usual, what is left is told
and not lost with the whole run.
"""

from __future__ import annotations

import math
import os
import time

import pytest
from onecopy import pace

ASKED = os.environ.get("ONECOPY_TEST_ALL", "") not in ("", "0")


END = float(os.environ.get("ONECOPY_TEST_END") or "inf")
#: Seconds that a test has which began before END.
REST = 480
TOO_SLOW = "no time is left: this machine is too slow for one run of all tests"
#: Seconds for which a measurement of the machine holds.
FRESH = 120

_measured = (0.0, -math.inf)


def slowness() -> float:
    """That of this machine in these minutes: 1 where nothing slows it."""
    global _measured
    if time.monotonic() - _measured[1] > FRESH:
        _measured = (pace.slowness(), time.monotonic())
    return _measured[0]


def seconds_left() -> float:
    """How long a test may still wait for something."""
    return max(0.0, END + REST - time.time())


def skip_at_the_end() -> None:
    """For a test that found no end of something: where the whole run is at its end, that says nothing."""
    if seconds_left() == 0:
        pytest.skip(TOO_SLOW)


def rounds(name: str, short: int, long: int) -> int:
    """How often a random test goes round: as the variable `name` says, or as this form of the tests does."""
    return int(os.environ.get(name) or (long if ASKED else short))


def param(*values: object, short: bool, minutes: float, name: str | None = None) -> object:
    """Parameters of a test that takes so long with them; where they are not for the short form, it runs there alone."""
    return pytest.param(*values, id=name, marks=[] if short else [pytest.mark.long(minutes)])


def mark(item: pytest.Item) -> pytest.Mark | None:
    """The item's `long` mark; the one nearest to it, where module and test have one."""
    return item.get_closest_marker("long")


def skip_unless_asked(item: pytest.Item) -> None:
    """For the set-up of each test."""
    if time.time() > END:
        pytest.skip(TOO_SLOW)
    found = mark(item)
    if not found:
        return
    if not ASKED:
        pytest.skip("long: part of `make test-all`")
    (minutes,) = found.args
    until = float(os.environ.get("ONECOPY_TEST_UNTIL") or "inf")
    if time.time() + 60 * minutes > until or (math.isfinite(END) and time.time() + 60 * minutes * slowness() > END):
        pytest.skip(f"takes {minutes} minutes, and this run has to end sooner: part of `make test-all`")
