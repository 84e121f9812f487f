# SPDX-License-Identifier: BSD-3-Clause
"""The kernel module's tests, each kernel in a guest of its own: User-Mode Linux with every check there is, Debian's
own kernels for huge pages, DMA engines and compilers of other ages, one of ours for what is checked of these.

What runs in the guest is tests/kmod/run, and those tests of the library, the MPI adapter and `onecopy doctor` that use
the module where there is one; vm/run adds its own verdict of kernel log, counters and leaks. A kernel that cannot be
had here is a skip that says why; one that was had and does not do is a failure.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import guests
import longform
import pytest
from guests import FAST
from runner import ROOT

from kernel import UNAVAILABLE

# The share of their rounds that random tests go: all of them where every check is on, less under emulation.
SCALE = {FAST: "20" if longform.ASKED else "10", "uml-debug": "100", "6.1": "20", "6.12": "20"}

# Minutes that a guest takes which is not part of the short form, its kernel included.
LONG = {"uml-debug": 10, "6.1": 8, "6.12": 8}

LIBRARY = "tests/conform/test_library.py"
REGIONS = [LIBRARY, "-k", "(region or mech) and (map or kcopy)"]
FEW_REGIONS = [LIBRARY, "-k", "test_region-map or test_region_end-kcopy or test_mech-map or test_mech-kcopy"]

# Users of the module: the kernel, pytest's arguments. What races with the death of processes under KASAN and lockdep,
# and on a kernel as shipped, too; the rest, which is about the users, where it runs fast.
SUITES: Mapping[str, tuple[str, list[str]]] = {
    "regions": (FAST, REGIONS if longform.ASKED else FEW_REGIONS),
    "regions, checked": ("uml-debug", REGIONS),
    "regions, stock": ("6.12", REGIONS),
    "any mechanism": ("uml", [LIBRARY, "-k", "any"]),
    "foreign buffers": ("uml", ["tests/mpi/test_foreign.py"]),
    "hazards": ("uml", ["tests/mpi/test_hazards.py", "-k", "module or unequal or killed"]),
    "differential": ("uml", ["tests/mpi/test_differential.py", "-k", "same_bytes"]),
    "doctor": ("uml", ["tests/cli/test_module.py"]),
    "messages": ("uml", ["tests/procvm/test_procvm.py", "-k", "beside_the_module"]),
    "pages": (
        "6.1",
        ["tests/mpi/test_hazards.py", "tests/conform/heap/test_huge.py", "-k", "placement or few or sparse or dense"],
    ),
}
# That of them which the short form has.
SHORT = ("regions",)
# Two NUMA nodes; Debian's kernels give huge pages without being asked.
OPTIONS: Mapping[str, Sequence[str]] = {"pages": ["--no-module", "--append", "numa=fake=2"]}
# In a guest only, whose files are a layer over the host's: other users may look into the checkout, wherever it is.
OPENED = 'at=$PWD; while [ "$at" != / ]; do chmod a+x "$at"; at=$(dirname "$at"); done; exec "$@"'

# Few rounds: the host's run of the same files has more.
FEW = {"ONECOPY_TEST_EXAMPLES": "1", "ONECOPY_TEST_KILLS": "4", "PYTHONDONTWRITEBYTECODE": "1"}


# What the fuzzer would meet and a kernel lacks, for this reason.
LACKED: Mapping[str, Mapping[str, str]] = {
    FAST: {"engines": "the kernel knows none", "huge pages": "the kernel knows none"},
    "uml-debug": {"huge pages": "the kernel knows none"},
}

# Where processes and threads meet: what the detector of data races is for. Slow: emulation.
MEETINGS = (
    *("races", "race_writes", "threads", "hostile", "life", "fuzz", "dma"),
    *("dev_async", "dev_map", "knem_async", "knem_notify", "knem_thread"),
)

# What maps, pins and has engines copy, and its failures: every check is worth its time where pages can be huge, too.
MACHINE = (
    *("dev_huge", "dev_map", "dev_copy", "memory_changes", "memory_kinds", "dma", "dma_line"),
    *("fuzz", "fail_dev", "fail_knem"),
)

# What test_fail_dev.c says of folios, and of what counts them, where failures are injected.
LARGE_FAIL = r"^# create, large folios: [1-9]\d* pairs failed, [1-9]\d* told"

# Readers and writers of regions that come and go.
STORMS = ("races", "race_writes")

# What ends a runner, with the kernel: QEMU for one of them, for it is slow to boot.
ENDS = [(FAST, signal.SIGTERM), (FAST, signal.SIGHUP), (FAST, signal.SIGKILL), ("6.1", signal.SIGKILL)]


def run(kernel: str, *command: str | Path, env: Mapping[str, str], options: Sequence[str] = ()) -> str:
    return guests.run("run", "--kernel", kernel, "--timeout", "1800", *options, "--", *command, env=env)


def long_if(kernel: str, *values: object) -> object:
    """Parameters of a test that boots this kernel."""
    return longform.param(*values, short=kernel not in LONG, minutes=LONG.get(kernel, 0))


def user(suite: str) -> object:
    kernel, _ = SUITES[suite]
    return longform.param(suite, short=suite in SHORT, minutes=LONG.get(kernel, 2))


def fuzzed(out: str, kernel: str) -> dict[str, int]:
    """How much the fuzzer met of what kernels may lack. What this one should have is there."""
    met = {what: int(number) for what, number in re.findall(r"^# met ([a-z ]+): (\d+) ", out, re.MULTILINE)}
    missing = dict(re.findall(r"^# met no ([a-z ]+): (.+)$", out, re.MULTILINE))
    assert {*met, *missing} == {"engines", "huge pages"}, out[-2000:]
    assert missing == LACKED.get(kernel, {})
    return met


@pytest.mark.parametrize("kernel", [long_if(kernel, kernel) for kernel in SCALE])
@pytest.mark.timeout(3600)  # the first run builds a kernel
def test_module(kernel: str, build: Path) -> None:
    out = run(kernel, ROOT / "tests/kmod/run", build, env={"KMOD_SCALE": SCALE[kernel]})
    summary = re.search(r"^# (\d+) passed, (\d+) skipped, (\d+) failed", out, re.MULTILINE)
    assert summary, f"no summary:\n{out[-2000:]}"
    assert int(summary[1]) > 0
    assert summary[3] == "0"
    if kernel == "uml-debug":
        assert re.search(LARGE_FAIL, out, re.MULTILINE)
    # So few calls may make no huge mapping: that is test_fuzz's.
    assert fuzzed(out, kernel).get("engines") != 0


@pytest.mark.long(50)
@pytest.mark.timeout(7200)
def test_data_races(build: Path) -> None:
    options = ["--timeout", "3000"]
    out = run("kcsan", ROOT / "tests/kmod/run", build, *MEETINGS, env={"KMOD_SCALE": "20"}, options=options)
    assert re.search(r"^# [1-9]\d* passed, \d+ skipped, 0 failed", out, re.MULTILINE), out[-2000:]


@pytest.mark.parametrize("kernel", ["uml", "6.12"])
@pytest.mark.long(9)
@pytest.mark.timeout(3600)
def test_storms(kernel: str, build: Path) -> None:
    """Two minutes each, at memory's own speed and where what was mapped is gone the moment its owner says so."""
    env = {"KMOD_SCALE": "1500"}
    out = run(kernel, ROOT / "tests/kmod/run", build, *STORMS, env=env, options=["--timeout", "1200"])
    assert re.search(r"^# 2 passed, 0 skipped, 0 failed", out, re.MULTILINE), out[-2000:]


