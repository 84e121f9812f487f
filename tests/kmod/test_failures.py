# SPDX-License-Identifier: BSD-3-Clause
"""What is shown of a guest's output when something failed in it: tests/guests.py."""

from __future__ import annotations

import guests

OUTPUT = """\
# == one
# seed KMOD_SEED=0x1
# told, but nothing happened
ok 1 - first
# fuzz.c:12: EAGAIN is no errno of it
not ok 2 - second # a check failed 0.7 s
1..2
# == two
# seed KMOD_SEED=0x2
ok 1 - third
# 2 passed, 0 skipped, 1 failed
"""


def test_a_failed_case_comes_with_its_reason_and_seed() -> None:
    assert guests.failures(OUTPUT) == [
        "# seed KMOD_SEED=0x1",
        "# fuzz.c:12: EAGAIN is no errno of it",
        "not ok 2 - second # a check failed 0.7 s",
    ]


def test_nothing_is_shown_of_what_passed() -> None:
    assert guests.failures(OUTPUT.replace("not ok", "ok")) == []
