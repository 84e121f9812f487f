# SPDX-License-Identifier: BSD-3-Clause
"""Programs of all sorts under the preload library: not of an MPI, of several, with their own tools and allocators."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from mpi.programs import HERE, MakeProgram, Programs
from mpi.stats import served, stats
from onecopy.mpi import ABIS, linked_libraries
from runner import Runner


def test_off(runner: Runner, program: MakeProgram) -> None:
    path = runner.cwd / "stats"
    runner.mpirun(2, program("overwrite"), env={"ONECOPY": "off", "ONECOPY_STATS": str(path)})
    lines = stats(path)
    assert [line["idle"] for line in lines] == ["ONECOPY=off"] * 2
    for line in lines:
        assert line["calls"]["bcast"]["passed"] == 60
        assert not any(call["served"] for call in line["calls"].values())


@pytest.mark.parametrize(
    "argv",
    [
        ["sh", "-c", "echo $((6 * 7)); ls / >/dev/null; (exit 0) & wait"],
        [sys.executable, "-c", "x = [bytes(1 << 20) for _ in range(50)]; print(6 * 7)"],
        ["make", "-f", "/dev/null", "--version"],
    ],
    ids=["sh", "python", "make"],
)
def test_not_mpi(runner: Runner, argv: list[str]) -> None:
    """The preload library may get into any program, and adds nothing to what it says."""
    alone = runner.run(*argv)
    ours = runner.run(*argv, env={"LD_PRELOAD": str(runner.library())})
    assert (ours.stdout, ours.stderr) == (alone.stdout, alone.stderr)


@pytest.mark.parametrize("level", ["-1", "0", "1", "2", "3"])
def test_thread_levels(runner: Runner, program: MakeProgram, level: str) -> None:
    levels = program("levels")
    path = runner.cwd / "stats"
    ours = runner.mpirun(2, levels, level, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert ours.stdout == runner.mpirun(2, levels, level, preload=False).stdout
    assert served(path, "bcast") == [8, 8]


def test_beyond_one_world(runner: Runner, program: MakeProgram) -> None:
    """Spawned processes are served among themselves; what spans worlds goes to the MPI."""
    beyond = program("beyond")
    path = runner.cwd / "stats"
    runner.alone_or_skip(4, beyond, beyond)  # not on Debian 13's Open MPI 5.0.7, where both worlds are on one host
    runner.mpirun(4, beyond, beyond, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    worlds = sorted(line["nranks"] for line in stats(path))
    spawned = 2 if runner.open_mpi() == 4 else 0  # later ones do not preload it
    assert worlds == [2] * spawned + [4] * 4
    # Three ranks of the first world have a part in one over an intercommunicator within it.
    assert sorted(line["calls"]["bcast"]["served"] for line in stats(path)) == [6] * (spawned + 1) + [7] * 3


@pytest.mark.long(0.5)
@pytest.mark.parametrize("tool", ["memcheck", "massif", "none"])
def test_valgrind(runner: Runner, program: MakeProgram, tool: str) -> None:
    """Tools that replace malloc get it, and the MPI all calls; memcheck would read the whole arena at the end."""
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is missing: packaging/install-deps watch")
    path = runner.cwd / "stats"
    valgrind = ["valgrind", f"--tool={tool}", "--log-file=valgrind.%p"]
    if tool == "massif":
        valgrind.append("--massif-out-file=massif.%p")
    runner.mpirun(2, *valgrind, program("oneshot"), "once", env={"ONECOPY_STATS": str(path)}, timeout=300)
    idle = {line["idle"] for line in stats(path)}
    assert idle == {"" if tool == "none" else "valgrind has malloc and free for itself"}


def test_tool_in_program(runner: Runner, programs: Programs) -> None:
    """A tool of the standard's profiling interface sees every call, and onecopy serves what the tool passes on."""
    binary = programs.build("profiled", ["hazards/profiled.c", "hazards/tool.c"])
    path = runner.cwd / "stats"
    runner.mpirun(2, binary, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "bcast") == [10, 10]


def test_tool_in_library(runner: Runner, programs: Programs) -> None:
    """The same with the tool in a library of the program."""
    tool = programs.build("libtool.so", ["hazards/tool.c"], "-shared", "-fPIC")
    flags = [f"-L{tool.parent}", "-l:libtool.so", f"-Wl,-rpath,{tool.parent}"]
    binary = programs.build("profiled-library", ["hazards/profiled.c"], *flags)
    path = runner.cwd / "stats"
    runner.mpirun(2, binary, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "bcast") == [10, 10]


