# SPDX-License-Identifier: BSD-3-Clause
"""What must never go wrong under a program that knows nothing of onecopy, hazard by hazard (docs/design.md)."""

from __future__ import annotations

import os
import random
import resource
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import longform
import pytest
from job import Job, JobError, mapped_shm_files, shm_files, wait_until
from mpi.programs import MakeProgram, Programs
from mpi.stats import moved, served, stats
from runner import NO_SINGLE_COPY, RANK, Runner

KILLS = longform.rounds("ONECOPY_TEST_KILLS", 5, 200)

MODES: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "heap-off": {"ONECOPY_HEAP": "off", "ONECOPY_MIN": "1"},
    "cma": {"ONECOPY_MECH": "cma", "ONECOPY_MIN": "1"},
    "staged": {"ONECOPY_MECH": "staged", "ONECOPY_MIN": "1"},
}
if Path("/dev/onecopy").exists():
    MODES = {**MODES, "module": {"ONECOPY_MECH": "map,kcopy", "ONECOPY_MIN": "1"}}
modes = pytest.mark.parametrize("mode", MODES)

# What moves bytes in each. The module is preferred to staging where it is loaded.
MOVED_BY: Mapping[str, tuple[str, ...]] = {
    "default": ("heap",),
    "heap-off": ("staged", "map", "kcopy"),
    "cma": ("cma",),
    "staged": ("staged",),
    "module": ("map", "kcopy"),
}


def run_mode(runner: Runner, ranks: int, binary: Path, mode: str, env: Mapping[str, str] | None = None) -> None:
    """Runs it in a mode; whatever it calls is served, by what the mode is about."""
    path = runner.cwd / "stats"
    runner.mpirun(ranks, binary, env={**MODES[mode], "ONECOPY_STATS": str(path), **(env or {})})
    lines = stats(path)
    assert len(lines) == ranks
    for line in lines:
        assert line["calls"], "nothing was called"
        assert all(call["served"] > 0 for call in line["calls"].values()), line
    by = moved(path)
    assert sum(by[name] for name in MOVED_BY[mode]) > 0, by


# ---- 1: progress ----------------------------------------------------------------------------------------------------


@modes
def test_progress(runner: Runner, program: MakeProgram, mode: str) -> None:
    # By a single copy messages would move although their sender does nothing.
    run_mode(runner, 4, program("progress"), mode, NO_SINGLE_COPY)


def test_arrived(runner: Runner, program: MakeProgram) -> None:
    runner.mpirun(3, program("arrived"))


@pytest.mark.parametrize("what", ["found", "in-place", "arrays"])
@pytest.mark.parametrize("least", ["", "1"], ids=["default", "all-served"])
def test_misuse(runner: Runner, program: MakeProgram, what: str, least: str) -> None:
    """What the MPI finds wrong in a call it finds under onecopy, too: the same, through the same handler, as often."""
    binary = program("misused")
    try:
        alone = runner.start_mpi(3, binary, what, preload=False).wait(60, leftovers=False)
    except JobError:
        pytest.skip(f"{runner.mpi.name} alone hangs there")
    # Hydra says 0 now and then where a rank has died.
    if alone.returncode or "BAD TERMINATION" in alone.stdout:
        pytest.skip(f"{runner.mpi.name} alone does not find all of it, or crashes there")
    path = runner.cwd / "stats"
    env = {"ONECOPY_STATS": str(path), **({"ONECOPY_MIN": least} if least else {})}
    assert runner.mpirun(3, binary, what, env=env).stdout == alone.stdout
    assert min(served(path, "bcast")) > 0
    runner.mpirun(3, binary, what, env={"ONECOPY_MIN": least} if least else {})


@pytest.mark.parametrize("what", ["buffers", "counts"])
def test_misuse_of_served_calls(runner: Runner, program: MakeProgram, what: str) -> None:
    """What an MPI need not find onecopy does."""
    runner.mpirun(3, program("misused"), what, env={"ONECOPY_MIN": "1"})


