# SPDX-License-Identifier: BSD-3-Clause
"""`onecopy run`: starts a command with the preload library of its MPI.

The command runs as it would without us: the environment is the one we were started with plus our variables, signal
dispositions are the defaults, exit status and signals pass through. When onecopy cannot help, one line says why and
what to do about it, and the command runs untouched.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import resource
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from onecopy import elf, install, launch, libc, mpi, openmpi, start

MECHANISMS = ("heap", "map", "kcopy", "cma", "staged")
NOT_FOUND, NOT_EXECUTABLE = 127, start.NOT_EXECUTABLE  # the shell's statuses for these
OPEN_MPI = {install.preload_name("openmpi4" + version) for version in ("", mpi.MPI_3, mpi.MPI_4)}
#: The library of a sanitizer, gcc's or clang's.
SANITIZER = re.compile(r"lib(\w*san|clang_rt\.\w+)\b")
#: Options that take the next word as their value; all others stand alone or use "=".
WITH_VALUE = ("--mech", "--min")
OFF = ("off", "0", "no")  # as lib/base/env.c reads it
STYLES = ("line", "table", "json")  # of --stats
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
#: Of these, what is meant to end the command.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our options and the command: it starts after `--` or at the first word that is neither option nor value."""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return list(words[:at]), list(words[at + 1 :])
        if not word.startswith("-"):
            break
        at += 2 if word in WITH_VALUE else 1
    return list(words[:at]), list(words[at:])


def mechanisms_here() -> list[str]:
    """Without the kernel module there is nothing to say about its mechanisms."""
    return [name for name in MECHANISMS if name not in ("map", "kcopy") or Path("/dev/onecopy").exists()]


def mechanism_list(text: str) -> str:
    names = [name for name in re.split(r"[, ]+", text) if name]
    if unknown := [name for name in names if name not in MECHANISMS]:
        raise argparse.ArgumentTypeError(f"no mechanism {unknown[0]!r}; there are {', '.join(MECHANISMS)}")
    if not names:
        raise argparse.ArgumentTypeError(f"name at least one of {', '.join(MECHANISMS)}")
    return ",".join(names)


def byte_count(text: str) -> int:
    """4096, 64K, 1M, 1MiB"""
    match = re.fullmatch(r"(\d+)([KMG]?)(i?B)?", text.strip(), re.IGNORECASE)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write 65536, 64K or 1M")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2].upper()]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "onecopy run [--stats[=table|json]] [--profile] [--verbose] [--mech LIST] [--no-heap] [--min BYTES] "
        "[--] COMMAND ..."
    )
    parser.add_argument(
        "--stats",
        nargs="?",
        const="line",
        choices=STYLES,
        help="at the end, say which collective calls were served, why others were not, and how long they took",
    )
    parser.add_argument(
        "--profile", action="store_true", help="serve nothing: measure the MPI alone, and say what could be gained"
    )
    parser.add_argument(
        "--verbose", action="store_true", help="say what is used, and every mechanism refused, with the reason"
    )
    parser.add_argument(
        "--mech", type=mechanism_list, metavar="LIST", help=f"use only these mechanisms: {','.join(MECHANISMS)}"
    )
    parser.add_argument("--no-heap", action="store_true", help="leave malloc alone: no shared heap")
    parser.add_argument(
        "--min", type=byte_count, metavar="BYTES", help="leave smaller collectives to the MPI (default: tuned)"
    )


def note(text: str) -> None:
    say(f"onecopy: {text}")


def say(text: str) -> None:
    """To stderr, if that takes it: what becomes of the command does not depend on it."""
    if not sys.stderr:  # None when the caller has closed it
        return
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        # Its buffer keeps the text, and Python would end with a status of its own for that.
        sys.stderr = io.StringIO()


def own_environment() -> dict[str, str]:
    """The environment the user gave us. Python may have added to it (PEP 538 sets LC_CTYPE), our wrapper script has
    put this package into PYTHONPATH; the program must see neither. A wheel has no such script."""
    try:
        initial = Path("/proc/self/environ").read_bytes().split(b"\0")
        env = dict(os.fsdecode(entry).split("=", 1) for entry in initial if b"=" in entry)
    except OSError:
        env = dict(os.environ)
    first, _, rest = env.get("PYTHONPATH", "").partition(":")
    if first and Path(first).resolve() == install.CLI and not install.in_wheel():
        if rest:
            env["PYTHONPATH"] = rest
        else:
            del env["PYTHONPATH"]
    return env


def joined_preload(library: Path, existing: str) -> str:
    """Ours before others, so that large blocks come from the shared heap also under another malloc; but a
    sanitizer's runtime insists on being first."""
    same = OPEN_MPI if library.name in OPEN_MPI else {library.name}
    others = [name for name in re.split(r"[: ]+", existing) if name and Path(name).name not in same]
    first = [name for name in others if SANITIZER.match(Path(name).name)]
    return ":".join([*first, str(library), *[name for name in others if name not in first]])


