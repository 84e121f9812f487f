# SPDX-License-Identifier: BSD-3-Clause
"""What the demo runs on: its programs' versions, its processors, its environment."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ONECOPY = ROOT / "onecopy"
OUT = ROOT / "onecopy-out"
MAX_RANKS = 16


def cores() -> int:
    """Cores this process may use. Two threads of one core count once: Open MPI places one rank a core."""
    found = set()
    for cpu in os.sched_getaffinity(0):
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        try:
            found.add(((topology / "physical_package_id").read_text(), (topology / "core_id").read_text()))
        except OSError:
            found.add((str(cpu), ""))
    return len(found)


def ranks() -> int:
    return min(MAX_RANKS, max(2, cores()))


def busy() -> bool:
    """Whether others have used a good part of the machine in the last minute."""
    return os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1)


def environment() -> dict[str, str]:
    """The user's, with what Open MPI asks of root and of a machine with fewer cores than ranks."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("ONECOPY")}
    if os.geteuid() == 0:
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if cores() < ranks():
        env |= {
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":OVERSUBSCRIBE",
        }
    return env


def first_line(*argv: str | Path) -> str:
    """The first line a command prints, or "" when it cannot be run."""
    try:
        done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout.strip().splitlines() or [""])[0]


def processor() -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return match.group(1) if match else platform.machine()


def versions() -> dict[str, str]:
    return {
        "onecopy": first_line(ONECOPY, "--version").removeprefix("onecopy "),
        "MPI": first_line("mpirun", "--version"),
        "hpcc": first_line("dpkg-query", "-W", "-f", "${Version}\\n", "hpcc"),
        "compiler": first_line("mpicc", "--version"),
        "Linux": platform.release(),
        "processor": f"{processor()}, {cores()} cores",
        "Python": platform.python_version(),
    }
