# SPDX-License-Identifier: BSD-3-Clause
"""What a program may do beside MPI_COMM_WORLD and its collectives: sessions, communicators made of others, the MPI's
tool interface, and going on after a failure. None of it may be changed by onecopy, and what can be served is."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import longform
import pytest
from job import JobError
from mpi.programs import MakeProgram, Programs
from mpi.script import MOVES as EXCHANGES
from mpi.script import REDUCTIONS, Script
from mpi.stats import served, stats
from mpi.test_differential import digests
from onecopy import record
from runner import OPEN_MPI, Runner

RANKS = 3
# Calls of each collective in the programs, and what of them is made of sessions.
COPIES = 16
VARIABLES = 4
#: Ways of sessions in which all is served that each rank does.
SERVED = {"only": 1, "wrong": 2, "again": 1, "inside": 7, "across": 8, "two": 4, "backwards": 1}

#: What docs/tuning.md tells users of long gets to say to Open MPI 5; nothing to others.
ONE_COPY = {"OMPI_MCA_btl_sm_flags": "send,inplace,rdma-remote-completion"}

# Alone: one session after another is too much for them.
ONE_SESSION = ("openmpi5", "debian")


def has(runner: Runner, declaration: str) -> bool:
    """Whether the MPI's headers know all names of the declaration."""
    extensions = "#ifdef OPEN_MPI\n#include <mpi-ext.h>\n#endif\n"
    text = f"#include <mpi.h>\n{extensions}{declaration};\n"
    argv = [runner.mpi.mpicc, *runner.mpi.cflags, "-x", "c", "-fsyntax-only", "-"]
    env = runner.environment()
    return not subprocess.run(argv, input=text, text=True, capture_output=True, check=False, env=env).returncode


def has_sessions(runner: Runner) -> bool:
    return has(runner, "MPI_Session session")


def compare(
    runner: Runner,
    program: Path,
    *argv: str,
    least: str = "1",
    ranks: int = RANKS,
    spare: int = 0,
    timeout: float = 150,
) -> Path:
    """Runs what the MPI alone can run, too; the statistics. @least: what ONECOPY_MIN is, nothing for the default;
    @spare: how often it may fail."""
    path = runner.cwd / "stats"
    env = {"ONECOPY_STATS": str(path)} | ({"ONECOPY_MIN": least} if least else {})
    try:
        runner.mpirun(ranks, program, *argv, env=env, timeout=timeout)
    except JobError:
        if spare:
            path.unlink(missing_ok=True)
            return compare(runner, program, *argv, least=least, ranks=ranks, spare=spare - 1, timeout=timeout)
        if runner.mpirun(ranks, program, *argv, preload=False, check=False).returncode == 0:
            raise
        pytest.skip("the MPI alone cannot run this")
    return path


#: Calls between two groups; of those of blocks like each other one is made with large counts where the MPI has them.
MOVES = ("bcast", "scatter", "scatterv", "gather", "gatherv", "allgather", "allgatherv", "alltoall", "alltoallv")
BETWEEN = (*MOVES, "reduce", "allreduce", "reduce_scatter", "barrier")


def test_intercommunicators(runner: Runner, program: MakeProgram) -> None:
    """All calls are served by all ranks that have a part in them."""
    path = compare(runner, program("groups"))
    for call in BETWEEN:
        least = 1 if call.startswith("all") else RANKS - 1  # the first call may come before there is a group
        assert sum(served(path, call)) >= least, call
    for line in stats(path):
        assert line["calls"]["alltoallw"]["served"] >= 1


@pytest.mark.parametrize("seed", [longform.param(seed, short=seed == 1, minutes=0.2) for seed in range(1, 7)])
@pytest.mark.parametrize("least", [longform.param(least, short=least == "", minutes=0.2) for least in ("", "1")])
def test_between_groups(runner: Runner, program: MakeProgram, seed: int, least: str) -> None:
    """Random calls, of which some are served: as it is by default, and all."""
    path = compare(runner, program("between"), str(seed), "300", least=least, ranks=4 if seed % 2 else 3)
    for call in (*BETWEEN, "alltoallw"):
        assert sum(served(path, call)), call
    # Nobody is served what has no bytes for it, such as ranks without a part (MPI_PROC_NULL).
    cells = [cell for line in stats(path) for cell in line["cells"] if cell["call"] != "barrier"]
    assert not [cell for cell in cells if cell["outcome"] == "served" and not cell["data"]]


WAYS = ("only", "wrong", "again", "inside", "across", "two", "backwards", "part", "threads", "outlives")


