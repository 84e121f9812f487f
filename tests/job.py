# SPDX-License-Identifier: BSD-3-Clause
"""Commands run under watch: a time limit, a clean end, nothing left behind.

A process group is not enough to find what mpirun started: Open MPI gives every rank a group of its own. Each job
therefore carries a random word in its environment, which children inherit, and /proc tells who has it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import longform
import shm
from onecopy import pace
from shm import SHM

TAG = "ONECOPY_TEST_TAG"


class JobError(AssertionError):
    """A job that failed, hung or left something behind; the text carries its output."""


@dataclass(frozen=True)
class Finished:
    """How a job ended. A returncode below 0 is the signal that ended it."""

    returncode: int
    stdout: str
    stderr: str
    seconds: float


def output_of(argv: Sequence[str | Path], timeout: float, **settings: Any) -> subprocess.CompletedProcess[str]:
    """subprocess.run of a command that starts no MPI job, or ends it itself. After `timeout` seconds it has as many
    again, more where this machine is slow just now."""
    with subprocess.Popen(
        [*map(str, argv)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings
    ) as process:
        try:
            try:
                out, err = process.communicate(timeout=min(timeout, longform.seconds_left()))
            except subprocess.TimeoutExpired:
                timeout *= pace.slowness()
                out, err = process.communicate(timeout=min(timeout, longform.seconds_left()))
        except BaseException as trouble:
            process.kill()
            if isinstance(trouble, subprocess.TimeoutExpired):
                longform.skip_at_the_end()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def wait_until(found: Callable[[], Any], timeout: float) -> Any:
    """The first that is true of what `found` finds, time after time. What it found last once `timeout` seconds are
    over, and as many again, more where this machine is slow just now."""
    for again in (False, True):
        seconds = timeout * (pace.slowness() if again else 1)
        until = time.monotonic() + min(seconds, longform.seconds_left())
        while not (what := found()) and time.monotonic() < until:
            time.sleep(0.01)
        if what:
            return what
    longform.skip_at_the_end()
    return what


def tagged(tag: str) -> list[int]:
    """Living processes that carry the tag. A zombie has no environment any more and is not listed."""
    mark = f"{TAG}={tag}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue  # ended meanwhile, or another user's
    return found


def shm_files() -> set[Path]:
    """This user's files in /dev/shm."""
    mine = set()
    for path in SHM.iterdir() if SHM.is_dir() else ():
        try:
            if path.stat().st_uid == os.geteuid():
                mine.add(path)
        except OSError:
            continue
    return mine


def mapped_shm_files() -> set[Path]:
    """Files of /dev/shm that some living process has mapped or open: they belong to it."""
    used: set[Path] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            for line in (entry / "maps").read_text(errors="replace").splitlines():
                if "/dev/shm/" in line:
                    used.add(Path(line[line.index("/dev/shm/") :]))
            used.update(link for link in map(Path.readlink, (entry / "fd").iterdir()) if SHM in link.parents)
        except OSError:
            continue
    return used


@dataclass
class Job:
    """A running command. Use `wait`, or `kill` and then `wait`; leaving it to the fixture kills it."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    tag: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        self._shm_before = shm_files()
        self._began = time.monotonic()
        # Files, not pipes: a stray child that holds a pipe open would hang the reader.
        self._out = (self.cwd / f"{self.tag}.out").open("w+")
        self._err = (self.cwd / f"{self.tag}.err").open("w+")
        self.process = subprocess.Popen(
            self.argv,
            env={**self.env, TAG: self.tag},
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            start_new_session=True,
        )

    def processes(self) -> list[int]:
        """Pids of everything the job started that lives, mpirun included."""
        return tagged(self.tag)

    def kill(self) -> None:
        """Ends every process of the job. It cannot outrun this: the loop goes on until none is found."""
        for _ in range(100):
            alive = self.processes()
            if not alive:
                break
            for pid in alive:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            self.process.poll()
            time.sleep(0.02)
        self.process.wait(timeout=10)

    def wait(self, timeout: float, *, grace: float = 5.0, leftovers: bool = True) -> Finished:
        """Waits for the end. JobError when it takes longer than `timeout` seconds (more where this machine is slow just
        now), or when `grace` seconds after its end one of its processes still lives or a file in /dev/shm that is
        nobody's remains."""
        try:
            returncode = pace.wait(self.process, timeout, longform.seconds_left())
        except subprocess.TimeoutExpired as late:
            longform.skip_at_the_end()
            stacks = self._where()
            self.kill()
            raise JobError(f"no end after {late.timeout:.0f} s\n{stacks}\n{self._report()}") from None
        seconds = time.monotonic() - self._began
        if leftovers:
            self._expect_nothing_left(grace)
        return Finished(returncode, self._text(self._out.name), self._text(self._err.name), seconds)

    def close(self) -> None:
        self.kill()
        self._sweep()
        self._out.close()
        self._err.close()

    def _new_files(self) -> set[Path]:
        """Nobody's files in /dev/shm since the job began: onecopy's alone where other workers have theirs there too."""
        files = shm_files() - self._shm_before
        if not shm.is_own():
            files = {path for path in files if "onecopy" in path.name}
        if files:
            files -= mapped_shm_files()
            files &= shm_files()
        return files

    def _sweep(self) -> None:
        """What a job leaves that was not to clean up would be taken for the next one's. Another's that is not yet
        mapped will be in a moment."""
        files = self._new_files()
        if files:
            time.sleep(0.2)
        for path in files & self._new_files():
            path.unlink(missing_ok=True)

    def _expect_nothing_left(self, grace: float) -> None:
        until = time.monotonic() + grace
        clean = 0
        stretched = False
        while clean < 2:  # a process in the middle of exec() has no environment for a moment: look twice
            alive = self.processes()
            files = self._new_files()
            clean = 0 if alive or files else clean + 1
            if clean == 0 and time.monotonic() > until:
                if stretched:
                    break
                until += grace * (pace.slowness() - 1)
                stretched = True
            time.sleep(0.02)
        else:
            return
        stacks = self._where()
        self.kill()
        for path in files:
            path.unlink(missing_ok=True)
        raise JobError(f"left behind: processes {alive}, files {sorted(map(str, files))}\n{stacks}\n{self._report()}")

    def _where(self) -> str:
        """What each process waits for: the little that /proc tells without a debugger."""
        lines = []
        for pid in self.processes():
            try:
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
                wchan = Path(f"/proc/{pid}/wchan").read_text().strip()
            except OSError:
                continue
            lines.append(f"  {pid} {name}: state {state}, in {wchan or '0'}")
        return "\n".join(lines)

    def _report(self) -> str:
        return (
            f"command: {' '.join(self.argv)}\n"
            f"--- stdout\n{self._text(self._out.name)[-8000:]}\n--- stderr\n{self._text(self._err.name)[-8000:]}"
        )

    def expect_success(self, finished: Finished) -> Finished:
        if finished.returncode != 0:
            raise JobError(f"ended with {finished.returncode}\n{self._report()}")
        return finished

    @staticmethod
    def _text(name: str) -> str:
        return Path(name).read_text(errors="replace")
