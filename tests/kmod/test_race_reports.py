# SPDX-License-Identifier: BSD-3-Clause
"""Which of the data races in a kernel's log are the module's: vm/races.py."""

from __future__ import annotations

import pytest
import races

LOG = """\
[    1.0] before
[    1.1] ==================================================================
[    1.1] BUG: KCSAN: data-race in {title}
[    1.1]
[    1.1] write to 0xff11 of 8 bytes by task 480 on cpu 1:
[    1.1]  {inner}+0x42/0x90
[    1.1]  {outer}
[    1.1] ==================================================================
[    1.2] after
"""


@pytest.mark.parametrize(
    ("title", "inner", "outer", "ours"),
    [
        ("ock_get / ock_put", "ock_get [onecopy]", "do_syscall_64+0x6c/0x290", True),
        ("memcpy / memset", "memcpy", "softdma_work+0x37/0x50 [softdma]", True),
        ("memcpy / memset", "memcpy", "ext4_write+0x37/0x50 [ext4]", False),
        ("process_one_work / queue_work_on", "queue_work_on", "ock_async_submit+0x2f6/0x580 [onecopy]", False),
        ("__pwq_activate_work / queue_delayed_work_on", "queue_delayed_work_on", "ock_go+0x2f/0x58 [onecopy]", False),
        ("process_one_work", "process_one_work", "ock_go+0x2f/0x58 [onecopy]", True),
        ("process_one_work / ock_async_submit", "ock_async_submit", "ock_file_copy+0x1/0x2 [onecopy]", True),
    ],
)
def test_whose(title: str, inner: str, outer: str, ours: bool) -> None:
    rest, found = races.split(LOG.format(title=title, inner=inner, outer=outer))
    assert [(race.title, race.ours) for race in found] == [(f"data-race in {title}", ours)]
    assert rest == "[    1.0] before\n[    1.2] after\n"
