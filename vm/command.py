# SPDX-License-Identifier: BSD-3-Clause
"""Runs a command in a guest with the kernel module loaded, and judges."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

import guest
from kernels import kernels

from kernel import UNAVAILABLE, KernelError, UnavailableError

EPILOG = f"""The command sees the host's files, read-only below a layer in memory that goes with the guest. It runs as
root, with this environment and working directory. Ends with the command's status; {guest.BAD} if that was 0 but the
kernel complained, something leaked or the module would not unload; {guest.LOST} if the guest was lost;
{UNAVAILABLE} if there was none to begin with: no network, no QEMU."""

ENDING = (signal.SIGHUP, signal.SIGTERM)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="vm/run", description=__doc__, epilog=EPILOG)
    parser.add_argument("--kernel", choices=list(kernels()), default="uml", help="default: %(default)s")
    parser.add_argument("--cpus", type=int, default=2, metavar="N", help="default: %(default)s")
    parser.add_argument("--mem", default="2G", metavar="SIZE", help="default: %(default)s")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS", help="default: %(default)s")
    parser.add_argument("--shell", action="store_true", help="a shell instead of a command")
    parser.add_argument("--no-module", action="store_true", help="do not load the module (and do not build it)")
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="of the module; repeatable")
    parser.add_argument(
        "--writable", action="append", default=[], type=Path, metavar="DIR", help="the guest writes there; repeatable"
    )
    parser.add_argument("--append", action="append", default=[], metavar="WORD", help="to the kernel's command line")
    parser.add_argument("--qemu", action="append", default=[], metavar="WORD", help="to QEMU's command line")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    found = parser.parse_args(argv)
    if found.command[:1] == ["--"]:
        del found.command[0]
    if bool(found.command) == found.shell:
        parser.error("either a command after -- or --shell")
    return found


def leave(number: int, _: FrameType | None) -> None:
    """Ends us by way of every `finally`, so that guest and temporary files go. Further signals do not disturb that."""
    for also in ENDING:
        signal.signal(also, signal.SIG_IGN)
    sys.exit(128 + number)


def main(argv: list[str] | None = None) -> int:
    given = arguments(argv)
    kernel = kernels()[given.kernel]
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, leave)
    try:
        job = guest.Job(
            kernel=kernel,
            command=None if given.shell else given.command,
            cpus=given.cpus,
            memory=given.mem,
            timeout=given.timeout,
            load=not given.no_module,
            parameters=given.param,
            writable=guest.check_directories(given.writable),
            append=given.append,
            qemu=given.qemu,
        )
        verdict = guest.run(job)
    except KernelError as reason:
        print(f"vm: {kernel.name}: {reason}", file=sys.stderr)
        return UNAVAILABLE if isinstance(reason, UnavailableError) else guest.LOST
    guest.report(verdict, kernel.name)
    return verdict.exit_status