def with_sanitizers(preload: str, command: Sequence[str]) -> str:
    """The same with what programs of the command are linked to that insists on being first."""
    found: list[str] = []
    for path in mpi.executables(command):
        try:
            names = [name for name in elf.read(path).needed if SANITIZER.match(name)]
        except elf.NotElfError:
            continue
        files = dict(mpi.linked_libraries(path)) if names else {}
        found += [file for name in names if (file := files.get(name)) and not re.search(r"[:\s]", file)]
    named = {Path(name).name for name in preload.split(":")}
    return ":".join([*dict.fromkeys(file for file in found if Path(file).name not in named), preload])


def usable_library(abi: mpi.Abi) -> tuple[Path | None, str]:
    """The preload library for an MPI, or None and why there is none to use."""
    if abi.name is None:
        return None, f"{abi.source} uses {abi.title}, which onecopy does not know"
    names = [install.preload_name(one) for one in (install.SERVED if abi.name == mpi.ANY else [abi.name])]
    name = next((name for name in names if install.find(name)), names[0])
    library = install.find(name)
    if library is None:
        places = ", ".join(str(d) for d in install.directories())
        return None, f"{name} is missing (looked in {places}): build it with `make`, or set ONECOPY_LIBDIR"
    if re.search(r"[:\s]", str(library)):
        return None, f"{library}: LD_PRELOAD cannot name a path with a space or a colon; install onecopy elsewhere"
    if missing := mpi.missing_libraries(library):
        return None, f"{library} needs {', '.join(missing)}, which is not installed"
    return library, ""


def mismatch(library: Path, program: Path) -> str:
    """Why a 64-bit library does not fit a 32-bit program and the like; "" when it fits or cannot be told."""
    try:
        ours, theirs = elf.read(library), elf.read(program)
    except elf.NotElfError:
        return ""
    if ours.bits != theirs.bits:
        return f"{program} is a {theirs.bits}-bit program, {library} is for {ours.bits}-bit ones"
    if ours.machine != theirs.machine:
        return f"{program} is for another kind of processor than {library}"
    return ""


def choose(command: Sequence[str]) -> tuple[Path | None, str]:
    """The library to preload for a command, or None and one line that says why not."""
    abi, refusal = mpi.detect(command)
    if refusal:
        return None, f"{refusal.program} {refusal.why}, so nothing can be preloaded: {refusal.fix}"
    if abi is None:
        return None, "no MPI found: neither the command's programs nor an mpirun in PATH tell which one it uses"
    library, why = usable_library(abi)
    if library and (why := mismatch(library, abi.source)):
        return None, why
    return library, why


def unhelped(why: str) -> str:
    return f"cannot help, running the command without onecopy: {why}"


def what(error: Exception) -> str:
    """In one line, of an error that nobody thought of."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def switched_off(name: str) -> bool:
    """Whether a variable says so."""
    return os.environ.get(name) in OFF


def settings(args: argparse.Namespace) -> dict[str, str]:
    """Our variables as lib/base/env.c reads them."""
    env = {}
    if args.profile:
        env["ONECOPY"] = "profile"
    if args.verbose:
        env["ONECOPY_VERBOSE"] = "1"
    if args.mech:
        env["ONECOPY_MECH"] = args.mech
    if args.no_heap:
        env["ONECOPY_HEAP"] = "off"
    if args.min is not None:
        env["ONECOPY_MIN"] = str(args.min)
    return env


def carried(command: Sequence[str], env: Mapping[str, str], library: Path) -> tuple[list[str], dict[str, str]]:
    """What to start so that other nodes' ranks, too, get what loads the library and what it reads. A sanitizer is the
    program's: a launcher would be told of its own leaks, and end with an error."""
    names = ["LD_PRELOAD", *sorted(name for name in env if name.startswith("ONECOPY"))]
    ranks = dict(env)
    try:
        ranks["LD_PRELOAD"] = with_sanitizers(env["LD_PRELOAD"], command)
        return launch.carry(command, ranks, names, library.name in OPEN_MPI, {"LD_PRELOAD": env["LD_PRELOAD"]})
    except openmpi.DoubtError as doubt:
        if ranks != env:
            note(unhelped(f"its sanitizer has to be first, but {doubt}"))
            return list(command), own_environment()
        note(f"ranks on other nodes run without onecopy: {doubt}")
        return list(command), dict(env)
    except Exception as error:  # as in main()
        note(unhelped(what(error)))
        return list(command), own_environment()


