# SPDX-License-Identifier: BSD-3-Clause
"""What a figure must be read with: processor, caches, memory, kernel, MPI, load. Nothing that names the host."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onecopy import __version__

CPUS = Path("/sys/devices/system/cpu")
#: From here on a machine is busy with something else, of each processor: the load before a run, work during it.
LOAD_MAX, OTHERS_MAX = 0.5, 0.1


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


def busy_seconds() -> float | None:
    """Of all processors together, since boot, with what a hypervisor gave to others; None where it is not told."""
    match = re.match(r"cpu +(\d+) (\d+) (\d+) \d+ \d+ (\d+) (\d+) (\d+)", read("/proc/stat"))
    return sum(map(int, match.groups())) / os.sysconf("SC_CLK_TCK") if match else None


class OtherWork:
    """What keeps processors busy beside this process and the programs it has run."""

    def __init__(self) -> None:
        self._busy, self._own, self._moment = busy_seconds(), self._own_seconds(), time.monotonic()

    @staticmethod
    def _own_seconds() -> float:
        return sum(os.times()[:4])

    def processors(self) -> float | None:
        """Mean number of processors since the start; None where it cannot be told."""
        busy, elapsed = busy_seconds(), time.monotonic() - self._moment
        if busy is None or self._busy is None or elapsed <= 0:
            return None
        return max(0.0, busy - self._busy - (self._own_seconds() - self._own)) / elapsed


def recorded(path: Path) -> dict[str, Any]:
    """What a run's machine.json says; {} when there is none that can be read."""
    try:
        facts = json.loads(read(path))
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def number(said: Any) -> float | None:
    """None for what is none: the file is a user's."""
    return said if isinstance(said, int | float) and not isinstance(said, bool) else None


def busy(facts: Mapping[str, Any]) -> str:
    """ "" or by how much the machine of a run was not its own, of machine.json: by what others took during the run
    where that is known, else by the load before it."""
    processors = number(facts.get("cpus")) or 1
    if (others := number(facts.get("other_work"))) is not None:
        if others > OTHERS_MAX * processors:
            return f"busy machine: {others:.1f} of {processors} processors had other work"
        return ""
    loads = facts.get("load_average")
    load = number(loads[0]) or 0 if isinstance(loads, list) and loads else 0
    return (
        f"busy machine: load average {load:.1f} before, {processors} processors" if load > LOAD_MAX * processors else ""
    )


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
