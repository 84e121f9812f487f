# SPDX-License-Identifier: BSD-3-Clause
"""The kernel module as this process finds it: is it there, may it be opened, what can it do on this kernel."""

from __future__ import annotations

import fcntl
import grp
import os
import pwd
import resource
import struct
from dataclasses import dataclass
from pathlib import Path

from onecopy import machine
from onecopy.stats import size

DEVICE = Path("/dev/onecopy")

#: include/uapi/onecopy.h: ONECOPY_IOC_INFO, ONECOPY_ABI, struct onecopy_info and two of its features.
INFO, ABI = 0xC140, 1
INFO_LAYOUT = struct.Struct("=4I Q 4I 2Q")
FEATURE_MAP, FEATURE_TRACK = 1 << 0, 1 << 2

CAP_IPC_LOCK = 14


@dataclass(frozen=True)
class Module:
    """Why neither map nor kcopy can be used, "" if they can; then what else is to be known."""

    why: str = ""
    fix: str = ""
    maps: bool = False
    tracks: bool = False


def installed() -> bool:
    """Whether the running kernel has a module to load."""
    modules = Path("/lib/modules") / os.uname().release
    return any(modules.glob("updates/**/onecopy.ko*")) or any(modules.glob("extra/**/onecopy.ko*"))


def missing(container: str) -> Module:
    why = "no /dev/onecopy: the kernel module is not loaded"
    if Path("/sys/module/onecopy").exists():
        why = "the kernel module is loaded, but /dev/onecopy is not here"
        fix = (
            "give the container the device (docker, podman: --device=/dev/onecopy)" if container else "udevadm trigger"
        )
    elif container:
        fix = "on the host: install onecopy-dkms, modprobe onecopy; then give the container the device /dev/onecopy"
    elif installed():
        fix = "as root: modprobe onecopy"
    else:
        fix = "optional, as root: install onecopy-dkms (`make deb` builds it), then modprobe onecopy"
    return Module(why, fix)


def refused() -> Module:
    """The device is there and not for us."""
    info = DEVICE.stat()
    try:
        group = grp.getgrgid(info.st_gid).gr_name
    except KeyError:
        group = str(info.st_gid)
    why = f"/dev/onecopy may not be opened: mode {info.st_mode & 0o777:o}, group {group}"
    if info.st_gid == 0 or not info.st_mode & 0o060:
        return Module(why, "as root: install the udev rule that gives it a group of its own, then udevadm trigger")
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = str(os.geteuid())
    return Module(why, f"as root: usermod -aG {group} {user}; then log in anew")


def may_lock() -> bool:
    """Whether any memory may be pinned."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    fields = dict(line.split(":\t", 1) for line in machine.read("/proc/self/status").splitlines() if ":\t" in line)
    return soft != 0 or bool(int(fields.get("CapEff", "0"), 16) >> CAP_IPC_LOCK & 1)


def memlock() -> str:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return "unlimited" if soft == resource.RLIM_INFINITY else size(soft)


def examine(container: str) -> Module:
    """What /dev/onecopy says. `container`: the kind of container this is, "" for none."""
    try:
        fd = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except PermissionError:
        return refused()
    except OSError:
        return missing(container)
    try:
        answer = fcntl.ioctl(fd, INFO, INFO_LAYOUT.pack(INFO_LAYOUT.size, *[0] * 10))
    except OSError as error:
        return Module(f"/dev/onecopy does not answer: {error.strerror}", "load the module of this release")
    finally:
        os.close(fd)
    _, _, abi, _, features, *_ = INFO_LAYOUT.unpack(answer)
    if abi != ABI:
        return Module(f"the kernel module speaks version {abi}, not {ABI}", "load the module of this release")
    if not may_lock():
        return Module("no memory may be pinned: RLIMIT_MEMLOCK is 0", "ulimit -l unlimited")
    return Module(maps=bool(features & FEATURE_MAP), tracks=bool(features & FEATURE_TRACK))
