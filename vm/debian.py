# SPDX-License-Identifier: BSD-3-Clause
"""Packages of any Debian suite, fetched without touching the host's own package state, and small systems made of them.

A `Suite` keeps its lists, its downloads and its idea of what is installed below a directory of the cache. The
mirror is the host's own when the host is a Debian, Debian's otherwise; either way apt checks the signatures against
debian-archive-keyring. Works as any user.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
MIRROR = "http://deb.debian.org/debian"
SOURCES = Path("/etc/apt")
# In apt's old form and in the new one.
ARCHIVE_LINE = re.compile(r"^(?:URIs:|deb\s+(?:\[[^]]*\])?)\s*(https?://\S+/debian/?)(?=\s|$)", re.MULTILINE)

# A system must have these to run make and the kernel's scripts. The compiler comes with the kernel's headers, in newer
# suites without the assembler under the name it looks for.
BUILD_TOOLS = ("make", "bash", "dash", "coreutils", "findutils", "grep", "sed", "mawk", "diffutils", "kmod", "binutils")


class DebianError(Exception):
    """A package or a suite cannot be had; the message says why."""


def mirror() -> str:
    """Where the host gets Debian's main archive from."""
    for path in sorted([SOURCES / "sources.list", *(SOURCES / "sources.list.d").glob("*")]):
        if path.suffix not in (".list", ".sources") or not path.is_file():
            continue
        text = re.sub(r"^\s*#.*$", "", path.read_text(errors="replace"), flags=re.MULTILINE)
        if found := ARCHIVE_LINE.search(text):
            return found[1].rstrip("/")
    return MIRROR