@pytest.mark.parametrize(
    "how", [longform.param(how, short=how in ("only", "wrong", "across", "outlives"), minutes=0.2) for how in WAYS]
)
def test_sessions(runner: Runner, program: MakeProgram, how: str) -> None:
    """Communicators of sessions are served as all others, with and without MPI_Init; where the first one has not all
    ranks, or ranks differ in which is the first, as threads may make them, none is."""
    if not has_sessions(runner):
        pytest.skip(f"{runner.mpi.name} has no sessions")
    if how == "again" and runner.mpi.name in ONE_SESSION:
        pytest.skip(f"{runner.mpi.name} alone crashes in its second session")
    if how == "wrong" and runner.mpi.name != "openmpi5":
        pytest.skip(f"{runner.mpi.name} ends the program")
    if how == "threads" and runner.mpi.name == "openmpi5":
        pytest.skip("Open MPI 5 alone hangs where threads make communicators of groups at once")
    # MPICH 5 alone hangs in the second session once in hundreds of times, the more so the more there is to do.
    again = how == "again"
    path = compare(runner, program("sessions", "-pthread"), how, spare=2 if again else 0, timeout=40 if again else 60)
    if how in SERVED:
        assert (
            served(path, "bcast") == served(path, "allreduce") == [SERVED[how]] * (3 if how == "again" else 1) * RANKS
        )
    elif how == "part":
        assert {line["idle"] for line in stats(path)} == {
            "no MPI_Init, and no session's first communicator had all ranks",
            "no other rank on this machine runs under onecopy",
        }
    else:
        assert len(set(served(path, "bcast"))) == 1


def without_last(runner: Runner, path: Path | str, program: Path, *argv: str) -> None:
    """Runs a program whose last rank has not the library."""
    preload = f"export LD_PRELOAD={runner.library()} ONECOPY_MIN=1 ONECOPY_STATS={path}"
    script = f'[ ${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} = {RANKS - 1} ] || {preload}; exec "$@"'
    runner.mpirun(RANKS, "sh", "-c", script, "sh", program, *argv, preload=False)


def test_sessions_without(runner: Runner, program: MakeProgram) -> None:
    """A rank without the library, which nobody may wait for: the others are served among themselves, but none is with
    it."""
    if not has_sessions(runner):
        pytest.skip(f"{runner.mpi.name} has no sessions")
    path = runner.cwd / "stats"
    without_last(runner, path, program("sessions", "-pthread"), "without")
    lines = stats(path)
    assert len(lines) == RANKS - 1
    for line in lines:
        assert not line["idle"]
        assert not any(call["served"] for call in line["calls"].values())


def test_communicators(runner: Runner, program: MakeProgram) -> None:
    """Callbacks of attributes, MPI_Comm_dup_with_info and their like."""
    path = compare(runner, program("copies"))
    assert served(path, "bcast") == served(path, "allgather") == [COPIES] * RANKS


#: Each collective, by 32 ranks: out of place, and in place where there is such a thing.
CROWD = Script(
    32,
    (
        "init single",
        *(
            f"call {name} 0 {3 + turn} 600 int sum {turn} 0 heap plain 0 {turn}"
            for name in (*EXCHANGES, *REDUCTIONS, "barrier")
            for turn in range(2)
        ),
    ),
)


def test_crowd(runner: Runner, programs: Programs) -> None:
    """Sixteen ranks to a core of two: every collective is served, and the driver finds every byte in its place."""
    if runner.mpi.name == "debian" and not longform.ASKED:
        pytest.skip("long: MPICH 4.0 starts 32 ranks slowly")
    digests(runner, programs, CROWD, "crowd", {"ONECOPY_MIN": "1"})
    for name in (*EXCHANGES, *REDUCTIONS):
        # A rank may have no block in calls that are of unequal ones.
        assert sum(served(runner.cwd / "crowd.stats", name.removesuffix("_block"))) > 0, name


#: Communicators one after the other: pages of the ranks' segment are touched for the first time up to some 1200.
MANY = 3000
#: Pages that a rank may hold more of after the second half of them: what an MPI's own pools take now and then.
SLACK = 100


def test_thousand_communicators(runner: Runner, program: MakeProgram) -> None:
    """Thousands are made, served and freed, and neither memory nor mappings nor descriptors grow with their number."""
    path = runner.cwd / "stats"
    env = {"ONECOPY_STATS": str(path), "ONECOPY_MIN": "1"}
    done = runner.mpirun(2, program("thousand"), str(MANY), env=env, timeout=150)
    grown = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
    assert len(grown) == 2
    assert all(pages <= SLACK and mappings <= 0 and descriptors <= 0 for pages, mappings, descriptors in grown), grown
    assert served(path, "bcast") == served(path, "allreduce") == [MANY] * 2


def test_last_words(runner: Runner, program: MakeProgram) -> None:
    """Callbacks of MPI_COMM_SELF's attributes communicate in MPI_Finalize, and are served as before it."""
    path = compare(runner, program("lastwords"))
    assert served(path, "bcast") == served(path, "allgather") == [4] * RANKS


