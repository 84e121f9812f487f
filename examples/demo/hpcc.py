# SPDX-License-Identifier: BSD-3-Clause
"""HPC Challenge as Debian ships it: its input file, its run, and its own verification read back."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import system
from program import DemoError, mpi_argv, run, served

PROBLEM = 4000  # 128 MB of matrix; seconds on two cores
TIMEOUT = 300

# What hpcc reports that has to do with moving data: key of its summary, unit, is more better?
FIGURES = {
    "HPL_time": ("s", False),
    "PTRANS_GBs": ("GB/s", True),
    "MPIFFT_Gflops": ("Gflop/s", True),
    "MPIRandomAccess_GUPs": ("GUP/s", True),
    "StarSTREAM_Triad": ("GB/s", True),
}


def grid(ranks: int) -> tuple[int, int]:
    """The most square process grid, rows first."""
    rows = max(p for p in range(1, int(ranks**0.5) + 1) if ranks % p == 0)
    return rows, ranks // rows


def write_input(path: Path, ranks: int) -> None:
    """hpcc's input: HPL's, of which every line begins with its values, then five lines of PTRANS's own."""
    rows, columns = grid(ranks)
    lines = [
        "HPC Challenge",
        "written by onecopy's demo",
        "HPL.out    not used: see the next line",
        "8          output goes to hpccoutf.txt",
        "1          problem sizes",
        f"{PROBLEM}       N",
        "1          block sizes",
        "80         NB",
        "0          processes mapped by rows",
        "1          process grids",
        f"{rows}          P",
        f"{columns}          Q",
        "16.0       threshold of the residual check",
        "1          panel factorisations",
        "2          right-looking",
        "1          recursive stopping criteria",
        "4          columns",
        "1          numbers of panels in a recursion",
        "2          panels",
        "1          recursive factorisations",
        "1          Crout",
        "1          broadcasts",
        "1          increasing ring, modified",
        "1          look-ahead depths",
        "1          depth",
        "2          row swapping: mix",
        "64         its threshold",
        "0          L transposed",
        "0          U transposed",
        "1          equilibration",
        "8          alignment in doubles",
        "---        PTRANS",
        "0          further problem sizes",
        "0",
        "0          further block sizes",
        "0",
    ]
    path.write_text("\n".join(lines) + "\n")


def section(report: Path) -> str:
    """The part hpcc is at; it writes its report as it goes."""
    try:
        names = re.findall(r"^Begin of (\S+) section", report.read_text(errors="replace"), re.MULTILINE)
    except OSError:
        return "starting"
    return names[-1] if names else "starting"


def verify(report: str) -> dict[str, float]:
    """Raises DemoError unless hpcc judged all of its own results right; returns its summary's numbers."""
    wrong = []
    if not re.search(r"^Success=1$", report, re.MULTILINE):
        wrong.append("its summary does not say Success=1")
    wrong += re.findall(r"^\s*([1-9]\d* tests completed and failed residual checks)", report, re.MULTILINE)
    # HPL's check and PTRANS's checks.
    if len(re.findall(r"^\s*[1-9]\d* tests completed and passed residual checks", report, re.MULTILINE)) < 2:
        wrong.append("HPL or PTRANS did not report its residual checks")
    wrong += re.findall(r"^.*\bFAILED\b.*$", report, re.MULTILINE)
    wrong += re.findall(r"^Node\(s\) with error (?!0$).*$", report, re.MULTILINE)
    wrong += re.findall(r"^Found (?!0 errors).*$", report, re.MULTILINE)
    if not re.search(r"^End of HPC Challenge tests", report, re.MULTILINE):
        wrong.append("its report is not complete")
    if wrong:
        raise DemoError("hpcc's own verification failed:\n  " + "\n  ".join(wrong))
    summary = report.split("Begin of Summary section.", 1)[1]
    return {key: float(value) for key, value in re.findall(r"^(\w+)=([-+.\deE]+)$", summary, re.MULTILINE)}


def run_hpcc(*, onecopy: bool, show: Callable[[str], None]) -> tuple[dict[str, float], dict[str, int]]:
    """One verified run: hpcc's summary, and the calls onecopy served."""
    if not shutil.which("hpcc"):
        raise DemoError("hpcc is not installed; `make deps` installs it")
    where = system.OUT / ("hpcc-onecopy" if onecopy else "hpcc-plain")
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    write_input(where / "hpccinf.txt", system.ranks())
    report = where / "hpccoutf.txt"
    stats = where / "stats.jsonl"
    run(
        mpi_argv(["hpcc"], onecopy=onecopy),
        cwd=where,
        timeout=TIMEOUT,
        tick=lambda: show(section(report)),
        env={"ONECOPY_STATS": str(stats)},
    )
    return verify(report.read_text(errors="replace")), served(stats)
