# SPDX-License-Identifier: BSD-3-Clause
"""Kernels built from Debian's newest source: User-Mode Linux, and small ones for QEMU that look for bugs."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import time
from abc import abstractmethod
from pathlib import Path

import debian
from kernel import HERE, UNTIL, Kernel, KernelError, UnavailableError, build_until, cache, jobs, locked, make, say

SUITES = ("trixie-backports", "forky", "sid")
OLDEST = (7, 2)  # the first with several CPUs in User-Mode Linux
TOOLS = ("flex", "bison", "bc", "patch", "gcc", "make")
# Half of the source is for devices that no guest has; their Kconfig files are read all the same.
NEVER = ("*/drivers/gpu/*.[ch]", "*/sound/*.[ch]", "*/drivers/media/*.[ch]")

# A line of a configuration file.
OPTION = re.compile(r"(?:# )?(CONFIG_\w+)(?:=| is not set$)")


class Source:
    """The newest source that any suite has, with those of vm/patches that `patches` matches; kernels share it."""

    def __init__(self, patches: str = "*") -> None:
        self.patches = sorted((HERE / "patches").glob(f"{patches}.patch"))
        ours = hashlib.sha256(b"".join(p.read_bytes() for p in self.patches)).hexdigest()[:8]
        self.home = cache() / f"linux-{ours}"  # in the cache: its kernels lie there, too
        self.tree = self.home / "source"

    def prepare(self) -> None:
        """Fetches it, or does nothing."""
        with locked(self.home):
            if not self.tree.exists():
                self._unpack(self._fetch())

    def _fetch(self) -> Path:
        """The package of the newest source, new enough."""
        reasons = []
        for name in SUITES:
            suite = debian.Suite(name, cache() / "apt" / name)
            try:
                suite.update()
                found = suite.versions(r"linux-source-\d+\.\d+")
            except debian.DebianError as reason:
                reasons.append(str(reason))
                continue
            best = max(found, key=lambda package: debian.version_key(found[package]), default="")
            if best and debian.version_key(found[best]) >= OLDEST:
                break
            reasons.append(f"{name}: no linux-source of {OLDEST[0]}.{OLDEST[1]} or newer")
        else:
            raise UnavailableError("; ".join(reasons))
        say(f"fetching {best} {found[best]} from {name}")
        try:
            return suite.download(best)
        except debian.DebianError as reason:
            raise UnavailableError(str(reason)) from None

    def _unpack(self, deb: Path) -> None:
        unpacked = self.home / "unpacked"
        shutil.rmtree(unpacked, ignore_errors=True)
        unpacked.mkdir(parents=True)
        debian.unpack(deb, unpacked)
        deb.unlink()
        (archive,) = unpacked.glob("usr/src/linux-source-*.tar.*")
        never = [f"--exclude={pattern}" for pattern in NEVER]
        subprocess.run(["tar", "-x", "-f", archive, "-C", unpacked, *never], check=True)
        (tree,) = unpacked.glob("linux-source-*")
        for patch in self.patches:
            how = ["patch", "--quiet", "--strip=1", f"--directory={tree}", f"--input={patch}"]
            if subprocess.run([*how, "--dry-run", "--force"], capture_output=True, check=False).returncode:
                say(f"{patch.name} does not fit {tree.name}: left out, see docs/guests.md")
                continue
            subprocess.run(how, check=True)
        tree.rename(self.tree)
        shutil.rmtree(unpacked)


class Built(Kernel):
    """A kernel built here. Changed configuration files build it anew."""

    architecture: str  # as make has it
    target: str  # of make
    flags: tuple[str, ...] = ()  # of make, for the kernel and not for modules

    def __init__(self, name: str, source: Source, *configs: str) -> None:
        self.name = name
        self.source = source
        self.configs = [HERE / config for config in configs]
        self.home = source.home / name
        self.build = self.home / "build"

    @abstractmethod
    def _configure(self, kbuild: list[str], log: Path) -> None:
        """Makes .config of the configuration files."""

    def _wanted(self, *below: Path) -> list[str]:
        """What the configuration files, over those below them, say of each option they name; the last of them that
        does has the word."""
        lines = [line for path in (*below, *self.configs) for line in path.read_text().splitlines()]
        return list({found[1]: line for line in lines if (found := OPTION.match(line))}.values())

    def _choose(self, kbuild: list[str], log: Path, wanted: list[str], how: str) -> None:
        """Makes .config of what is wanted, all else as make's target `how` has it."""
        chosen = self.home / "wanted.config"
        chosen.write_text("\n".join([*wanted, ""]))
        make([*kbuild, f"KCONFIG_ALLCONFIG={chosen}", how], log)

    def _stamp(self) -> str:
        return hashlib.sha256(b"".join(p.read_bytes() for p in self.configs)).hexdigest()

    def config(self) -> str:
        return (self.build / ".config").read_text()

    def headers(self) -> dict[Path, Path]:
        release = (self.build / "include/config/kernel.release").read_text().strip()
        return {Path("/lib/modules") / release / "build": self.build}

    def prepare(self) -> None:
        with locked(self.home):
            stamp = self.home / "built"
            if stamp.exists() and stamp.read_text() == self._stamp():
                return
            missing = [tool for tool in TOOLS if not shutil.which(tool)]
            if missing:
                raise UnavailableError(f"{', '.join(missing)} missing: packaging/install-deps guests")
            self.source.prepare()
            self._make()
            stamp.write_text(self._stamp())

    def _make(self) -> None:
        if time.time() >= build_until():
            raise UnavailableError(f"not built yet, and {UNTIL} is over")
        say(f"building {self.name}, once: five to ten minutes on two CPUs")
        self.build.mkdir(exist_ok=True)
        log = self.home / "build.log"
        kbuild = ["make", "-s", "-C", str(self.source.tree), f"ARCH={self.architecture}", f"O={self.build}"]
        self._configure(kbuild, log)
        wanted = {line for line in self._wanted() if line.endswith("=y")}
        lost = sorted(wanted - set(self.config().splitlines()))
        if lost:
            raise KernelError(f"this source does not take {', '.join(lost)}")
        try:
            make([*kbuild, *self.flags, jobs(), self.target, "modules"], log, build_until())
        except UnavailableError:
            raise
        except KernelError:
            if not self.flags:
                raise
            say(f"{self.name} does not build with {' '.join(self.flags)}: without")
            make([*kbuild, jobs(), self.target, "modules"], log, build_until())

    def _stage(self) -> Path:
        return self.home / "stage"

    def _make_modules(self, directory: str, log: Path) -> None:
        kbuild = ["make", "-s", "-C", str(self.build), jobs(), f"ARCH={self.architecture}"]
        make([*kbuild, f"M={self._stage() / directory}", "modules"], log)


