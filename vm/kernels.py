# SPDX-License-Identifier: BSD-3-Clause
"""The guests' kernels by name: where each comes from, how the module is built for it.

What is in the cache is used as it is and asks for no network: remove a directory there to have it made anew. Kernels
are User-Mode Linux, built from Debian's newest source, and Debian's own binaries, which come with a small Debian of
their age to build modules in, whatever the host is.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import debian

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SOURCES = ("kernel", "include/uapi")  # what a module is built from
DEPMOD_READS = ("modules.builtin", "modules.builtin.modinfo", "modules.order")
UML_SUITES = ("trixie-backports", "forky", "sid")
UNAVAILABLE = 123  # exit status of what ends for an UnavailableError
UML_OLDEST = (7, 2)  # the first with several CPUs in User-Mode Linux


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


def make(argv: list[str], log: Path) -> None:
    """Runs a build with its output in `log`, whose end the error shows."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-25:])
        raise KernelError(f"{' '.join(argv[:4])} ... ended with {done.returncode}; the end of {log}:\n{tail}")


def jobs() -> str:
    return f"-j{len(os.sched_getaffinity(0))}"


class Kernel(ABC):
    """A kernel and a place to build modules for it. Methods that change the cache take its lock themselves."""

    name: str
    home: Path  # its directory in the cache
    debug: bool = False

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

    def has(self, option: str) -> bool:
        return re.search(rf"^CONFIG_{option}=[ym]$", self.config(), re.MULTILINE) is not None

    def build_modules(self, into: Path) -> list[Path]:
        """Builds onecopy.ko, and the tests' DMA provider where the kernel has DMA engines, and copies them."""
        with locked(self.home):
            stage = self._stage()
            for part in SOURCES:
                copy_changed(ROOT / part, stage / part)
            # The configuration is among what decides: kbuild looks at headers and flags itself.
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


class Uml(Kernel):
    """User-Mode Linux with several CPUs: memory at native speed; with `debug`, everything that looks for bugs."""

    def __init__(self, name: str, debug: bool = False, patches: str = "*") -> None:
        self.debug = debug
        self.name = name
        self.patches = sorted((HERE / "patches").glob(f"{patches}.patch"))
        self.configs = [HERE / "uml.config", *([HERE / "uml-debug.config"] if debug else [])]
        ours = hashlib.sha256(b"".join(p.read_bytes() for p in self.patches)).hexdigest()[:8]
        self.base = cache() / f"linux-{ours}"  # the source, patched so
        self.home = self.base / self.name

    @property
    def image(self) -> Path:
        return self.home / "build" / "linux"

    def _stamp(self) -> str:
        return hashlib.sha256(b"".join(p.read_bytes() for p in self.configs)).hexdigest()

    def config(self) -> str:
        return (self.home / "build" / ".config").read_text()

    def headers(self) -> dict[Path, Path]:
        build = self.home / "build"
        release = (build / "include/config/kernel.release").read_text().strip()
        return {Path("/lib/modules") / release / "build": build}

    def prepare(self) -> None:
        with locked(self.home):
            stamp = self.home / "built"
            if stamp.exists() and stamp.read_text() == self._stamp():
                return
            missing = [tool for tool in ("flex", "bison", "bc", "patch", "gcc", "make") if not shutil.which(tool)]
            if missing:
                raise UnavailableError(f"{', '.join(missing)} missing: packaging/install-deps guests")
            source = self.base / "source"
            with locked(self.base):
                if not source.exists():
                    self._fetch(source)
            self._build(source)
            stamp.write_text(self._stamp())

    def _fetch(self, source: Path) -> None:
        """Unpacks and patches the newest source that any suite has."""
        reasons = []
        for name in UML_SUITES:
            suite = debian.Suite(name, cache() / "apt" / name)
            try:
                suite.update()
                found = suite.versions(r"linux-source-\d+\.\d+")
            except debian.DebianError as reason:
                reasons.append(str(reason))
                continue
            best = max(found, key=lambda package: debian.version_key(found[package]), default="")
            if best and debian.version_key(found[best]) >= UML_OLDEST:
                break
            reasons.append(f"{name}: no linux-source of {UML_OLDEST[0]}.{UML_OLDEST[1]} or newer")
        else:
            raise UnavailableError("; ".join(reasons))
        say(f"fetching {best} {found[best]} from {name}")
        try:
            deb = suite.download(best)
        except debian.DebianError as reason:
            raise UnavailableError(str(reason)) from None
        unpacked = self.base / "unpacked"
        shutil.rmtree(unpacked, ignore_errors=True)
        unpacked.mkdir(parents=True)
        debian.unpack(deb, unpacked)
        deb.unlink()
        (archive,) = unpacked.glob("usr/src/linux-source-*.tar.*")
        # What User-Mode Linux cannot have is half of the source; its Kconfig files are read all the same.
        never = ["--exclude=*/drivers/gpu/*.[ch]", "--exclude=*/sound/*.[ch]", "--exclude=*/drivers/media/*.[ch]"]
        subprocess.run(["tar", "-x", "-f", archive, "-C", unpacked, *never], check=True)
        (tree,) = unpacked.glob("linux-source-*")
        for patch in self.patches:
            how = ["patch", "--quiet", "--strip=1", f"--directory={tree}", f"--input={patch}"]
            if subprocess.run([*how, "--dry-run", "--force"], capture_output=True, check=False).returncode:
                say(f"{patch.name} does not fit {best}: left out, see docs/guests.md")
                continue
            subprocess.run(how, check=True)
        tree.rename(source)
        shutil.rmtree(unpacked)

    def _build(self, source: Path) -> None:
        say(f"building {self.name}, once: some five minutes on two CPUs")
        build = self.home / "build"
        build.mkdir(exist_ok=True)
        log = self.home / "build.log"
        kbuild = ["make", "-s", "-C", str(source), "ARCH=um", f"O={build}"]
        make([*kbuild, "defconfig"], log)
        fragments = [str(path) for path in (build / ".config", *self.configs)]
        merge = ["scripts/kconfig/merge_config.sh", "-m", "-O", str(build), *fragments]
        subprocess.run(merge, cwd=source, capture_output=True, check=True)
        make([*kbuild, "olddefconfig"], log)
        make([*kbuild, "mod2noconfig"], log)
        wanted = {line for path in self.configs for line in path.read_text().splitlines() if line.endswith("=y")}
        lost = sorted(wanted - set(self.config().splitlines()))
        if lost:
            raise KernelError(f"this source does not take {', '.join(lost)}")
        make([*kbuild, jobs(), "linux", "modules"], log)

    def _stage(self) -> Path:
        return self.home / "stage"

    def _make_modules(self, directory: str, log: Path) -> None:
        build = self.home / "build"
        make(["make", "-s", "-C", str(build), jobs(), "ARCH=um", f"M={self._stage() / directory}", "modules"], log)


