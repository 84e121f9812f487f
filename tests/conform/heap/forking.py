# SPDX-License-Identifier: BSD-3-Clause
"""forking.py NAME: the ways Python makes processes, while large objects live in the shared heap."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

LARGE = 8 << 20
block = bytearray(b"a" * LARGE)


def in_heap() -> bool:
    return "onecopy-heap" in Path("/proc/self/maps").read_text()


def work(seed: int) -> int:
    assert block.count(b"a") == LARGE, "the child's copy changed"
    mine = bytearray([seed]) * LARGE
    block[:] = mine
    return len(mine) + block.count(bytes([seed]))


def pool() -> None:
    with multiprocessing.get_context("fork").Pool(3) as workers:
        assert workers.map(work, [1], 1) == [2 * LARGE]
    assert block.count(b"a") == LARGE


def queue() -> None:
    context = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[bytes] = context.Queue()
    child = context.Process(target=lambda: results.put(bytes(block)))
    child.start()
    block[:] = b"b" * LARGE
    assert results.get() == b"a" * LARGE
    child.join()
    assert child.exitcode == 0


def shells() -> None:
    assert os.system("exit 3") == 3 << 8
    assert os.popen("echo popen").read() == "popen\n"
    assert subprocess.run(["echo", "spawned"], capture_output=True, check=True).stdout == b"spawned\n"
    done = subprocess.run(["cat"], input=bytes(block), capture_output=True, check=True, preexec_fn=lambda: None)
    assert done.stdout == bytes(block)
    assert block.count(b"a") == LARGE


def generations() -> None:
    for depth in range(4):
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            assert status == 0
            break
        assert block.count(bytes([ord("a") + depth])) == LARGE
        block[:] = bytes([ord("b") + depth]) * LARGE
    else:
        os._exit(0)
    if depth:
        os._exit(0)
    assert block.count(b"a") == LARGE


if __name__ == "__main__":
    assert in_heap()
    {"pool": pool, "queue": queue, "shells": shells, "generations": generations}[sys.argv[1]]()
    print("done")