def version_key(version: str) -> tuple[int, ...]:
    """What precedes Debian's own revision, as numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", version.split("-")[0]))


class Suite:
    """One suite of the archive, such as trixie or trixie-backports, with its own apt state in `directory`.

    A suite that is no whole Debian by itself, as backports are not, names the one below it as `base`. With `installed`,
    dpkg's file of a system, packages are fetched for that system: what it has already is not fetched. One of `sources`
    has none but the packages' sources.
    """

    def __init__(
        self, name: str, directory: Path, base: str = "", installed: Path | None = None, *, sources: bool = False
    ) -> None:
        self.name = name
        self.base = base
        self.types = "deb-src" if sources else "deb"
        self.directory = directory
        self.status = installed or directory / "status"
        self.debs = directory / "cache" / "archives"

    def _apt(self, tool: str, *args: str, cwd: Path | None = None) -> str:
        state = self.directory
        options = {
            "Dir::Etc::SourceList": "/dev/null",
            "Dir::Etc::SourceParts": state / "sources",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": state / "none",
            "Dir::State": state,
            "Dir::State::Lists": state / "lists",
            "Dir::State::Status": self.status,
            "Dir::Cache": state / "cache",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled": "false",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "APT::Architecture": "amd64",
            "APT::Install-Recommends": "false",
            # The state belongs to the caller: apt must not become another user who cannot read it.
            "APT::Sandbox::User": "root",
            # Without this a suite that cannot be reached is no error of "update".
            "APT::Update::Error-Mode": "any",
            "APT::Update::Post-Invoke": "",
            "Debug::NoLocking": "true",
        }
        argv = [tool, "-qq", *(f"-o{key}={value}" for key, value in options.items()), *args]
        try:
            done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise DebianError(f"{tool} is missing: only a Debian system can fetch Debian's kernels") from None
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines() or [f"{tool} ended with {done.returncode}"]
            # The last line sums up; which file could not be had, and why, is said before.
            said = next((line for line in lines if "Failed to fetch" in line), lines[-1])
            raise DebianError(f"{self.name}: {said}")
        return done.stdout

    def update(self) -> None:
        """Fetches the suite's list of packages."""
        if not KEYRING.exists():
            raise DebianError(f"{KEYRING} is missing: install debian-archive-keyring")
        for part in ("sources", "none", "lists/partial", "cache/archives/partial"):
            (self.directory / part).mkdir(parents=True, exist_ok=True)
        if not self.status.exists():
            self.status.touch()
        (self.directory / "sources" / "debian.sources").write_text(
            f"Types: {self.types}\nURIs: {mirror()}\nSuites: {self.name} {self.base}\n"
            f"Components: main\nSigned-By: {KEYRING}\n"
        )
        self._apt("apt-get", "update")

    def versions(self, pattern: str) -> dict[str, str]:
        """Name and newest version of the packages whose whole name matches `pattern`."""
        names = [n for n in self._apt("apt-cache", "pkgnames").split() if re.fullmatch(pattern, n)]
        found = {}
        for name in names:
            shown = re.findall(r"^Version: (\S+)$", self._apt("apt-cache", "show", name), re.MULTILINE)
            if shown:
                found[name] = max(shown, key=version_key)
        return found

    def download(self, package: str) -> Path:
        """The package's file, without what it depends on."""
        self._apt("apt-get", "download", package, cwd=self.debs)
        return max(self.debs.glob(f"{package}_*.deb"), key=os.path.getmtime)

    def original(self, package: str) -> Path:
        """What a source package is made of before Debian changes it, as an archive."""
        self._apt("apt-get", "source", "--download-only", "--tar-only", package, cwd=self.debs)
        return max(self.debs.glob(f"{package}_*.orig.tar.*[!c]"), key=os.path.getmtime)

    def fetch(self, *packages: str) -> None:
        """Downloads the packages and all they depend on into `debs`; package/suite names which suite's is meant."""
        self._apt("apt-get", "--yes", "--download-only", "install", *packages)

    def system(self, root: Path, *packages: str) -> None:
        """Unpacks the packages and all they depend on, configured by nobody, into `root`, which they replace."""
        self.fetch(*packages)
        unpacked = root.with_name(root.name + ".new")
        shutil.rmtree(unpacked, ignore_errors=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            (unpacked / "usr" / name).mkdir(parents=True)
            (unpacked / name).symlink_to(f"usr/{name}")
        for deb in sorted(self.debs.glob("*.deb")):
            unpack(deb, unpacked)
            deb.unlink()
        # A package's script would have made this link.
        awk = unpacked / "usr" / "bin" / "awk"
        if not awk.exists():
            awk.symlink_to("mawk")
        for name in ("dev", "proc", "tmp"):
            (unpacked / name).mkdir(exist_ok=True)
        shutil.rmtree(root, ignore_errors=True)
        unpacked.rename(root)


def unpack(deb: Path, directory: Path) -> None:
    """Unpacks the package's files below the directory, through its links such as /lib."""
    tar = ["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", str(directory)]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as source:
        done = subprocess.run(tar, stdin=source.stdout, check=False)
    if source.returncode or done.returncode:
        raise DebianError(f"{deb.name} does not unpack into {directory}")


def chroot(root: Path, script: str, *args: str) -> list[str]:
    """A command line that runs `script` by the shell of such a system, as any user who may make namespaces.

    Root without that right (in a container) may still change its root directory: then the system gets /dev/null and
    what objtool of recent kernels wants to know, and nothing else.
    """
    inside = ["chroot", str(root), "/bin/sh", "-c", script, "sh", *args]
    prepare = 'mount --rbind /dev "$0/dev" && mount --rbind /proc "$0/proc" && exec "$@"'
    (root / "proc").mkdir(exist_ok=True)
    # A process with a root directory of its own may not make user namespaces, but mount namespaces if it is root.
    for namespaces in (["unshare", "--user", "--map-root-user", "--mount"], ["unshare", "--mount"]):
        probe = [*namespaces, "sh", "-c", prepare, str(root), "true"]
        if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return [*namespaces, "sh", "-c", prepare, str(root), *inside]
    if os.geteuid() == 0:
        null = root / "dev" / "null"
        if not null.exists():
            os.mknod(null, 0o20666, os.makedev(1, 3))
        own = root / "proc" / "self"
        own.mkdir(exist_ok=True)
        for name in ("limits", "maps"):
            (own / name).write_text((Path("/proc/self") / name).read_text())
        return inside
    raise DebianError("neither root nor allowed to make a user namespace: cannot build inside another Debian")
