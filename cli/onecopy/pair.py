# SPDX-License-Identifier: BSD-3-Clause
"""Two processes with a common parent, as the ranks of a job are, for probes that need real ones.

They are forked, not started anew: what restricts this process (a seccomp filter, namespaces, limits) restricts them
the same way, and a probe that the kernel answers with a signal kills a child and not the command.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

TIMEOUT = 60.0  # of a probe that needs milliseconds: a busy host must not look like a broken one


class Side:
    """One of the two, 0 or 1, and its connection to the other."""

    def __init__(self, index: int, link: socket.socket) -> None:
        self.index = index
        self.link = link
        # Reading only: a text file for both ways drops what it has read ahead when it writes.
        self._lines = link.makefile("r", encoding="utf-8")

    def exchange(self, value: Any) -> Any:
        """Sends a value and returns the other's: also a barrier. EOFError when the other has died."""
        try:
            self.link.sendall(json.dumps(value).encode() + b"\n")
            line = self._lines.readline()
        except (BrokenPipeError, ConnectionResetError):
            line = ""
        if not line:
            raise EOFError("the other process has died")
        return json.loads(line)


def _child(body: Callable[[Side], dict[str, Any]], side: Side, out: int) -> None:
    """Never returns."""
    try:
        try:
            result = body(side)
        except OSError as error:
            result = {"errno": error.errno or 0, "what": str(error)}
        except BaseException as error:  # the parent reports it; there is nobody else to see it
            result = {"errno": 0, "what": f"{type(error).__name__}: {error}"}
        os.write(out, json.dumps(result).encode())
    finally:
        os._exit(0)


def _collect(pid: int, source: int, until: float) -> dict[str, Any]:
    os.set_blocking(source, False)
    status = None
    while status is None:
        done, code = os.waitpid(pid, os.WNOHANG)
        if done:
            status = code
        elif time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return {"errno": 0, "what": f"no answer within {TIMEOUT:.0f} s"}
        else:
            time.sleep(0.002)
    data = b""
    with contextlib.suppress(BlockingIOError):  # an answer is far smaller than a pipe
        data = os.read(source, 65536)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return {"errno": 0, "signal": name, "what": f"killed by {name}"}
    try:
        result: dict[str, Any] = json.loads(data)
    except ValueError:
        return {"errno": 0, "what": f"ended with status {os.WEXITSTATUS(status)} and no answer"}
    return result


def run(body: Callable[[Side], dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """What body returned in each of the two. A child that raised or died yields {"errno": ..., "what": why}."""
    links = socket.socketpair()
    children: list[tuple[int, int]] = []
    for index in (0, 1):
        source, out = os.pipe()
        pid = os.fork()
        if pid == 0:
            links[1 - index].close()
            _child(body, Side(index, links[index]), out)
        os.close(out)
        children.append((pid, source))
    for link in links:
        link.close()
    until = time.monotonic() + TIMEOUT
    results = []
    for pid, source in children:
        results.append(_collect(pid, source, until))
        os.close(source)
    return results
