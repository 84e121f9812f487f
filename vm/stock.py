# SPDX-License-Identifier: BSD-3-Clause
"""Debian's own kernels, each with a small Debian of its age to build modules in, whatever the host is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import debian
from kernel import Kernel, KernelError, UnavailableError, cache, jobs, locked, make, say

DEPMOD_READS = ("modules.builtin", "modules.builtin.modinfo", "modules.order")
# Modules that reach the host's files.
EARLY = ("virtio_pci", "9pnet_virtio", "9p", "overlay")


class Stock(Kernel):
    """A kernel of Debian as it is, with the compiler and the headers that belong to it.

    With `strict`, a warning in a module is an error. One without an image does not boot: modules are built for it.
    Kernels of one suite share what is fetched, so all of them have an image or none.
    """

    def __init__(self, name: str, suite: str, *, image: bool = True, base: str = "", strict: bool = False) -> None:
        self.name = name
        self.suite = suite
        self.base = base  # the suite that has what this one builds upon
        self.boots = image
        self.strict = strict
        self.packages = [f"linux-headers-amd64/{suite}", *(["linux-image-amd64"] if image else [])]
        self.home = cache() / "debian" / suite
        self.root = self.home / "root"

    def prepare(self) -> None:
        with locked(self.home):
            if self._complete():
                return
            say(f"fetching Debian's kernel from {self.suite}, once, with a compiler of its age")
            state = "+".join(filter(None, (self.suite, self.base)))
            suite = debian.Suite(self.suite, cache() / "apt" / state, self.base)
            try:
                suite.update()
                suite.system(self.root, *self.packages, *debian.BUILD_TOOLS)
            except debian.DebianError as reason:
                raise UnavailableError(str(reason)) from None

    def _complete(self) -> bool:
        return self.root.exists() and (not self.boots or any(self.root.glob("boot/vmlinuz-*")))

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

    def early_modules(self) -> list[Path]:
        with locked(self.home):
            if not (self.modules / "modules.dep").exists():
                # A package's script would have made it.
                depmod = shutil.which("depmod", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
                if not depmod:
                    raise KernelError("depmod is missing: packaging/install-deps guests")
                subprocess.run([depmod, "-b", str(self.root / "usr"), self.release], check=True)
        depends: dict[str, list[str]] = {}
        paths: dict[str, str] = {}
        for line in (self.modules / "modules.dep").read_text().splitlines():
            path, _, rest = line.partition(":")
            key = Path(path).name.split(".")[0].replace("-", "_")
            paths[key] = path
            # Listed nearest first.
            depends[key] = [Path(p).name.split(".")[0].replace("-", "_") for p in reversed(rest.split())]
        order: list[str] = []
        for name in EARLY:
            for key in [*depends.get(name, []), name]:
                # Built-in ones have no path.
                if key in paths and key not in order:
                    order.append(key)
        return [self.modules / paths[key] for key in order]

    @property
    def compiler(self) -> str:
        """What the kernel was built with, as its configuration has it."""
        found = re.search(r'^CONFIG_CC_VERSION_TEXT="(.*)"$', self.config(), re.MULTILINE)
        return found[1] if found else "unknown"

    def _stage(self) -> Path:
        return self.root / ("build-only" if self.strict else "build")

    def _make_modules(self, directory: str, log: Path) -> None:
        strict = ["KCFLAGS=-Werror"] if self.strict else []
        script = 'release=$1 && shift && exec make -s -C "/lib/modules/$release/build" "$@" modules'
        where = f"M=/{self._stage().name}/{directory}"
        try:
            argv = debian.chroot(self.root, script, self.release, jobs(), where, *strict)
        except debian.DebianError as reason:
            raise UnavailableError(str(reason)) from None
        make(argv, log)
