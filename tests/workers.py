# SPDX-License-Identifier: BSD-3-Clause
"""Which tests run beside each other.

Those of the kernel module boot guests, with as many CPUs as there are: one worker has all of tests/kmod, one after the
other, while others have the rest. A file's tests, which share what they build, stay together.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from longform import mark
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

GUESTS = "tests/kmod"
LARGE = "tests/unit/test_units.py"  # builds the library once more


class FileScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Like --dist loadfile, but a directory of guests counts as one file."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.split("::", 1)[0]
        return GUESTS if path.startswith(f"{GUESTS}/") else path


def arrange(items: list[pytest.Item], root: Path) -> None:
    """Guests first, for they take longest, and the largest of the other files, so that the last of all is small; long
    tests after the short ones of their worker."""
    guests, large = root / GUESTS, root / LARGE
    items.sort(key=lambda item: (guests not in item.path.parents, item.path != large, mark(item) is not None))