@pytest.mark.parametrize("what", ["alone", "lengths"])
@pytest.mark.parametrize("least", ["", "1"], ids=["default", "all-served"])
def test_misuse_by_one_rank(runner: Runner, program: MakeProgram, what: str, least: str) -> None:
    """Later calls find each other all the same."""
    runner.mpirun(3, program("misused"), what, env={"ONECOPY_MIN": least} if least else {})


def test_errors_without_a_communicator(runner: Runner, program: MakeProgram) -> None:
    runner.mpirun(2, program("blamed"))


@modes
def test_read_only(runner: Runner, program: MakeProgram, mode: str) -> None:
    runner.mpirun(3, program("readonly"), env=MODES[mode])


# ---- 2: fork --------------------------------------------------------------------------------------------------------


@modes
def test_fork(runner: Runner, program: MakeProgram, mode: str) -> None:
    run_mode(runner, 3, program("forks"), mode)


def test_limit_in_a_forked_child(runner: Runner, program: MakeProgram) -> None:
    if resource.getrlimit(resource.RLIMIT_AS)[1] != resource.RLIM_INFINITY:
        pytest.skip("addresses are limited here")
    if runner.open_mpi() >= 6:
        pytest.skip("Open MPI 6 itself has more addresses than the limit")
    runner.mpirun(3, program("child_limit"))


# ---- 3: more ranks than cores ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("least", ["", "1"], ids=["default", "all-served"])
def test_oversubscribed(runner: Runner, program: MakeProgram, least: str) -> None:
    """Spinning through whole time slices would take hours: the limit is generous but not that generous."""
    path = runner.cwd / "stats"
    env = {"ONECOPY_STATS": str(path), **({"ONECOPY_MIN": least} if least else {})}
    runner.mpirun(8, program("many"), env=env, timeout=120)
    calls = served(path, "bcast")
    assert len(calls) == 8
    assert all(n == 1500 if least else 0 < n < 1500 for n in calls)


def test_alloc_mem_alignment(runner: Runner, program: MakeProgram) -> None:
    runner.mpirun(2, program("aligned"))


# ---- 4 and 5: memory that is used again -----------------------------------------------------------------------------


@modes
def test_stale_memory(runner: Runner, program: MakeProgram, mode: str) -> None:
    run_mode(runner, 3, program("stale"), mode)


@modes
def test_overwritten_at_once(runner: Runner, program: MakeProgram, mode: str) -> None:
    run_mode(runner, 4, program("overwrite"), mode)


# ---- 6: refused copies ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_refused(runner: Runner, program: MakeProgram, when: str) -> None:
    """One rank may not read others: known from the probes, or found out by a copy."""
    path = runner.cwd / "stats"
    # Nor may the MPI itself: some hang.
    env = {"ONECOPY_MECH": "cma", "ONECOPY_MIN": "1", "ONECOPY_STATS": str(path), **NO_SINGLE_COPY}
    runner.mpirun(4, program("refused"), when, env=env)
    lines = stats(path)
    assert len(lines) == 4
    # Rank 1 finds out, its peers stage for it; who reads counts.
    staged = [line["mech"]["staged"]["calls"] for line in lines if when == "before" or line["rank"] == 1]
    assert all(staged), "nothing was refused"
    by_cma = sum(line["mech"]["cma"]["calls"] for line in lines)
    refused = [line["refused"] for line in sorted(lines, key=lambda line: line["rank"])]
    if when == "before":
        assert by_cma == 0
        assert not any(refused)
    else:
        assert by_cma > 0
        assert refused[1] > 0
        assert not any(refused[:1] + refused[2:])


# ---- 7: death of a rank ---------------------------------------------------------------------------------------------


def pids(job: Job, ranks: int) -> list[int]:
    """The ranks' pids once all have said them."""
    out = job.cwd / f"{job.tag}.out"

    def said() -> list[int]:
        found = [int(line.split()[1]) for line in out.read_text().splitlines() if line.startswith("pid ")]
        return found if len(found) == ranks else []

    found: list[int] = wait_until(said, 30)
    assert found, "the ranks did not start"
    return found


