# SPDX-License-Identifier: BSD-3-Clause
"""The long form of the tests, `make test-all`: what `make test` has no time for on a fresh machine of two cores.

A test marked `long(minutes)` runs there alone, after the short ones. Where ONECOPY_TEST_UNTIL says when the run has to
be over (seconds since the epoch), one that would not end before that is skipped, and says so. After ONECOPY_TEST_END
every test is: on a machine that is many times as slow as usual, what is left is told and not lost with the whole run.
"""

from __future__ import annotations

import os
import time

import pytest

ASKED = os.environ.get("ONECOPY_TEST_ALL", "") not in ("", "0")


def rounds(name: str, short: int, long: int) -> int:
    """How often a random test goes round: as the variable `name` says, or as this form of the tests does."""
    return int(os.environ.get(name) or (long if ASKED else short))


def mark(item: pytest.Item) -> pytest.Mark | None:
    """The item's `long` mark; the one nearest to it, where module and test have one."""
    return item.get_closest_marker("long")


def skip_unless_asked(item: pytest.Item) -> None:
    """For the set-up of each test."""
    if time.time() > float(os.environ.get("ONECOPY_TEST_END") or "inf"):
        pytest.skip("no time is left: this machine is too slow for one run of all tests")
    found = mark(item)
    if not found:
        return
    if not ASKED:
        pytest.skip("long: part of `make test-all`")
    (minutes,) = found.args
    until = float(os.environ.get("ONECOPY_TEST_UNTIL") or "inf")
    if time.time() + 60 * minutes > until:
        pytest.skip(f"takes {minutes} minutes, and this run has to end sooner: part of `make test-all`")
