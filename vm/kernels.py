# SPDX-License-Identifier: BSD-3-Clause
"""The guests' kernels by name.

What is in the cache is used as it is and asks for no network: remove a directory there to have it made anew. Kernels
are built from Debian's newest source, or Debian's own binaries, which come with a small Debian of their age to build
modules in, whatever the host is.
"""

from __future__ import annotations

from built import Emulated, Uml
from stock import Stock

from kernel import Kernel


def kernels() -> dict[str, Kernel]:
    """Every kernel that boots, by the name it is asked for."""
    known = (*built().values(), Stock("6.1", "bookworm"), Stock("6.12", "trixie"))
    return {kernel.name: kernel for kernel in known}


def built() -> dict[str, Uml | Emulated]:
    """Those built here. `uml-stock` is for measuring what the patches for speed would hide: it has only the one that
    makes an option choosable."""
    known = (
        Uml("uml"),
        Uml("uml-quick", "uml-quick.config", soon=True),
        Uml("uml-debug", "uml-debug.config"),
        Uml("uml-stock", patches="1-*"),
        Emulated("qemu-debug", "kcsan.config", "uml-debug.config", "qemu-debug.config"),
        Emulated("kcsan", "kcsan.config", races=True),
    )
    return {kernel.name: kernel for kernel in known}


def build_only() -> dict[str, Stock]:
    """Kernels that modules are only built for, oldest first: each with its suite's own compiler, warnings as errors."""
    known = [
        Stock("5.10", "bullseye", image=False, strict=True),
        Stock("6.1", "bookworm", strict=True),
        Stock("6.12", "trixie", strict=True),
        Stock("newest", "trixie-backports", image=False, base="trixie", strict=True),
    ]
    return {kernel.name: kernel for kernel in known}
