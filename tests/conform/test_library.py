# SPDX-License-Identifier: BSD-3-Clause
"""The public interface of libonecopy, between real processes, over every mechanism."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from runner import ROOT, Runner

MECHANISMS = ["heap", "map", "kcopy", "cma", "staged", "any"]
HEADER = ROOT / "include" / "onecopy" / "onecopy.h"
NOTHING_RAN = 77

# Many operations at once, half a minute: the short form has it once.
FLIGHT = pytest.param("test_flight", marks=pytest.mark.long(1))
EXEC = pytest.param("test_exec", marks=pytest.mark.long(0.3))


def run(runner: Runner, program: str, mech: str | None = None) -> None:
    env = {"ONECOPY_TEST_MECH": mech} if mech else {}
    done = runner.run(runner.build / "tests" / program, env=env, timeout=240, check=False)
    if done.returncode == NOTHING_RAN:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_node(runner: Runner) -> None:
    run(runner, "test_node")


def test_memory_of_operations(runner: Runner) -> None:
    """Scratch and staging are the process's, not the communicator's, and taken by those who use them."""
    run(runner, "test_keep")


def test_messages_of_plans(runner: Runner) -> None:
    run(runner, "test_exec")


def operations(runner: Runner, program: str, mech: str) -> None:
    done = runner.run(runner.build / "tests" / program, env={"ONECOPY_MECH": mech}, timeout=240, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("program", ["test_flight", "test_pieces"])
def test_operations(runner: Runner, program: str) -> None:
    """Under way together; on buffers in pieces."""
    operations(runner, program, "heap,cma,staged")


@pytest.mark.parametrize("mech", ["heap,staged", "staged", "cma,staged"])
@pytest.mark.parametrize("program", [FLIGHT, "test_pieces"])
def test_operations_by_less(runner: Runner, program: str, mech: str) -> None:
    operations(runner, program, mech)


@pytest.mark.parametrize("mech", MECHANISMS)
@pytest.mark.parametrize("program", ["test_region", "test_region_end", "test_mech"])
def test_mechanism(runner: Runner, program: str, mech: str) -> None:
    run(runner, program, mech)


@pytest.mark.parametrize("mech", ["heap,staged", pytest.param("heap,cma,staged", marks=pytest.mark.long(0.3))])
@pytest.mark.parametrize("program", [EXEC, FLIGHT, "test_keep", "test_pieces", "test_region"])
def test_small_windows(runner: Runner, program: str, mech: str) -> None:
    """The same where peers' arenas are seen through a few windows of 2 MiB: conform/small_windows.c."""
    operations(runner, f"{program}_windows", mech)


@pytest.mark.parametrize("program", [FLIGHT, "test_pieces"])
def test_hardly_any_windows(runner: Runner, program: str) -> None:
    """Where there is room for two windows, owners copy what their peers cannot map."""
    done = runner.run(
        runner.build / "tests" / f"{program}_windows",
        env={"ONECOPY_TEST_WINDOWS": str(4 << 20)},
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("program", ["test_region", "test_region_end", "test_mech"])
def test_another_mechanism(runner: Runner, program: str) -> None:
    """One that only a build for tests has, in a file and a line of the table: access/mech_proc.c."""
    run(runner, f"{program}_proc", "proc")


@pytest.mark.parametrize("program", [EXEC, FLIGHT, "test_keep", "test_pieces"])
def test_operations_by_another(runner: Runner, program: str) -> None:
    operations(runner, f"{program}_proc", "proc")


def test_region_without_heap(runner: Runner) -> None:
    done = runner.run(
        runner.build / "tests" / "test_region",
        env={"ONECOPY_HEAP": "off", "ONECOPY_TEST_MECH": "any"},
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_exports(build: Path) -> None:
    """The header, the list of exports and the library say the same."""
    library = build / "lib" / "libonecopy.so"
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = set(re.findall(r" T (\w+)", out))
    declared = set(re.findall(r"\b(oc_\w+)\(", re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)))
    assert exported == declared