def kill_one(runner: Runner, victim: Path, dice: random.Random, most: int, leftovers: bool = True) -> None:
    """One of at most so many ranks, in any mode, dies at any moment: the rest is gone within 10 seconds, and no file of
    ours is left; without `leftovers` some of the MPI's may be."""
    temporary = runner.cwd / "tmp"
    temporary.mkdir(exist_ok=True)
    env = {**dice.choice(list(MODES.values())), "TMPDIR": str(temporary)}
    ranks = dice.randint(2, most)
    before = shm_files()
    job = runner.start_mpi(ranks, victim, env=env)
    unlucky = dice.choice(pids(job, ranks))
    time.sleep(dice.random() ** 2 * 0.5)
    os.kill(unlucky, signal.SIGKILL)
    finished = job.wait(10, grace=10, leftovers=leftovers)
    assert finished.returncode != 0
    assert wait_until(lambda: not job.processes(), 10)
    left = shm_files() - before
    assert not {path for path in left if "onecopy" in path.name}
    assert not [path for path in temporary.rglob("*") if "onecopy" in path.name]
    assert not Path("/tmp/onecopy").exists()
    if not leftovers:
        for path in left - mapped_shm_files():
            path.unlink(missing_ok=True)


def kill_many(runner: Runner, victim: Path, turns: int, most: int, leftovers: bool = True) -> None:
    """As kill_one(), so many times."""
    seed = int(os.environ["ONECOPY_TEST_SEED"])
    print(f"ONECOPY_TEST_SEED={seed}")
    dice = random.Random(seed)
    for turn in range(turns):
        print(f"turn {turn}")
        kill_one(runner, victim, dice, most, leftovers)


@pytest.mark.timeout(1200 + 10 * KILLS)
def test_killed_rank(runner: Runner, program: MakeProgram) -> None:
    """Whoever dies whenever: the rest is gone within 10 seconds, and nothing is left."""
    kill_many(runner, program("victim"), KILLS, most=6)


# ---- closed descriptors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["all", "last"])
def test_descriptors_closed_before(runner: Runner, program: MakeProgram, who: str) -> None:
    """Ranks that close all they did not open before MPI_Init cannot share their heaps: all are left to the MPI."""
    path = runner.cwd / "stats"
    runner.mpirun(3, program("closes"), "before", who, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "bcast") == [0] * 3
    reasons = [line["idle"] for line in stats(path)]
    assert sum("closed the descriptor" in reason for reason in reasons) == (3 if who == "all" else 1)
    assert all(reasons)