def test_allocator_in_library(runner: Runner, programs: Programs) -> None:
    """An allocator that the program brings is not asked about blocks that are not its own."""
    path = runner.cwd / "stats"
    env = {"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)}
    runner.mpirun(2, programs.with_allocator("usable"), env=env)
    assert served(path, "bcast") == [20, 20]


def test_allocator_that_frees_in_other_ways(runner: Runner, programs: Programs) -> None:
    """It gets no block of ours; its own are served as foreign memory."""
    path = runner.cwd / "stats"
    env = {"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)}
    runner.mpirun(2, programs.with_allocator("dallocx", "-DALLOCATOR_DALLOCX"), env=env)
    assert served(path, "bcast") == [20, 20]
    assert all("jemalloc" in line["heap"] for line in stats(path))


@pytest.mark.parametrize("own", ["all", "free", "lookup"])
def test_free_of_its_own(runner: Runner, programs: Programs, own: str) -> None:
    """Blocks that it would give to the C library do not come from the heap; one that passes them on gets them."""
    path = runner.cwd / "stats"
    binary = programs.build(f"ownfree-{own}", ["hazards/ownfree.c"], f"-DOWN_{own.upper()}", "-fno-builtin", "-ldl")
    runner.mpirun(2, binary, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "bcast") == [40, 40]
    assert all(("of its own" in line["heap"]) == (own != "lookup") for line in stats(path))


def test_mimalloc_of_its_own(runner: Runner, programs: Programs) -> None:
    """The arena has another one: a child of fork has its blocks, and nothing of what is between them."""
    if not any(Path(f"/usr/lib/{machine}-linux-gnu/libmimalloc.so.2").exists() for machine in ("x86_64", "aarch64")):
        pytest.skip("libmimalloc.so.2 is not here")
    path = runner.cwd / "stats"
    binary = programs.build("ownmimalloc", ["hazards/ownmimalloc.c"], "-pthread", "-l:libmimalloc.so.2")
    runner.mpirun(2, binary, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "bcast") == [10, 10]
    assert all(not line["heap"] for line in stats(path))


def test_other_mpi(runner: Runner, programs: Programs) -> None:
    """The preload library in a program of an MPI it is not made for: every call passes through, and it says so."""
    library = programs.build("libothermpi.so", ["hazards/othermpi.c"], "-shared", "-fPIC", compiler="cc")
    flags = [f"-L{library.parent}", "-l:libothermpi.so", f"-Wl,-rpath,{library.parent}"]
    binary = programs.build("otherprogram", ["hazards/otherprogram.c"], *flags, compiler="cc")
    path = runner.cwd / "stats"
    env = {"LD_PRELOAD": str(runner.library()), "ONECOPY_STATS": str(path), "ONECOPY_VERBOSE": "1"}
    done = runner.run(binary, env=env)
    assert "not used: the MPI is not the one" in done.stderr
    assert [line["calls"]["bcast"]["passed"] for line in stats(path)] == [1]


def test_one_rank_says_why(runner: Runner, program: MakeProgram) -> None:
    path = runner.cwd / "stats"
    runner.mpirun(1, program("overwrite"), env={"ONECOPY_STATS": str(path)})
    assert [line["idle"] for line in stats(path)] == ["one rank on this machine"]


def test_one_rank_keeps_its_blocks(runner: Runner, program: MakeProgram) -> None:
    runner.mpirun(1, program("retired"))


@pytest.mark.parametrize("by", ["need", "name"])
def test_mpi_by_dlopen(runner: Runner, programs: Programs, by: str) -> None:
    """The library is loaded because the module needs it, or before that by a name that is not what it calls itself."""
    plugin = programs.build("plugin.so", ["hazards/plugin.c"], "-shared", "-fPIC")
    (library,) = [Path(file) for name, file in linked_libraries(plugin) if name in ABIS and file]
    other = library.with_name(library.name.partition(".so")[0] + ".so")
    if by == "name" and not other.read_bytes().startswith(b"\x7fELF"):
        pytest.skip(f"{other} is a script of the linker")
    path = runner.cwd / "stats"
    argv: list[str | Path] = [
        sys.executable,
        HERE / "hazards" / "interpreter.py",
        plugin,
        *([other] if by == "name" else []),
    ]
    runner.mpirun(2, *argv, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "bcast") == [20, 20]


def test_statistics(runner: Runner, program: MakeProgram) -> None:
    """One line a rank, with as many calls and bytes as there were."""
    path = runner.cwd / "stats"
    runner.mpirun(3, program("overwrite"), env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    lines = stats(path)
    assert sorted(line["rank"] for line in lines) == [0, 1, 2]
    mean = sum(4 * (4099 if turn % 3 else 1 << 16) for turn in range(0, 300, 5))
    for line in lines:
        assert line["nranks"] == 3
        for name in ("bcast", "gather", "allgather", "scatter", "reduce"):
            assert line["calls"][name]["served"] == 60
            assert line["calls"][name]["passed"] == 0
        assert line["calls"]["bcast"]["bytes"] == mean
        assert line["mech"]["heap"]["bytes"] > 0
        # Where ranks share cores the short ones are put aside to be read.
        assert line["mech"]["heap"]["bytes"] > line["mech"]["staged"]["bytes"]