def test_tool_interface(runner: Runner, program: MakeProgram) -> None:
    path = compare(runner, program("variables"))
    assert served(path, "bcast") == [VARIABLES] * RANKS


#: By which launchers do not end a job one of whose ranks has died.
KEPT = {OPEN_MPI.abi: ["--with-ft", "ulfm"], "mpich": ["-disable-auto-cleanup"]}


def test_going_on(runner: Runner, program: MakeProgram) -> None:
    """A rank dies, and the others go on without it: such jobs are left to the MPI."""
    if not has(runner, "int (*shrink)(MPI_Comm, MPI_Comm *) = MPIX_Comm_shrink"):
        pytest.skip(f"{runner.mpi.name} has no MPIX_Comm_shrink")
    alone = runner.mpirun_argv(4, program("survives"), preload=False)
    alone[1:1] = KEPT[runner.mpi.abi]
    if runner.mpi.abi != OPEN_MPI.abi:
        if not longform.ASKED:
            pytest.skip("long: MPICH alone is given time to go on")
        try:
            done = runner.start(*alone).wait(20, leftovers=False)
        except JobError:
            pytest.skip(f"{runner.mpi.name} alone does not go on: those that are left do not end")
        if done.stdout.count("gone on") < 3:
            pytest.skip(f"{runner.mpi.name} alone does not go on: ends with {done.returncode}")
    records = runner.cwd / "records"
    records.mkdir()
    argv = runner.mpirun_argv(4, program("survives"))
    argv[1:1] = KEPT[runner.mpi.abi]
    done = runner.run(*argv, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": f"{records}/"}, check=False)
    assert done.stdout.split("\n").count("gone on") == 3, done.stderr
    assert {report["idle"] for report in record.read(records)} == {
        "this MPI goes on after ranks have died (mpirun --with-ft)"
    }


def copied(records: Path) -> int:
    """Bytes of one-sided transfers that were copied by a pointer, of all ranks."""
    return sum(int(report["transfers"]["served"]["bytes"]) for report in record.read(records))


@pytest.mark.parametrize("said", [{}, ONE_COPY], ids=["as-is", "told"])
def test_gets(runner: Runner, program: MakeProgram, said: dict[str, str]) -> None:
    """What is got and put arrives, and what is long in one copy, with gaps or without."""
    if said and runner.mpi.name != "openmpi5":
        pytest.skip(f"{runner.mpi.name} knows no such setting")
    records = runner.cwd / "records"
    records.mkdir()
    seed = random.randrange(1, 1 << 32)
    done = runner.mpirun(RANKS, program("gets"), str(seed), "20", env={"ONECOPY_STATS": f"{records}/", **said})
    assert copied(records) >= int(done.stdout.split()[0]) > 0, f"seed {seed}"


#: Ways of windows.c, and the bytes that all ranks together move by a pointer: where nothing depends on who is late.
BLOCK = 40000 * 4
ROUNDS = 40
WINDOWS = {
    "fences": 1,
    # Of each round two ranks of three are at another's.
    "locks": ROUNDS * 2 * 2 * BLOCK,
    "flushes": ROUNDS * RANKS * 2 * 2 * BLOCK,
    "starts": 1,
    "many": 1,
    "wrong": 0,
    "threads": RANKS * ROUNDS * 2 * BLOCK,
    "asks": 1,
    "ends": RANKS * ROUNDS * BLOCK,
}


@pytest.mark.parametrize(
    "way", [longform.param(way, short=way in ("locks", "many", "ends", "asks"), minutes=0.1) for way in WINDOWS]
)
def test_windows(runner: Runner, program: MakeProgram, way: str) -> None:
    """Transfers are made neither too early nor too late, whatever synchronizes them; what is wrong is reported as it
    is without."""
    records = runner.cwd / "records"
    records.mkdir()
    windows = program("windows", "-pthread")
    alone = runner.mpirun(RANKS, windows, way, preload=False, check=False)
    if alone.returncode:
        pytest.skip("the MPI alone cannot run this")
    done = runner.mpirun(RANKS, windows, way, env={"ONECOPY_STATS": f"{records}/"})
    assert copied(records) >= WINDOWS[way]
    assert done.stdout == alone.stdout


@pytest.mark.parametrize("way", ["fences", "locks"])
def test_windows_without(runner: Runner, program: MakeProgram, way: str) -> None:
    """A rank without the library, as those of other nodes: the others do not wait for it to tell where its window is,
    and serve each other."""
    records = runner.cwd / "records"
    records.mkdir()
    without_last(runner, f"{records}/", program("windows", "-pthread"), way)
    assert copied(records) >= (WINDOWS[way] // 3 if way == "locks" else 1)
