# SPDX-License-Identifier: BSD-3-Clause
"""usage: allocator.py PATCHELF OUTPUT

Copies the libmimalloc of this machine, as the preload libraries would find it, for a wheel to bring along. It gets a
name of its own: by libmimalloc's, a program that needs another version of that would be given this one.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

from onecopy import probes


def loaded(name: str) -> Path:
    """The file of a library that this process has just loaded."""
    stem = name.partition(".so")[0]
    paths = (line.split(maxsplit=5)[-1].strip() for line in Path("/proc/self/maps").read_text().splitlines())
    return Path(next(path for path in paths if Path(path).name.startswith(stem)))


def find() -> Path:
    for name in probes.MIMALLOC:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        version = library.mi_version()
        if version < probes.MIMALLOC_OLDEST:
            sys.exit(f"{name} is version {version}: exclusive arenas came with 2.0.9")
        return loaded(name)
    sys.exit("no libmimalloc.so.2 or .3 to put into the wheel: install Debian's libmimalloc2.0 or libmimalloc3")


def main() -> None:
    patchelf, output = sys.argv[1], Path(sys.argv[2])
    shutil.copyfile(find(), output)
    subprocess.run([patchelf, "--set-soname", output.name, output], check=True)


if __name__ == "__main__":
    main()
