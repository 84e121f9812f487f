# SPDX-License-Identifier: BSD-3-Clause
"""python3 -m onecopy: the command's front."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence

from onecopy import __version__, install, start

#: Imported when asked for: `run` must not wait for matplotlib.
COMMANDS = {
    "run": "start a program with onecopy",
    "doctor": "look at this host: what works, what does not, and how to mend it",
    "bench": "measure with and without onecopy, side by side",
    "plot": "draw the figures of a `bench` directory",
}


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="onecopy", description="MPI programs on one node, faster, unmodified.")
    parser.add_argument("--version", action="version", version=f"onecopy {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    chosen = words[0] if words else ""
    for name, what in COMMANDS.items():
        command = commands.add_parser(name, help=what, description=what)
        if name == chosen:
            importlib.import_module(f"onecopy.{name}").add_arguments(command)
    command_line: list[str] = []
    if chosen == "run":
        from onecopy import run

        options, command_line = run.split(words[1:])
        words = ["run", *options]
    args, unknown = parser.parse_known_args(words)
    if unknown:  # by itself argparse shows the usage of "onecopy", not that of its command
        commands.choices.get(chosen, parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    if chosen == "run":
        return run.main(args, command_line)
    status: int = importlib.import_module(f"onecopy.{args.command}").main(args)
    return status


def _flushed() -> int:
    try:
        return main()
    finally:
        if sys.stdout:  # None when the caller has closed it
            sys.stdout.flush()


def _drop_output() -> None:
    """What is left in stdout's buffer has nowhere to go; Python would complain about it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def guarded() -> int | str:
    """The command's exit status, or one line for what no command expected of the system."""
    start.take_children()
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":  # names of files are any bytes
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _flushed()
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("onecopy"):
            raise
        fix = f"apt install python3-{error.name}, or `make deps` in a checkout"
        if install.in_wheel():
            fix = "pip install 'onecopy[bench]'"
        return f"onecopy: the Python package {error.name} is missing: {fix}"
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _drop_output()
        return 141
    except OSError as error:
        _drop_output()
        return f"onecopy: {error.filename or 'cannot write'}: {error.strerror or error}"


if __name__ == "__main__":
    sys.exit(guarded())
