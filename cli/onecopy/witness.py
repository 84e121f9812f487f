# SPDX-License-Identifier: BSD-3-Clause
"""Whether a signal that reached us was sent to us alone, or to all of our process group and so to the command, too.

`timeout`, batch systems and terminals send a signal to the group. Passed on as well it comes twice, and mpirun takes
the second for "at once". A group of the command's own would keep it from the terminal, and from SIGKILL of the group.
So a child stands in our group that does nothing but tell which signals it gets: what it has got, the command has.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
from collections.abc import Collection
from pathlib import Path

#: Seconds between looks at it, and how often it is looked at while it has a signal and does not say so.
TURN, TURNS = 0.1, 100


class Witness:
    """To be made with `watched` blocked, and closed before who made it ends. Without one (no more processes are
    allowed) it has seen nothing."""

    def __init__(self, watched: Collection[signal.Signals]) -> None:
        self._pid = 0
        try:
            told, tell = os.pipe()
            life, self._life = os.pipe()
        except OSError:
            return
        with contextlib.suppress(OSError):
            self._pid = os.fork()
            if self._pid == 0:
                _watch(watched, tell, life)
        self._told = told
        os.set_blocking(told, False)
        os.close(tell)
        os.close(life)

    def has_seen(self, number: int) -> bool:
        """Whether it has got this signal since it was asked for it last."""
        if not self._pid:
            return False
        for _ in range(TURNS):
            ready, _, _ = select.select([self._told], [], [], TURN)
            if ready and number in (told := os.read(self._told, 4096)):
                return True
            if ready and not told:  # somebody has ended it
                return False
            if not ready and not self._is_pending(number):
                return False
        return True

    def _is_pending(self, number: int) -> bool:
        """The kernel gives a signal to the youngest of a group first: what we have and it has not is ours alone."""
        try:
            text = Path(f"/proc/{self._pid}/status").read_text()
        except OSError:
            return False
        found = re.search(r"^ShdPnd:\s*(\w+)$", text, re.MULTILINE)
        return found is not None and bool(int(found[1], 16) >> (number - 1) & 1)

    def close(self) -> None:
        if self._pid:
            os.close(self._life)
            os.close(self._told)
            os.waitpid(self._pid, 0)
            self._pid = 0


def _watch(watched: Collection[signal.Signals], tell: int, life: int) -> None:
    """Never returns: ends when the other end of `life` is closed, by whatever."""
    try:
        os.set_blocking(tell, False)
        signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
        for number in watched:
            signal.signal(number, lambda *_: None)
        for entry in list(Path("/proc/self/fd").iterdir()):
            if (fd := int(entry.name)) not in (tell, life):
                with contextlib.suppress(OSError):  # that of the list
                    os.close(fd)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)
        os.read(life, 1)
    finally:
        os._exit(0)
