# SPDX-License-Identifier: BSD-3-Clause
"""Where onecopy's own files are.

The package runs from a checkout (CHECKOUT/cli/onecopy, libraries in CHECKOUT/build/lib and build/preload), from an
installed prefix (PREFIX/lib/onecopy/cli/onecopy, libraries in PREFIX/lib/<triplet>/onecopy) and from a wheel, which has
all of it in the package. ONECOPY_LIBDIR names one directory that is looked at before any of them; ONECOPY_BUILD names
the checkout's build directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
#: The MPIs' binary interfaces: there is a preload library for each.
SERVED = ("openmpi4", "mpich", "mpi5")
#: What PYTHONPATH holds for this package, and what a started program must not see there.
CLI = PACKAGE.parent
#: Libraries and sources within the package, where a wheel has them.
PACKAGE_LIB = PACKAGE / "lib"
PACKAGE_BENCH = PACKAGE / "bench" / "programs"
#: The allocator that a wheel brings along, beside the libraries (lib/heap/mimalloc.c).
ALLOCATOR = "libonecopy-mimalloc.so"


def in_wheel() -> bool:
    return PACKAGE_LIB.is_dir()


def checkout() -> Path | None:
    """The source tree this package runs from, None when it is installed."""
    root = CLI.parent
    return root if (root / "bench" / "meson.build").is_file() else None


def directories() -> Iterator[Path]:
    """Directories that may hold built files, best first."""
    if named := os.environ.get("ONECOPY_LIBDIR"):
        yield Path(named).absolute()
    if in_wheel():
        yield PACKAGE_LIB
        return
    if root := checkout():
        yield Path(os.environ.get("ONECOPY_BUILD") or root / "build").absolute()
        return
    prefix = CLI.parents[2]
    for lib in ("lib", "lib64"):
        yield from sorted((prefix / lib).glob("*/onecopy"))
        yield prefix / lib / "onecopy"


def find(name: str) -> Path | None:
    """A built library or program by its file name: in a directory itself, or where a build tree keeps it."""
    for directory in directories():
        for part in ("", "preload", "lib", "bench"):
            path = directory / part / name
            if path.is_file():
                return path
    return None


def find_library() -> Path | None:
    """The library for C programs; installed, it lies where libraries lie, a level above the preload ones."""
    for name in ("libonecopy.so", "libonecopy.so.0"):
        if path := find(name):
            return path
        for directory in directories():
            if (path := directory.parent / name).is_file():
                return path
    return None


def preload_name(abi: str) -> str:
    return f"libonecopy-{abi}.so"


def bench_sources() -> Path:
    """The directory of the benchmark programs' sources."""
    if in_wheel():
        return PACKAGE_BENCH
    root = checkout()
    return root / "bench" / "programs" if root else CLI.parent / "bench" / "programs"