@pytest.mark.parametrize("kernel", ["6.1", "6.12"])
@pytest.mark.long(9)
@pytest.mark.timeout(3600)
def test_fuzz(kernel: str, build: Path) -> None:
    """A million calls, of which the rest of the tests make a fiftieth there, with engines and with huge mappings."""
    env = {"KMOD_SCALE": "1000"}
    out = run(kernel, ROOT / "tests/kmod/run", build, "fuzz", env=env, options=["--timeout", "1200"])
    assert re.search(r"^# 10\d{5} calls", out, re.MULTILINE), out[-2000:]
    met = fuzzed(out, kernel)
    assert met["engines"] > 0
    assert met["huge pages"] > 0


@pytest.mark.long(10)
@pytest.mark.timeout(3600)
def test_page_table_check(build: Path) -> None:
    """A kernel that would take our mappings for bugs of its own, and panic, is spared them."""
    options = ["--append", "page_table_check=on"]
    out = run("kcsan", ROOT / "tests/kmod/run", build, "dev_map", env={"KMOD_ONLY": "checked"}, options=options)
    assert re.search(r"^# 1 passed, 0 skipped, 0 failed", out, re.MULTILINE), out[-2000:]


@pytest.mark.long(50)
@pytest.mark.timeout(7200)
def test_machine_checked(build: Path) -> None:
    options = ["--timeout", "3000"]
    out = run("qemu-debug", ROOT / "tests/kmod/run", build, *MACHINE, env={"KMOD_SCALE": "5"}, options=options)
    assert re.search(r"^# [1-9]\d* passed, \d+ skipped, 0 failed", out, re.MULTILINE), out[-2000:]
    assert fuzzed(out, "qemu-debug")["engines"] > 0
    assert re.search(LARGE_FAIL, out, re.MULTILINE)
    assert re.search(r"^# mmap, huge pages: [1-9]\d* places to fail", out, re.MULTILINE)


