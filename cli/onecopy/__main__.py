# SPDX-License-Identifier: BSD-3-Clause
"""python3 -m onecopy: the command's front."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from onecopy import __version__

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
    if chosen == "run":
        from onecopy import run

        options, command_line = run.split(words[1:])
        return run.main(parser.parse_args(["run", *options]), command_line)
    args = parser.parse_args(words)
    status: int = importlib.import_module(f"onecopy.{args.command}").main(args)
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("onecopy"):
            raise
        sys.exit(
            f"onecopy: the Python package {error.name} is missing: "
            f"apt install python3-{error.name}, or `make deps` in a checkout"
        )
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)