@modes
def test_descriptor_closed_after(runner: Runner, program: MakeProgram, mode: str) -> None:
    """Once peers have mapped the heap its descriptor is not missed."""
    path = runner.cwd / "stats"
    env = {"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path), **MODES[mode]}
    runner.mpirun(3, program("closes"), "after", "all", env=env)
    assert served(path, "bcast") == [6] * 3


def test_standard_descriptors_closed(runner: Runner, program: MakeProgram) -> None:
    """Ranks that are started without standard input, output and error print into nobody's memory."""
    path = runner.cwd / "stats"
    closed = ("sh", "-c", 'exec "$0" <&- >&- 2>&-', program("standard"))
    runner.mpirun(2, *closed, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "bcast") == [4] * 2


# ---- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_limits_itself(runner: Runner, program: MakeProgram, when: str) -> None:
    """A limit of its address space that a program sets leaves it that much beside the heap."""
    path = runner.cwd / "stats"
    runner.mpirun(2, program("limited"), when, env={"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)})
    assert served(path, "bcast") == [4] * 2


# ---- from which size on ---------------------------------------------------------------------------------------------


def test_total_decides(runner: Runner, program: MakeProgram) -> None:
    """Reduce_scatter and Reduce_scatter_block of the same blocks are served alike, by their bytes together."""
    counts = []
    for which in ([], ["block"]):
        path = runner.cwd / f"stats{len(which)}"
        runner.mpirun(4, program("totals"), *which, env={"ONECOPY_STATS": str(path)})
        counts.append(served(path, "reduce_scatter"))
    # All but those before the communicator's fourth.
    assert counts == [[40 - 3] * 4] * 2


# ---- 9: what differs between ranks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["ONECOPY_MIN=1", "ONECOPY_HEAP=off", "ONECOPY_MECH=staged", "ONECOPY=off"])
def test_unequal_settings(runner: Runner, program: MakeProgram, setting: str) -> None:
    """Ranks with environments of their own still decide alike."""
    script = f'[ "{RANK}" != 0 ] || export {setting}; exec "$0"'
    runner.mpirun(3, "sh", "-c", script, program("many"), timeout=90)


@pytest.mark.parametrize("with_us", ["110", "011", "1011", "100"])
def test_unequal_preload(runner: Runner, program: MakeProgram, with_us: str) -> None:
    """Ranks that run without us hold nobody up, and communicators without them are served."""
    path = runner.cwd / "stats"
    preload = f"export LD_PRELOAD={runner.library()} ONECOPY_STATS={path}"
    script = f'case "$(echo {with_us} | cut -c $(({RANK} + 1)))" in 1) {preload} ;; esac; exec "$0" "$1"'
    ranks = len(with_us)
    argv = runner.mpirun_argv(ranks, "sh", "-c", script, program("unequal"), with_us, preload=False)
    runner.run(*argv)
    together = with_us.count("1")
    assert served(path, "bcast") == [4 * (together > 1)] * together


@pytest.mark.parametrize(("ranks", "where"), [(1, "plain"), (2, "arena")])
def test_malloc_where_served(runner: Runner, program: MakeProgram, ranks: int, where: str) -> None:
    """One rank has nobody to copy to: its malloc is the C library's again."""
    runner.mpirun(ranks, program("places"), where)


def test_malloc_of_refused_ranks(runner: Runner, program: MakeProgram) -> None:
    """So is that of ranks with whom another one will have nothing to do."""
    script = f'[ "{RANK}" != 1 ] || export ONECOPY=off; exec "$0" plain'
    runner.mpirun(3, "sh", "-c", script, program("places"))


@pytest.mark.parametrize(
    ("takes", "device", "where"),
    [
        *(("cuda", "/dev/nvidiactl", "plain"), ("rocm", "/dev/kfd", "plain")),
        *(("hip", "/dev/kfd", "plain"), ("ze", "/dev/dri", "plain")),
        *(("cuda", "/dev/kfd", "arena"), ("cuda", "", "arena"), ("", "/dev/nvidiactl", "arena")),
    ],
)
def test_malloc_beside_a_gpu(runner: Runner, programs: Programs, takes: str, device: str, where: str) -> None:
    """An MPI that is given pointers to a GPU's memory is left alone where there is one, and there only."""
    path = runner.cwd / "stats"
    program = programs.build("places-gpu", ["hazards/places.c", "hazards/gpu.c"], "-rdynamic")
    env = {"TEST_TAKES": takes, "TEST_DEVICE": device, "ONECOPY_STATS": str(path)}
    runner.mpirun(2, program, where, env=env)
    reasons = {line["idle"] for line in stats(path)}
    if where == "plain":
        assert reasons == {"this MPI takes pointers to GPU memory, and there is a GPU"}
    else:
        assert not any(reasons), reasons


@pytest.mark.parametrize("named", [[], ["nameless"]], ids=["named", "nameless"])
@pytest.mark.parametrize("what", ["announce", "look", "accept", "join"])
@pytest.mark.parametrize("who", [0, 2])
def test_one_rank_cannot_meet(runner: Runner, programs: Programs, named: list[str], what: str, who: int) -> None:
    """Out of descriptors and the like as ranks look for each other: all hear of it at once, and none waits."""
    sockets = programs.build("sockets", ["hazards/sockets.c"], "-rdynamic")
    path = runner.cwd / "stats"
    env = {"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path), "ONECOPY_VERBOSE": "1"}
    done = runner.mpirun(3, sockets, str(who), what, *named, env=env)
    assert "timed out" not in done.stderr
    idle = sorted(bool(line["idle"]) for line in stats(path))
    if (what, who) == ("accept", 2):  # only the first accepts anybody
        assert idle == [False] * 3
    elif what == "join" or named:
        assert idle == [True] * 3
    else:  # the others found it before it gave up, or they did not
        assert idle in ([False, False, True], [True] * 3)


@pytest.mark.parametrize("whose", ["HERE", "MPI"])
def test_no_memory_for_a_communicator(runner: Runner, programs: Programs, whose: str) -> None:
    """One rank has no memory to count a communicator's calls in, and counts them all the same."""
    path = runner.cwd / "stats"
    nomemory = programs.build("nomemory", ["hazards/nomemory.c"], "-rdynamic")
    runner.mpirun(3, nomemory, whose, env={"ONECOPY_STATS": str(path)})
    assert served(path, "bcast") == [30] * 3


@pytest.mark.parametrize("who", [0, 1])
def test_init_that_does_not_synchronise(runner: Runner, programs: Programs, who: int) -> None:
    """Ranks may leave MPI_Init before others are in: those that miss each other are left to the MPI."""
    sockets = programs.build("sockets", ["hazards/sockets.c"], "-rdynamic")
    path = runner.cwd / "stats"
    env = {"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path), "OMPI_MCA_async_mpi_init": "1"}
    runner.mpirun(3, sockets, str(who), "late", env=env)
    assert len(stats(path)) == 3


@pytest.mark.parametrize("ranks", [2, 3])
def test_placement(runner: Runner, program: MakeProgram, ranks: int) -> None:
    """First touch decides the NUMA node, and no peer's touch is the first. Guests have more than one node, and two
    cores: of two ranks those who send messages copy half of them."""
    nodes = Path("/sys/devices/system/node/has_memory")
    if not nodes.exists() or nodes.read_text().strip() != "0-1":
        pytest.skip("wants two NUMA nodes with memory")
    runner.mpirun(ranks, program("placement"), "2", timeout=300)


def test_memory_between_blocks(runner: Runner, program: MakeProgram) -> None:
    """What a Gatherv leaves out is not there when it is over."""
    runner.mpirun(2, program("placement"), "1")


def test_fresh_receive_buffers(runner: Runner, program: MakeProgram) -> None:
    """Peers that write a buffer first do not take its owner's huge pages away."""
    root, other = map(int, runner.mpirun(2, program("fresh"), env={"ONECOPY_THP": "always"}).stdout.split())
    if not root:
        pytest.skip("no transparent huge pages here")
    assert other >= 0.8 * root


def test_filled_after_the_last_allocation(runner: Runner, program: MakeProgram) -> None:
    """Small pages that have filled up become huge ones without another allocation."""
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not setting.exists() or "[never]" in setting.read_text():
        pytest.skip("no transparent huge pages here")
    before, after = map(int, runner.mpirun(2, program("filled"), env={"ONECOPY_THP": "always"}).stdout.split())
    assert after > before or before >= 0.9 * (192 << 10)


@pytest.mark.parametrize(("how", "ranks"), [("bcast", 2), ("messages", 2), ("waits", 2), ("waits", 4)])
def test_kept_memory_gets_huge_pages(runner: Runner, program: MakeProgram, how: str, ranks: int) -> None:
    """Also where huge pages are dear, static data and blocks that are there to stay are promoted in time."""
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not setting.exists() or "[never]" in setting.read_text():
        pytest.skip("no transparent huge pages here")
    said = runner.mpirun(ranks, program("kept"), how).stdout.split()
    if said == ["none"]:
        pytest.skip("this kernel makes no huge page out of small ones")
    assert all(int(kib) >= 2048 for kib in said), said
