# SPDX-License-Identifier: BSD-3-Clause
"""Builds the kernel module, without booting anything, against headers of several kernels."""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kernels import build_only
from stock import Stock

from kernel import UNAVAILABLE, KernelError, UnavailableError

FAILED = 1  # exit status: it does not compile somewhere

EPILOG = f"""Headers come from Debian's suites, each with the compiler of its age, into the cache; warnings are errors.
Ends with {FAILED} if something does not compile, {UNAVAILABLE} if it all does but for headers that cannot be had."""


@dataclass
class Row:
    """What came of one version. `why` is empty where it builds."""

    name: str
    release: str
    compiler: str
    status: int
    why: str = ""


def build(kernel: Stock) -> Row:
    release = compiler = "-"
    try:
        kernel.prepare()
        release, compiler = kernel.release, kernel.compiler
        with tempfile.TemporaryDirectory(prefix="onecopy-vm-") as directory:
            modules = kernel.build_modules(Path(directory))
    except UnavailableError as reason:
        return Row(kernel.name, release, compiler, UNAVAILABLE, str(reason))
    except KernelError as reason:
        return Row(kernel.name, release, compiler, FAILED, str(reason))
    if not modules:
        return Row(kernel.name, release, compiler, FAILED, "the build made no module")
    return Row(kernel.name, release, compiler, 0)


def table(rows: list[Row]) -> str:
    words = {0: "builds", FAILED: "FAILS", UNAVAILABLE: "not had"}
    cells = [("kernel", "release", "result", "compiler")]
    cells += [(row.name, row.release, words[row.status], row.compiler) for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(3)]
    return "\n".join("  ".join([*(f"{c:{w}}" for c, w in zip(line, widths, strict=False)), line[3]]) for line in cells)


def main(argv: list[str] | None = None) -> int:
    known = build_only()
    parser = argparse.ArgumentParser(prog="vm/build-only", description=__doc__, epilog=EPILOG)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"of {', '.join(known)}; all when none is named")
    given = parser.parse_args(argv).versions
    if unknown := [name for name in given if name not in known]:
        parser.error(f"no headers named {', '.join(unknown)}; there are {', '.join(known)}")
    rows = [build(known[name]) for name in given or known]
    print(table(rows))
    for row in rows:
        if row.why:
            print(f"vm: {row.name}: {row.why}", file=sys.stderr)
    statuses = {row.status for row in rows}
    return next((status for status in (FAILED, UNAVAILABLE) if status in statuses), 0)