def start_and_wait(path: str, command: Sequence[str], env: dict[str, str]) -> tuple[int, int]:
    """Runs a command to its end, passing signals on. Its wait status, and the last signal that was to end it, or 0.

    A signal typed at the terminal or sent to our process group reaches the command by itself, for it is in that group;
    sent twice it would mean "at once" to mpirun. So only those that were sent to us alone are passed on.
    """
    from onecopy.witness import Witness

    watched = {*FORWARDED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    with contextlib.closing(Witness(FORWARDED)) as witness:
        child = start.spawn(path, command, env, before)
        last = 0
        while True:
            number = signal.sigwaitinfo(watched).si_signo
            if number == signal.SIGCHLD:
                pid, status = os.waitpid(child, os.WNOHANG)
                if pid == child:
                    break
                continue
            last = number if number in ENDING else last
            if not witness.has_seen(number) or os.getpgid(child) != os.getpgrp():
                os.kill(child, number)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return status, last


def end_as(status: int) -> int:
    """Ends the way the command did: the same status, or by the same signal (without a second core file)."""
    if not os.WIFSIGNALED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number


def report(where: Path, style: str, command: Sequence[str], status: int, interrupted: int) -> None:
    from onecopy import cause, record, stats  # only now: starting a program must not wait for them

    found = stats.jobs(record.read(where))
    why = "" if found else cause.of(command, status, interrupted)
    if style == "json":
        say(stats.document(found, status, why))
        return
    said = [f"no statistics: {why}"] if why else []
    for number, job in enumerate(found, 1):
        if len(found) > 1:
            said.append(f"job {number} of {len(found)}:")
        said += stats.table(job) if style == "table" else stats.lines(job)
    if found and interrupted:
        said.append(f"interrupted by {cause.signal_name(interrupted)}")
    if found and ("PMIX_RANK" in os.environ or "PMI_RANK" in os.environ):
        said.append("each rank's `onecopy run` counts its own: `onecopy run mpirun ...` counts all")
    # At once: several of us may run side by side.
    mark = "" if found and style == "table" else "onecopy: "
    say("\n".join(mark + line for line in said))


def tell(library: Path, command: Sequence[str], of_libc: Mapping[str, str]) -> None:
    """What --verbose says before the command starts; the ranks say the rest."""
    from onecopy import cause

    note(f"preloads {library}")
    for name, value in of_libc.items():
        note(f"sets {name}={value}: memcpy of this C library is slow on this processor (glibc bug 30994)")
    program = cause.program_of(command)
    if program and not mpi.sends_by_itself(program) and (why := cause.kind(program)):
        note(f"{why}; onecopy has nothing to do in it")


def run_counted(path: str, command: Sequence[str], env: dict[str, str], style: str, library: Path) -> int:
    """Runs it with the ranks' records in a directory, and says what is in them. The status to end with."""
    from onecopy import record

    if "ONECOPY_STATS" in env:
        note("ONECOPY_STATS is not heeded beside --stats and --profile: leave one of them out")
    open_mpi = library.name in OPEN_MPI
    with contextlib.ExitStack() as stack:
        try:
            where = stack.enter_context(record.directory(shared=launch.has_other_nodes(command, env, open_mpi)))
        except OSError as error:
            note(f"no statistics: nowhere to keep them: {error.filename or 'a directory'}: {error.strerror}")
            where = None
        if where:
            env["ONECOPY_STATS"] = f"{where}/"
        try:
            status, interrupted = start_and_wait(path, *carried(command, env, library))
        except OSError as error:
            note(f"{path}: {error.strerror}")
            return NOT_EXECUTABLE
        if where:
            try:
                report(where, style, command, status, interrupted)
            except Exception as error:  # the status is the command's in any case
                note(f"no statistics: {what(error)}")
    return end_as(status)


def is_plain_script(path: Path) -> bool:
    """An executable text without "#!": a shell runs it itself, the kernel will not."""
    try:
        with path.open("rb") as file:
            head = file.read(256)
    except OSError:
        return False
    return not head.startswith((b"#!", b"\x7fELF")) and b"\0" not in head


def prepared(args: argparse.Namespace, command: Sequence[str]) -> tuple[Path | None, dict[str, str]]:
    """The library to preload, None after a note of why there is none, and the environment."""
    env = own_environment()
    library, why = choose(command)
    if library is None:
        note(unhelped(why))
        return None, env
    env.update(settings(args))
    env["LD_PRELOAD"] = joined_preload(library, env.get("LD_PRELOAD", ""))
    of_libc = {} if env.get("ONECOPY_HEAP") in OFF else libc.settings(env)
    env.update(of_libc)
    if args.verbose:
        tell(library, command, of_libc)
    return library, env


def main(args: argparse.Namespace, command: Sequence[str]) -> int:
    if not command:
        note("run what? For instance: onecopy run mpirun -n 4 ./program")
        return 2
    path = shutil.which(command[0])
    if path is not None and is_plain_script(Path(path)):
        command = ["/bin/sh", path, *command[1:]]
        path = "/bin/sh"
    if path is None:
        exists = "/" in command[0] and Path(command[0]).exists()
        hint = f" (did you mean --stats={command[0]}?)" if args.stats and command[0] in STYLES else ""
        note(f"{command[0]}: {'not an executable file' if exists else 'no such command'}{hint}")
        return NOT_EXECUTABLE if exists else NOT_FOUND
    try:
        library, env = prepared(args, command)
    except Exception as error:  # the command is to run, whatever we make of it
        note(unhelped(what(error)))
        library, env = None, own_environment()
    if sys.stdout:  # None when the caller has closed it
        sys.stdout.flush()
    if library and (args.stats or args.profile):
        return run_counted(path, command, env, args.stats or "table", library)
    if library:
        command, env = carried(command, env, library)
    try:
        start.replace(path, command, env)
    except OSError as error:
        note(f"{path}: {error.strerror}")
        return NOT_EXECUTABLE
