# SPDX-License-Identifier: BSD-3-Clause
"""What a guest's kernel has to offer, the cache that it lies in, and how modules are built for it."""

from __future__ import annotations

import fcntl
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SOURCES = ("kernel", "include/uapi")  # what a module is built from
UNTIL = "ONECOPY_KERNEL_UNTIL"
UNAVAILABLE = 123  # exit status of what ends for an UnavailableError


class KernelError(Exception):
    """A kernel or a module cannot be built or booted; the message says why."""


class UnavailableError(KernelError):
    """What would be needed is not here and cannot be fetched: nobody's fault but the host's."""


def cache() -> Path:
    """$ONECOPY_CACHE, or ~/.cache/onecopy; kernels and packages lie in vm below it."""
    named = os.environ.get("ONECOPY_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "onecopy"
    return (Path(named) if named else base) / "vm"


def say(text: str) -> None:
    print(f"vm: {text}", file=sys.stderr, flush=True)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """One process at a time changes the directory; it is made if need be."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make(argv: list[str], log: Path, until: float = math.inf) -> None:
    """Runs a build with its output in `log`, whose end the error shows. UnavailableError when it has not ended by
    `until`, seconds since the epoch; what is built by then stays."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        # In a session of its own: who compiles removes what is half written when it is told to end.
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            status = process.wait(None if until == math.inf else max(until - time.time(), 0))
        except BaseException as trouble:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            if isinstance(trouble, subprocess.TimeoutExpired):
                raise UnavailableError(f"not built in the time that this run has for kernels ({UNTIL})") from None
            raise
    if status:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-25:])
        raise KernelError(f"{' '.join(argv[:4])} ... ended with {status}; the end of {log}:\n{tail}")


def build_until() -> float:
    """When kernels have to be built: as ONECOPY_KERNEL_UNTIL says, or never."""
    return float(os.environ.get(UNTIL) or "inf")


def jobs() -> str:
    return f"-j{len(os.sched_getaffinity(0))}"


class Kernel(ABC):
    """A kernel and a place to build modules for it. Methods that change the cache take its lock themselves."""

    name: str
    home: Path  # its directory in the cache
    races = False  # its CPUs have to run at once, whatever that costs

    @property
    @abstractmethod
    def image(self) -> Path:
        """What boots."""

    @abstractmethod
    def prepare(self) -> None:
        """Fetches and builds the kernel, or does nothing."""

    @abstractmethod
    def _stage(self) -> Path:
        """Where the module's sources are copied to."""

    @abstractmethod
    def _make_modules(self, directory: str, log: Path) -> None:
        """Builds the modules of a directory below the stage."""

    @abstractmethod
    def config(self) -> str:
        """The kernel's own configuration."""

    @abstractmethod
    def headers(self) -> dict[Path, Path]:
        """Where in a guest what of the host has to be for modules to be built there: link and target."""

    def early_modules(self) -> list[Path]:
        """Files of the modules that a guest must load to reach the host's files, each after what it needs."""
        return []

    def has(self, option: str) -> bool:
        return re.search(rf"^CONFIG_{option}=[ym]$", self.config(), re.MULTILINE) is not None

    def build_modules(self, into: Path) -> list[Path]:
        """Builds onecopy.ko, and the tests' DMA provider where the kernel has DMA engines, and copies them."""
        with locked(self.home):
            stage = self._stage()
            keep_while(self.config(), stage)
            for part in SOURCES:
                copy_changed(ROOT / part, stage / part)
            directories = ["kernel"]
            if self.has("DMA_ENGINE") and (ROOT / "kernel/softdma/Kbuild").exists():
                directories.append("kernel/softdma")
            log = self.home / "modules.log"
            log.unlink(missing_ok=True)
            built: list[Path] = []
            for directory in directories:
                self._make_modules(directory, log)
                modules = sorted((stage / directory).glob("*.ko"))
                built.extend(Path(shutil.copy(module, into)) for module in modules)
            return built


def keep_while(config: str, stage: Path) -> None:
    """Empties a stage whose objects are of another configuration. kbuild goes by headers and flags; that an option
    has changed it sees in its own tree only."""
    mark = stage / "config"
    if stage.exists() and (not mark.exists() or mark.read_text() != config):
        shutil.rmtree(stage)
    stage.mkdir(parents=True, exist_ok=True)
    mark.write_text(config)


def copy_changed(source: Path, target: Path) -> None:
    """Makes the C files and headers of `target` those of `source`, touching only what differs: kbuild goes by time."""
    wanted = [p for p in source.rglob("*") if p.suffix in (".c", ".h") or p.name in ("Kbuild", "Makefile")]
    wanted = [p for p in wanted if not p.name.endswith(".mod.c")]
    for path in wanted:
        copy = target / path.relative_to(source)
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    kept = {target / path.relative_to(source) for path in wanted}
    for path in target.rglob("*"):
        if path.suffix in (".c", ".h") and not path.name.endswith(".mod.c") and path not in kept:
            path.unlink()