class Stock(Kernel):
    """A kernel of Debian as it is, with the compiler and the headers that belong to it.

    One without an image does not boot: modules are built for it, and a warning is an error there.
    """

    def __init__(self, name: str, suite: str, image: bool = True, base: str = "") -> None:
        self.name = name
        self.suite = suite
        self.base = base  # the suite that has what this one builds upon
        self.boots = image
        self.packages = [f"linux-headers-amd64/{suite}", *(["linux-image-amd64"] if image else [])]
        self.home = cache() / "debian" / suite
        self.root = self.home / "root"

    def prepare(self) -> None:
        with locked(self.home):
            if self.root.exists():
                return
            say(f"fetching Debian's kernel from {self.suite}, once, with a compiler of its age")
            state = "+".join(filter(None, (self.suite, self.base)))
            suite = debian.Suite(self.suite, cache() / "apt" / state, self.base)
            try:
                suite.update()
                suite.system(self.root, *self.packages, *debian.BUILD_TOOLS)
            except debian.DebianError as reason:
                raise UnavailableError(str(reason)) from None

    @property
    def release(self) -> str:
        """As in uname -r."""
        # The link is one inside that system: it leads nowhere here.
        releases = [p.name for p in self.root.glob("usr/lib/modules/*") if (p / "build").is_symlink()]
        if not releases:
            raise KernelError(f"no kernel headers below {self.root}: remove {self.home} and try again")
        return max(releases, key=debian.version_key)

    @property
    def image(self) -> Path:
        return self.root / "boot" / f"vmlinuz-{self.release}"

    @property
    def modules(self) -> Path:
        return self.root / "usr/lib/modules" / self.release

    def config(self) -> str:
        headers = self.root / "usr/src" / f"linux-headers-{self.release}" / ".config"
        return headers.read_text()

    def headers(self) -> dict[Path, Path]:
        found = {Path("/lib/modules") / self.release / name: self.modules / name for name in DEPMOD_READS}
        for pattern in ("src/linux-headers-*", "lib/linux-kbuild-*"):
            found |= {Path("/usr") / p.relative_to(self.root / "usr"): p for p in self.root.glob(f"usr/{pattern}")}
        # A link within that system: its target is there in the guest, by the lines above.
        build = self.modules / "build"
        return found | {Path("/lib/modules") / self.release / "build": build.readlink()}

    @property
    def compiler(self) -> str:
        """What the kernel was built with, as its configuration has it."""
        found = re.search(r'^CONFIG_CC_VERSION_TEXT="(.*)"$', self.config(), re.MULTILINE)
        return found[1] if found else "unknown"

    def _stage(self) -> Path:
        return self.root / ("build" if self.boots else "build-only")

    def _make_modules(self, directory: str, log: Path) -> None:
        strict = [] if self.boots else ["KCFLAGS=-Werror"]
        script = 'release=$1 && shift && exec make -s -C "/lib/modules/$release/build" "$@" modules'
        where = f"M=/{self._stage().name}/{directory}"
        try:
            argv = debian.chroot(self.root, script, self.release, jobs(), where, *strict)
        except debian.DebianError as reason:
            raise UnavailableError(str(reason)) from None
        make(argv, log)


def kernels() -> dict[str, Kernel]:
    """Every kernel that boots, by the name it is asked for."""
    return {kernel.name: kernel for kernel in (*uml(), Stock("6.1", "bookworm"), Stock("6.12", "trixie"))}


def uml() -> list[Uml]:
    """The User-Mode Linux ones. `uml-stock` is for measuring what the patches for speed would hide: it has only the one
    that makes an option choosable."""
    return [Uml("uml"), Uml("uml-debug", debug=True), Uml("uml-stock", patches="1-*")]


def build_only() -> dict[str, Stock]:
    """Kernels that modules are only built for, oldest first: each with its suite's own compiler, warnings as errors."""
    known = [
        Stock("5.10", "bullseye", image=False),
        Stock("6.1", "bookworm", image=False),
        Stock("6.12", "trixie", image=False),
        Stock("newest", "trixie-backports", image=False, base="trixie"),
    ]
    return {kernel.name: kernel for kernel in known}
