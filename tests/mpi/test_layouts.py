# SPDX-License-Identifier: BSD-3-Clause
"""Derived datatypes: what is moved from piece to piece, and what is packed, are the same bytes."""

from __future__ import annotations

from pathlib import Path

import longform
import pytest
from mpi.programs import MakeProgram, Programs
from mpi.stats import served
from mpi.test_differential import LIBRARIES, SEED, SETTINGS
from runner import NO_SINGLE_COPY, OPEN_MPI, Runner

ROUNDS = longform.rounds("ONECOPY_TEST_EXAMPLES", 60, 1500)


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "default"])
def test_random_types(runner: Runner, program: MakeProgram, name: str) -> None:
    """Types made by every constructor, of which each rank has its own."""
    print(f"ONECOPY_TEST_SEED={SEED}")
    library = runner.library(LIBRARIES.get(name, True))
    if not library or not library.exists():
        pytest.skip("this build has no such library")
    env = {**NO_SINGLE_COPY, **SETTINGS[name]}
    argv = (program("layouts"), str(SEED), str(ROUNDS))
    runner.mpirun(3, *argv, env=env, preload=LIBRARIES.get(name, True), timeout=60 + ROUNDS)


@pytest.mark.parametrize(
    ("call", "how"),
    [(call, "vector") for call in ("bcast", "allgather", "alltoall", "alltoallw")]
    + [("allgather", "dealt"), ("allgather", "large")],
)
def test_unpacked(runner: Runner, program: MakeProgram, call: str, how: str) -> None:
    """Where pieces are long nobody makes a packed copy."""
    if how == "large" and runner.mpi.abi == "openmpi4":
        pytest.skip(f"{runner.mpi.name} has no types with large counts")
    path = runner.cwd / "stats"
    # Peers' mappings of what is promoted to huge pages are gone until they look again, which raises their peak.
    runner.mpirun(2, program("unpacked"), call, how, env={"ONECOPY_STATS": str(path), "ONECOPY_THP": "never"})
    assert min(served(path, call)) > 0


@pytest.mark.parametrize("mode", [{}, {"ONECOPY_MECH": "cma"}, {"ONECOPY_MECH": "staged"}], ids=str)
def test_holes(runner: Runner, program: MakeProgram, mode: dict[str, str]) -> None:
    """Between the pieces there may be no memory at all."""
    path = runner.cwd / "stats"
    runner.mpirun(3, program("holes"), env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path), **NO_SINGLE_COPY, **mode})
    for call in ("bcast", "gather", "alltoall", "alltoallw"):
        assert min(served(path, call)) > 0


def test_hollow_array(runner: Runner, program: MakeProgram) -> None:
    """A part of an array with nothing in it takes no time, however many rows it would have."""
    path = runner.cwd / "stats"
    runner.mpirun(2, program("hollow"), env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "bcast") == [2, 2]


def test_rows_dealt_out(runner: Runner, program: MakeProgram) -> None:
    """What the MPI means by a type is what is copied, also where it is not what the standard says."""
    path = runner.cwd / "stats"
    runner.mpirun(2, program("rows"), env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "bcast") == [8, 8]


def test_own_block(runner: Runner, program: MakeProgram) -> None:
    """In place, where some blocks are packed and some are not."""
    path = runner.cwd / "stats"
    runner.mpirun(3, program("ownblock"), env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "allgatherv") == [1, 1, 1]


def test_shared_types(runner: Runner, programs: Programs) -> None:
    """Threads that come to a type at once lay it out once, and it ends when nobody uses it any more."""
    path = runner.cwd / "stats"
    binary = programs.build("sharedtypes", ["hazards/sharedtypes.c"], "-lpthread")
    runner.mpirun(2, binary, "20", env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "bcast") == [2 * 4 * 20] * 2


def available() -> int:
    """Bytes of memory that may be used without swapping."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))


@pytest.mark.long(1)
def test_huge_element(runner: Runner, program: MakeProgram) -> None:
    """One element of more bytes than an int counts, with gaps at both ends: packed and unpacked all the same."""
    if available() < 8 << 30:
        pytest.skip("two packed copies of 2 GiB: wants 8 GiB of memory to be free")
    path = runner.cwd / "stats"
    runner.mpirun(2, program("huge"), env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)}, timeout=240)
    assert served(path, "bcast") == [1, 1]


@pytest.mark.parametrize("words", [1, 256])
def test_uncommitted_type(runner: Runner, program: MakeProgram, words: int) -> None:
    """Whatever goes wrong as data is converted is said once, through the communicator's error handler; MPICH says it as
    well where it has a part of the call."""
    path = runner.cwd / "stats"
    twice = [] if runner.mpi.abi == OPEN_MPI.abi else ["twice"]
    runner.mpirun(3, program("uncommitted"), str(words), *twice, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert min(served(path, "gather")) > 0


def test_kinds(runner: Runner, program: MakeProgram) -> None:
    """Types of Fortran's kinds are predefined: what takes a type apart does not free them. Open MPI has those of 18
    digits, too, of which only the MPI knows what they are in C."""
    path = runner.cwd / "stats"
    done = runner.mpirun(2, program("kinds"), env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    sums = int(done.stdout.split("sums:")[1])
    assert sums >= 4
    assert served(path, "bcast") == [12, 12]
    assert served(path, "allreduce") == [1 + sums] * 2


@pytest.mark.parametrize("heap", ["on", "off"])
def test_displaced_blocks(runner: Runner, program: MakeProgram, heap: str) -> None:
    """Blocks that touch, counted by an extent that is not their size, are in one piece."""
    path = runner.cwd / "stats"
    runner.mpirun(3, program("displaced"), env={"ONECOPY_MIN": "1", "ONECOPY_HEAP": heap, "ONECOPY_STATS": str(path)})
    for call in ("scatterv", "alltoallv", "gatherv"):
        assert min(served(path, call)) > 0
