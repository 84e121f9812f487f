# SPDX-License-Identifier: BSD-3-Clause
"""An interpreter whose MPI comes late, by dlopen(RTLD_LOCAL) of an extension module, or of the MPI itself and then of
the module, as mpi4py has it; then it forks."""

import ctypes
import multiprocessing
import subprocess
import sys


def in_child(total: int) -> int:
    return sum(range(total))


def main() -> None:
    before = bytearray(b"x" * (1 << 20))
    for path in sys.argv[2:]:
        ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL)
    plugin = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_LOCAL)
    plugin.plugin_start()
    plugin.plugin_use()
    after = bytearray(b"y" * (1 << 20))
    assert subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, check=True).stdout == b"42\n"
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(in_child, [10, 1000]) == [45, 499500]
    plugin.plugin_use()
    before *= 3
    after *= 3
    assert before == b"x" * (3 << 20)
    assert after == b"y" * (3 << 20)
    plugin.plugin_stop()


main()
