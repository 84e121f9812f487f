# SPDX-License-Identifier: BSD-3-Clause
"""The Debian packages: what is in them, and that they install, build their module, work and go, in a guest.

The guest is User-Mode Linux over the host's files, where all of it is as fast as on the host: dpkg and the packages'
scripts run as anywhere, onto a layer in memory. What they depend on and the host lacks is fetched beforehand.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import guests
import pytest
from runner import MPI_ENV, ROOT

import debian
import kernel

VERSION = r"^onecopy \((.*)\)"
STATUS = Path("/var/lib/dpkg/status")


def text_of(*argv: str | Path) -> str:
    return subprocess.run([str(a) for a in argv], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def one(pattern: str, path: str) -> str:
    found = re.search(pattern, (ROOT / path).read_text(), re.MULTILINE)
    assert found, f"{path} has no {pattern}"
    return found[1]


def test_versions_agree() -> None:
    version = one(r"^  version: '(.*)',$", "meson.build")
    assert one(VERSION, "debian/changelog") == version
    assert one(r'^__version__ = "(.*)"$', "cli/onecopy/__init__.py") == version


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The packages by name, built now."""
    lacking = subprocess.run(
        [ROOT / "packaging/install-deps", "-n", "deb"], capture_output=True, text=True, check=False
    )
    if lacking.returncode:
        pytest.skip(f"to build packages, install {(lacking.stdout or lacking.stderr).strip()}")
    into = tmp_path_factory.mktemp("deb")
    done = subprocess.run([ROOT / "packaging/make-deb", into], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.name.split("_")[0]: path for path in into.glob("*.deb")}


@pytest.mark.long(3)
@pytest.mark.timeout(1800)
def test_contents(debs: dict[str, Path]) -> None:
    contents = {}
    for name, path in debs.items():
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", path], stdout=subprocess.PIPE) as source:
            assert source.stdout
            with tarfile.open(fileobj=source.stdout, mode="r|") as archive:
                contents[name] = {member.name.removeprefix("./") for member in archive if not member.isdir()}
    assert set(contents) == {"libonecopy0", "libonecopy-dev", "onecopy", "onecopy-dkms"}
    library = f"usr/lib/{text_of('dpkg-architecture', '-qDEB_HOST_MULTIARCH').strip()}"
    assert f"{library}/libonecopy.so.0" in contents["libonecopy0"]
    assert {
        "usr/include/onecopy/onecopy.h",
        "usr/include/knem_io.h",
        f"{library}/libonecopy.so",
        f"{library}/pkgconfig/onecopy.pc",
        "usr/share/pkgconfig/knem.pc",
        "usr/share/man/man3/oc_get.3.gz",
    } <= contents["libonecopy-dev"]
    preloads = {f"{library}/onecopy/libonecopy-{abi}.so" for abi in ("openmpi4", "mpich")}
    assert {"usr/bin/onecopy", *preloads} <= contents["onecopy"]
    # Every source of the module, and of nothing else: the tests' DMA provider is not for users.
    tree = f"usr/src/onecopy-{one(VERSION, 'debian/changelog')}"
    wanted = {f"{tree}/kernel/{path.name}" for path in (ROOT / "kernel").glob("*.[ch]")}
    wanted |= {f"{tree}/include/uapi/{path.name}" for path in (ROOT / "include/uapi").glob("*.h")}
    wanted |= {f"{tree}/kernel/Kbuild", f"{tree}/dkms.conf"}
    assert {name for name in contents["onecopy-dkms"] if name.startswith("usr/src/")} == wanted
    assert {
        "usr/lib/udev/rules.d/60-onecopy.rules",
        "usr/lib/sysusers.d/onecopy.conf",
        "usr/lib/modules-load.d/onecopy.conf",
    } <= contents["onecopy-dkms"]


def codename() -> str:
    """Of the Debian that this is; "" for none."""
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)', Path("/etc/os-release").read_text(), re.MULTILINE))
    return release.get("VERSION_CODENAME", "") if release.get("ID") == "debian" else ""


@pytest.fixture(scope="module")
def needed(debs: dict[str, Path]) -> tuple[Path, Path]:
    """A directory with the packages and all that this host lacks of what they depend on; one with udev's files."""
    name = codename()
    if not name:
        pytest.skip("the packages are for Debian, and this is not one")
    if not os.access("/etc/gshadow", os.R_OK):
        pytest.skip("guests see the host's files as their user does: only root's can add a group to /etc/gshadow")
    directory = next(iter(debs.values())).parent
    try:
        lacking = debian.Suite(name, kernel.cache() / "apt" / f"{name}-lacking", installed=STATUS)
        lacking.update()
        lacking.fetch(*map(str, debs.values()))
        for deb in lacking.debs.glob("*.deb"):
            shutil.move(deb, directory)  # which may be on another file system
        # Its script would configure half a system: its files are enough.
        udev = debian.Suite(name, kernel.cache() / "apt" / f"{name}-udev", installed=STATUS)
        udev.update()
        if not Path("/usr/bin/udevadm").exists():
            udev.fetch("udev")
    except debian.DebianError as reason:
        pytest.skip(f"what the packages depend on cannot be had: {reason}")
    root = directory / "udev"
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for deb in udev.debs.glob("*.deb"):
        debian.unpack(deb, root)
        deb.unlink()
    if not (root / "usr/bin/udevadm").exists():
        (root / "usr/bin/udevadm").symlink_to("/usr/bin/udevadm")
    return directory, root


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "stock",
    [pytest.param(False, marks=pytest.mark.long(3)), pytest.param(True, marks=pytest.mark.long(12))],
    ids=["uml", "stock"],
)
def test_installs(needed: tuple[Path, Path], stock: bool) -> None:
    name = "uml"
    if stock:
        name = "6.1" if codename() == "bookworm" else "6.12"  # the host's compiler is for it
    command = [str(path) for path in (ROOT / "tests/kmod/packages", *needed)]
    timeout = "1500" if stock else "600"
    out = guests.run("run", "--kernel", name, "--no-module", "--timeout", timeout, "--", *command, env=MPI_ENV)
    assert re.search(r"^1\.\.\d+$", out, re.MULTILINE)
    print(out)