@pytest.mark.parametrize("suite", [user(suite) for suite in SUITES])
@pytest.mark.timeout(3600)
def test_users(suite: str, build: Path) -> None:
    kernel, arguments = SUITES[suite]
    pytest_argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    env = {**FEW, "ONECOPY_BUILD": str(build)}
    out = run(kernel, "sh", "-c", OPENED, "sh", *pytest_argv, env=env, options=OPTIONS.get(suite, ()))
    summary = re.search(r"^(\d+) passed, (\d+) failed, (\d+) skipped", out, re.MULTILINE)
    assert summary, f"no summary:\n{out[-2000:]}"
    assert int(summary[1]) > 0
    assert summary[2] == "0"


@pytest.mark.timeout(3600)
def test_doctor_without_module() -> None:
    out = run(FAST, ROOT / "onecopy", "doctor", "--json", env={}, options=["--no-module"])
    found = {m["name"]: m for m in json.loads(out[out.index("{") : out.rindex("}") + 1])["mechanisms"]}
    for name in ("map", "kcopy"):
        assert "not loaded" in found[name]["why"]
        assert "modprobe onecopy" in found[name]["fix"]


def below(pid: int) -> set[int]:
    """The living processes that descend from this one."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # gone meanwhile
        if state not in "ZX":
            children.setdefault(int(parent), []).append(int(stat.parent.name))
    found: set[int] = set()
    new = [pid]
    while new:
        new = [child for parent in new for child in children.get(parent, [])]
        found.update(new)
    return found


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("kernel", "number"),
    [long_if(kernel, kernel, number) for kernel, number in ENDS],
    ids=[f"{kernel}-{number.name}" for kernel, number in ENDS],
)
@pytest.mark.timeout(3600)
def test_ends_with_runner(kernel: str, number: signal.Signals, tmp_path: Path) -> None:
    command = [str(ROOT / "vm/run"), "--kernel", kernel, "--no-module", "--", "sh", "-c", "echo up; sleep 500"]
    with subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None,  # under nohup
    ) as runner:
        assert runner.stdout
        up = next((line for line in runner.stdout if line.strip() == "up"), None)
        if up is None and runner.wait() == UNAVAILABLE:
            pytest.skip(f"no kernel {kernel} here")
        assert up, f"the guest did not boot: {runner.returncode}"
        guest = below(runner.pid)
        assert guest
        runner.send_signal(number)
        runner.wait()
    until = time.monotonic() + 20
    while any(map(lives, guest)) and time.monotonic() < until:
        time.sleep(0.05)
    left = list(filter(lives, guest))
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left
    if number == signal.SIGKILL:
        assert runner.returncode == -number
    else:
        assert runner.returncode == 128 + number
        assert not list(tmp_path.glob("onecopy-vm-*"))
