# SPDX-License-Identifier: BSD-3-Clause
"""Buffers outside the shared heap: stack, static data, mappings of the program's own. With the kernel module they are
mapped or copied by it; tests/kmod runs this file in a guest that has it. Without it CMA and staging serve them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from mpi.programs import Programs
from mpi.stats import moved, stats
from runner import NO_SINGLE_COPY, Runner

MODULE = Path("/dev/onecopy").exists()
needs_module = pytest.mark.skipif(not MODULE, reason="the kernel module is not loaded")

# The library with one mechanism more.
PROC = "tests/libonecopy-proc-{abi}.so"

KINDS = ["stack", "static", "mapped", "shared"]


def run(
    runner: Runner,
    programs: Programs,
    ranks: int,
    *argv: str,
    env: Mapping[str, str] | None = None,
    name: str = "foreign",
    preload: bool | str = True,
) -> dict[str, int]:
    """Runs the program: the bytes each mechanism moved, of all ranks."""
    path = runner.cwd / "stats"
    program = programs.build(name, [f"hazards/{name}.c"], "-lpthread")
    runner.mpirun(
        ranks,
        program,
        *argv,
        env={"ONECOPY_STATS": str(path), "ONECOPY_MIN": "1", **NO_SINGLE_COPY, **(env or {})},
        preload=preload,
        timeout=120,
    )
    assert len(stats(path)) == ranks
    return moved(path)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_foreign(runner: Runner, programs: Programs, kind: str, ranks: int) -> None:
    by = run(runner, programs, ranks, kind)
    assert (by["map"] > 0) == MODULE
    if MODULE:
        assert by["map"] > by["cma"] + by["staged"]


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_another_mechanism(runner: Runner, programs: Programs, kind: str, ranks: int) -> None:
    """One that only a build for tests has, a file and a line of the table (conform/access/mech_proc.c), serves."""
    by = run(runner, programs, ranks, kind, env={"ONECOPY_MECH": "proc"}, preload=PROC)
    assert by["proc"] > 0
    assert by["map"] + by["kcopy"] + by["cma"] == 0


GAPS = [{}, {"ONECOPY_MECH": "cma"}, {"ONECOPY_MECH": "staged"}, *([{"ONECOPY_MECH": "map,kcopy"}] if MODULE else [])]


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("env", GAPS, ids=lambda env: env.get("ONECOPY_MECH", "default"))
def test_gaps(runner: Runner, programs: Programs, env: Mapping[str, str], ranks: int) -> None:
    """Nothing between the blocks of a v-collective is read or written: some of it is no memory at all."""
    runner.mpirun(ranks, programs.build("gaps", ["hazards/gaps.c"]), preload=False, env=NO_SINGLE_COPY)
    by = run(runner, programs, ranks, env=env, name="gaps")
    block, calls = 64 << 10, 8 * 3 * ranks
    # Scatterv, Gatherv: one block to or from every other rank; Allgatherv, Alltoallv: one from every rank to every
    # other. What is staged is read once more.
    each = 2 * (ranks - 1) + 2 * ranks * (ranks - 1)
    assert each * calls * block <= sum(by.values()) <= 2 * each * calls * block


@needs_module
@pytest.mark.parametrize("mech", ["map", "kcopy", "map,kcopy"])
def test_alone(runner: Runner, programs: Programs, mech: str) -> None:
    """Every buffer is foreign then; staging is under all of them."""
    by = run(runner, programs, 2, "static", env={"ONECOPY_MECH": mech})
    assert by["cma"] == 0
    for name in ("map", "kcopy"):
        assert (by[name] > 0) == (name in mech)


@needs_module
def test_no_room_to_map(runner: Runner, programs: Programs) -> None:
    """A rank that cannot map what its peers offer copies instead."""
    by = run(runner, programs, 2, "static", "nomap")
    assert by["kcopy"] > 0
    assert by["map"] > 0


MIXES = [{}, {"ONECOPY_MECH": "map"}, {"ONECOPY_MECH": "map,kcopy"}]


@pytest.mark.parametrize("env", MIXES if MODULE else MIXES[:1], ids=lambda env: env.get("ONECOPY_MECH", "default"))
def test_stale_during_calls(runner: Runner, programs: Programs, env: Mapping[str, str]) -> None:
    """Regions that the kernel calls stale while peers copy: the bytes arrive all the same."""
    run(runner, programs, 3, "shared", "restless", env=env)


def test_once(runner: Runner, programs: Programs) -> None:
    """Memory that is used once is copied, by whatever can, and never mapped."""
    by = run(runner, programs, 3, "once", name="oneshot")
    assert by["map"] == 0
    assert (by["kcopy"] > 0) == MODULE
    assert not MODULE or by["cma"] + by["staged"] == 0


@needs_module
def test_again(runner: Runner, programs: Programs) -> None:
    """Memory that is used again is mapped from the second call with it on: all but one of twelve turns of two."""
    by = run(runner, programs, 3, "again", name="oneshot")
    assert by["kcopy"] > 0
    assert by["map"] > 10 * (by["kcopy"] + by["staged"] + by["cma"])


@needs_module
@pytest.mark.parametrize("limit", [0, 64])
def test_memlock(runner: Runner, programs: Programs, limit: int) -> None:
    """What may not be pinned is served as without the module."""
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is missing")
    program = programs.build("foreign", ["hazards/foreign.c"])
    path = runner.cwd / "stats"
    # Root is above the limit, unless it gives that up.
    script = f'ulimit -l {limit} && exec setpriv --bounding-set=-ipc_lock "$@"'
    runner.run(
        *("sh", "-c", script, "sh", *runner.mpirun_argv(2, program, "static")),
        env={"ONECOPY_STATS": str(path), **NO_SINGLE_COPY},
        timeout=120,
    )
    for line in stats(path):
        assert limit or line["mech"]["map"]["bytes"] == 0
