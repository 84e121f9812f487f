# SPDX-License-Identifier: BSD-3-Clause
"""How a command is started: with the signal dispositions that it would have without us."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Mapping, Sequence
from typing import NoReturn

#: Python ignores these; an ignored signal would stay ignored in the program.
DEFAULTS = (signal.SIGPIPE, signal.SIGXFSZ)
NOT_EXECUTABLE = 126  # the shell's status

#: Ignored by whoever started us, and here not: children would end without a status.
_taken: list[signal.Signals] = []


def take_children() -> None:
    """Lets us wait for children. Programs that are started by the functions below do not see it."""
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _taken.append(signal.SIGCHLD)


def replace(path: str, command: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """Becomes the program. OSError when it cannot."""
    for number in DEFAULTS:
        signal.signal(number, signal.SIG_DFL)
    for number in _taken:
        signal.signal(number, signal.SIG_IGN)
    os.execve(path, list(command), env)


def spawn(path: str, command: Sequence[str], env: Mapping[str, str], mask: Collection[int]) -> int:
    """The program as a child, with `mask` blocked. OSError when it cannot be."""
    if not _taken:
        return os.posix_spawn(path, list(command), env, setsigmask=mask, setsigdef=DEFAULTS)
    failed, fail = os.pipe()
    child = os.fork()  # posix_spawn() cannot have a signal ignored
    if child == 0:
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            replace(path, command, env)
        except OSError as error:
            os.write(fail, str(error.errno).encode())
        finally:
            os._exit(NOT_EXECUTABLE)
    os.close(fail)
    with os.fdopen(failed, "rb") as pipe:
        number = pipe.read()
    if number:
        os.waitpid(child, 0)
        raise OSError(int(number), os.strerror(int(number)), path)
    return child
