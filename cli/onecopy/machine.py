# SPDX-License-Identifier: BSD-3-Clause
"""What a figure must be read with: processor, caches, memory, kernel, MPI, load. Nothing that names the host."""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from onecopy import __version__

CPUS = Path("/sys/devices/system/cpu")


def read(path: str | Path) -> str:
    """The text of a small file, "" when there is none to read."""
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""


def cpu_model() -> str:
    match = re.search(r"^(?:model name|Hardware|Processor)\s*:\s*(.*)$", read("/proc/cpuinfo"), re.MULTILINE)
    return match[1].strip() if match else platform.processor() or platform.machine()


def usable_cpus() -> int:
    return len(os.sched_getaffinity(0))


def caches() -> dict[str, dict[str, int]]:
    """Data caches by level: bytes of one, how many there are."""
    seen: dict[tuple[int, str], int] = {}
    for index in CPUS.glob("cpu[0-9]*/cache/index*"):
        if read(index / "type") == "Instruction":
            continue
        match = re.fullmatch(r"(\d+)([KM]?)", read(index / "size"))
        if match:
            size = int(match[1]) << {"": 0, "K": 10, "M": 20}[match[2]]
            seen[int(read(index / "level") or 0), read(index / "shared_cpu_list")] = size
    levels: dict[str, dict[str, int]] = {}
    for (level, _), size in sorted(seen.items()):
        entry = levels.setdefault(f"L{level}", {"bytes": size, "count": 0})
        entry["count"] += 1
    return levels


def last_level_bytes() -> int:
    """All last level caches of the node together; 32 MiB where the system does not tell."""
    levels = caches()
    if not levels:
        return 32 << 20
    last = levels[max(levels)]
    return last["bytes"] * last["count"]


def selected(path: str) -> str:
    """The choice in brackets of a sysfs file such as "always [madvise] never"."""
    match = re.search(r"\[(\w+)\]", text := read(path))
    return match[1] if match else text


def memory_bytes() -> int:
    match = re.search(r"MemTotal:\s*(\d+) kB", read("/proc/meminfo"))
    return int(match[1]) << 10 if match else 0


def first_line(*command: str) -> str:
    """Of a command's output, "" when it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, errors="replace", check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next(iter((done.stdout or done.stderr).splitlines()), "").strip()


def describe() -> dict[str, Any]:
    return {
        "onecopy": __version__,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "architecture": platform.machine(),
        "cpus": os.cpu_count(),
        "usable_cpus": usable_cpus(),
        "virtual": bool(re.search(r"^flags\s*:.*\bhypervisor\b", read("/proc/cpuinfo"), re.MULTILINE)),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1,
        "caches": caches(),
        "memory_bytes": memory_bytes(),
        "kernel": platform.release(),
        "thp": selected("/sys/kernel/mm/transparent_hugepage/enabled"),
        "thp_shmem": selected("/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
        "governor": read(CPUS / "cpu0/cpufreq/scaling_governor"),
        "libc": " ".join(platform.libc_ver()),
        "load_average": list(os.getloadavg()),
    }
