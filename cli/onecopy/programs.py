# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark programs: those the build made for the MPI in PATH, or made here with an MPI's own compiler; and how
one is run to its end.

bench/programs/programs.txt says which sources each program has.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import resource
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from onecopy import elf, install, pace, peers
from onecopy import mpi as mpis

FLAGS = ("-O2", "-std=gnu11", "-D_GNU_SOURCE")


class BuildError(RuntimeError):
    """A program that cannot be built; the text carries the compiler's words."""


def sources(name: str) -> list[Path]:
    directory = install.bench_sources()
    isa = "x86" if platform.machine() in ("x86_64", "i686", "i386") else "none"
    for line in (directory / "programs.txt").read_text().splitlines():
        program, _, files = line.partition(":")
        if program == name:
            return [directory / file for file in files.replace("@isa@", isa).split()]
    raise BuildError(f"{directory / 'programs.txt'} knows no program {name}")


@functools.cache
def abi(mpirun: Path) -> str:
    """What an MPI's programs are linked with, as its launcher tells; "" for one of another kind."""
    found = mpis.abi_of_launcher(mpirun)
    return found.name or "" if found else ""


def fits(program: Path, mpi: peers.Mpi) -> bool:
    """Whether a program is linked with that MPI or one like it."""
    try:
        found = mpis.abi_of_program(program, elf.read(program))
    except elf.NotElfError:
        return False
    return found is not None and found.name == abi(mpi.mpirun)


def build(name: str, mpi: peers.Mpi) -> Path:
    """Compiles into the cache, unless what is there is newer than every source. BuildError."""
    if mpi.mpicc is None:
        raise BuildError(f"no mpicc for {mpi.name} (Debian: apt install libopenmpi-dev)")
    # The one in PATH may be another one tomorrow.
    target = peers.cache() / "bench" / (mpi.name if mpi.name != "mpi" else f"mpi-{abi(mpi.mpirun)}") / name
    needed = sources(name)
    newest = max(path.stat().st_mtime for path in install.bench_sources().iterdir())
    if target.exists() and target.stat().st_mtime > newest:
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(f"{target.parent} cannot be made to build {name} in: {error.strerror}") from error
    fresh = target.with_suffix(f".{os.getpid()}")
    done = subprocess.run(
        [str(mpi.mpicc), *FLAGS, "-o", str(fresh), *map(str, needed)],
        capture_output=True,
        text=True,
        env=mpi.environment(1),
        check=False,
    )
    if done.returncode:
        raise BuildError(f"{mpi.mpicc} cannot build {name}:\n{done.stderr.strip()}")
    fresh.replace(target)
    return target


def find(name: str, mpi: peers.Mpi) -> Path:
    """The program for an MPI. BuildError when there is none and none can be made."""
    built = install.find(name) if mpi.name == "mpi" else None
    return built if built and fits(built, mpi) else build(name, mpi)


def finish(process: subprocess.Popen[bytes]) -> None:
    """Ends a job that ran past its limit: the launcher cleans up after SIGTERM, its session goes with SIGKILL."""
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def held_back(*numbers: signal.Signals) -> Iterator[None]:
    """Signals that come meanwhile come afterwards: an exception in the middle of a start leaves a process that nobody
    knows. Those that are ignored stay so. In the main thread."""
    came: list[int] = []
    with contextlib.ExitStack() as undo:  # all of it, whatever one of them raises
        for number in numbers:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before = signal.signal(number, lambda one, _: came.append(one))
                undo.callback(signal.signal, number, before)
        yield
    for one in came:
        signal.raise_signal(one)


def output_of(argv: Sequence[str], env: Mapping[str, str], limit: float) -> tuple[str, str]:
    """What a program printed, and why it did not end well ("" if it did). What it printed before stays. The limit, in
    seconds, is for a machine that is not slow just now (pace.wait)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process: subprocess.Popen[bytes] | None = None
        trouble = ""
        try:
            with held_back(signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                process = subprocess.Popen(
                    argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
                )
            status = pace.wait(process, limit)
        except subprocess.TimeoutExpired as late:
            assert process
            finish(process)
            trouble = f"ran past its limit of {late.timeout:.0f} s"
        except BaseException:
            if process:
                finish(process)
            raise
        else:
            if status:
                err.seek(0)
                lines = err.read().decode(errors="replace").strip().splitlines()
                trouble = f"ended with status {status}: {next((x for x in lines if x.strip('- ')), 'no message')}"
        out.seek(0)
        return out.read().decode(errors="replace"), trouble


def raise_stack_limit(cache: int) -> None:
    """So that a program's main stack holds the buffers of a rank, as far as may be: a program for which that is too
    little says so. Twice what collbench's are of all ranks, and what a program needs beside them."""
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = 2 * max(4 * cache, 1 << 30) + (64 << 20)
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    resource.setrlimit(resource.RLIMIT_STACK, (wanted, most))