class Uml(Built):
    """User-Mode Linux with several CPUs: memory at native speed; `more` files of configuration after its own. One that
    is `soon` built is less optimised."""

    architecture = "um"
    target = "linux"

    def __init__(self, name: str, *more: str, patches: str = "*", soon: bool = False) -> None:
        super().__init__(name, Source(patches), "uml.config", *more)
        if soon:
            self.flags = ("KCFLAGS=-O1",)

    @property
    def image(self) -> Path:
        return self.build / "linux"

    def _configure(self, kbuild: list[str], log: Path) -> None:
        own = self.source.tree / "arch/um/configs/x86_64_defconfig"
        self._choose(kbuild, log, self._wanted(own), "alldefconfig")
        make([*kbuild, "mod2noconfig"], log)


class Emulated(Built):
    """A kernel for QEMU with what its configuration files ask for, and nothing that a guest does not need."""

    architecture = "x86_64"
    target = "bzImage"

    def __init__(self, name: str, *configs: str, races: bool = False) -> None:
        super().__init__(name, Source(), *configs)
        self.races = races

    @property
    def image(self) -> Path:
        return self.build / "arch/x86/boot/bzImage"

    def _configure(self, kbuild: list[str], log: Path) -> None:
        self._choose(kbuild, log, self._wanted(), "allnoconfig")
