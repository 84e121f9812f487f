# SPDX-License-Identifier: BSD-3-Clause
"""process_vm_readv and process_vm_writev as programs see them: whatever onecopy answers, the system call would have."""

from __future__ import annotations

import platform
import random
from collections.abc import Mapping
from pathlib import Path

import longform
import pytest
from job import Finished
from mpi.programs import Programs
from onecopy import machine, record
from runner import OUTLIVE, PRELOAD, Runner

HERE = Path(__file__).resolve().parent
CALLS = longform.rounds("ONECOPY_TEST_CALLS", 1000, 5000)
ROUNDS = longform.rounds("ONECOPY_TEST_ROUNDS", 60, 600)

WINDOWS = "tests/libonecopy-windows-{abi}.so"
MODULE = Path("/dev/onecopy")
COUNTERS = Path("/sys/kernel/debug/onecopy/counters")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("procvm"))


@pytest.fixture
def figures(runner: Runner) -> Path:
    """Where the ranks keep their records."""
    directory = runner.cwd / "figures"
    directory.mkdir()
    return directory


@pytest.mark.parametrize("library", [PRELOAD, WINDOWS], ids=["whole", "windows"])
def test_same_as_the_system_call(runner: Runner, programs: Programs, figures: Path, library: str) -> None:
    """Random lists of all kinds of memory, wrong calls, children, threads, a dead peer; with arenas mapped whole and in
    small windows."""
    seed = random.randrange(1, 1 << 32)
    env = {**OUTLIVE, "ONECOPY_STATS": f"{figures}/"}
    binary = programs.build("same", [str(HERE / "same.c")], "-pthread")
    # Open MPI 5 ends a job in which one dies.
    deaths = ["deaths"] if runner.open_mpi() == 4 else []
    done = runner.mpirun(2, binary, str(seed), str(CALLS), *deaths, env=env, preload=library, timeout=280)
    if "no system call" in done.stdout:
        pytest.skip("the system call is refused here")
    assert "the same" in done.stdout, f"seed {seed}\n{done.stderr}"
    (one,) = [report for report in record.read(figures) if report["world_rank"] == 0]
    assert one["messages"]["heap"]["calls"] > CALLS
    assert one["messages"]["cma"]["calls"] > 0


KINDS = [
    ("heap", "heap"),
    ("static", "heap"),
    ("stack", "heap"),
    ("mapped", "heap"),
    ("heap", "static"),
    ("static", "stack"),
]


@pytest.mark.parametrize(
    ("here", "there", "pieces"),
    [*((*kinds, 1) for kinds in KINDS), ("heap", "heap", 16), ("heap", "heap", 17), ("heap", "heap", 1024)],
)
def test_who_copies(runner: Runner, programs: Programs, figures: Path, here: str, there: str, pieces: int) -> None:
    """Calls are answered from memory that is known to be there, by name or by number, also where the list of its pieces
    is in memory that is not: counted exactly, in pieces."""
    binary = programs.build("same", [str(HERE / "same.c")], "-pthread")
    done = runner.mpirun(2, binary, "count", here, there, str(pieces), "40", env={"ONECOPY_STATS": f"{figures}/"})
    if "no system call" in done.stdout:
        pytest.skip("the system call is refused here")
    (one,) = [report for report in record.read(figures) if report["world_rank"] == 0]
    numbers = platform.machine() == "x86_64"
    wanted = pieces * (40 if numbers else 20)
    by = "heap" if here != "mapped" and there in ("heap", "static") else "cma"
    assert {name: entry["calls"] for name, entry in one["messages"].items() if entry["calls"]} == {by: wanted}


#: Of callers.c, that are copied by a pointer: each of twelve pages is met by three calls; after a jump a thread's are.
PIECES = {"handlers": 12 * 3, "jumps": 100, "vforks": 4}


@pytest.mark.parametrize(
    ("what", "library"),
    [
        ("handlers", PRELOAD),
        ("jumps", PRELOAD),
        ("vforks", PRELOAD),
        longform.param("handlers", WINDOWS, short=False, minutes=0.1),
        longform.param("jumps", WINDOWS, short=True, minutes=0.1),
    ],
)
def test_odd_callers(runner: Runner, programs: Programs, figures: Path, what: str, library: str) -> None:
    """Handlers of signals that come in the middle of a copy, and that make one or leave it by a jump; children of
    vfork(), which have the memory of their parent."""
    binary = programs.build("callers", [str(HERE / "callers.c")], "-pthread")
    done = runner.mpirun(2, binary, what, env={"ONECOPY_STATS": f"{figures}/"}, preload=library)
    assert "as it should be" in done.stdout
    (one,) = [report for report in record.read(figures) if report["world_rank"] == 0]
    # A handler's calls are the system's: the one that it interrupts may hold what it would want.
    assert one["messages"]["heap"]["calls"] == PIECES[what]


@pytest.mark.parametrize("by", ["user", "filter"])
def test_refused(runner: Runner, programs: Programs, figures: Path, by: str) -> None:
    """A caller to whom the kernel refuses a peer, as one who is not root, or by a filter of system calls, has that for
    an answer where the call is the kernel's, and the bytes before it of a list; what is in the heap it gets."""
    binary = programs.build("callers", [str(HERE / "callers.c")], "-pthread")
    argv = runner.mpirun_argv(2, binary, "refused")
    if by == "filter":
        argv = [str(programs.build("deny", ["hazards/deny.c"], compiler="cc")), *argv]
    done = runner.run(*argv, env={"ONECOPY_STATS": f"{figures}/"})
    assert "as it should be" in done.stdout
    (one,) = [report for report in record.read(figures) if report["world_rank"] == 0]
    # Read and written: a block whole, and the first page of a list.
    assert one["messages"]["heap"]["calls"] == 4


@pytest.mark.parametrize("thp", ["auto", "never"])
def test_private_pages(runner: Runner, programs: Programs, thp: str) -> None:
    """Private memory that peers copy over and over gets huge pages, unless nobody is to have them; what is shared,
    what the program wants none for, and what would grow, is left as it is."""
    if machine.selected("/sys/kernel/mm/transparent_hugepage/enabled") != "madvise":
        pytest.skip("here private memory has huge pages from the first touch on, or none at all")
    binary = programs.build("pages", [str(HERE / "pages.c")])
    done = runner.mpirun(2, binary, "60" if thp == "auto" else "2", env={"ONECOPY_THP": thp}, timeout=120)
    if "no collapse" in done.stdout:
        pytest.skip("memory cannot be collapsed here (Linux 6.1, MADV_COLLAPSE)")
    for rank in 0, 1:
        whole = 8192 if thp == "auto" else 0
        assert f"{rank} whole: huge {whole} shared 0 grown 0" in done.stdout
        for kind in "sparse", "shared", "advised":
            assert f"{rank} {kind}: huge 0 shared 0 grown 0" in done.stdout


def test_number_of_another(runner: Runner, programs: Programs) -> None:
    """A process that has got the number of a rank that is gone is not taken for it."""
    if runner.open_mpi() != 4:
        pytest.skip("this MPI ends a job in which a rank dies")
    binary = programs.build("callers", [str(HERE / "callers.c")], "-pthread")
    done = runner.mpirun(2, binary, "reused", env=OUTLIVE)
    if "cannot choose" in done.stdout:
        pytest.skip("needs root, or CAP_CHECKPOINT_RESTORE, to choose a process id")
    assert "as it should be" in done.stdout


def copied(figures: Path) -> dict[str, int]:
    """Bytes of the MPI's messages, by who copied them."""
    reports = record.read(figures)
    return {name: sum(report["messages"][name]["bytes"] for report in reports) for name in record.MECHANISMS}


def counted(name: str) -> int:
    """A counter of the kernel module."""
    lines = (line.split() for line in COUNTERS.read_text().splitlines())
    return next(int(value) for key, value in lines if key == name)


def skip_without_threads(done: Finished) -> None:
    """Where messages.c was to send by many threads."""
    if "no MPI_THREAD_MULTIPLE" in done.stdout:
        pytest.skip("this MPI does not provide MPI_THREAD_MULTIPLE: no threads sent messages")


# Ranks, the longest message, what else goes on.
TRAFFIC: Mapping[str, tuple[int, int, list[str]]] = {
    "large": (2, 64 << 20, []),
    "many": (4, 1 << 20, []),
    "fork": (3, 4 << 20, ["fork"]),
    "threads": (2, 256 << 10, ["threads"]),
}
# The short form has every traffic the usual way, and every other way with one traffic.
SHORT = {("no-heap", "threads"), ("windows", "many"), ("container", "fork")}


@pytest.mark.parametrize(
    ("way", "traffic"),
    [
        longform.param(way, traffic, short=way == "heap" or (way, traffic) in SHORT, minutes=0.2)
        for way in ("heap", "no-heap", "windows", "container")
        for traffic in TRAFFIC
    ],
)
@pytest.mark.timeout(3600)
def test_messages(runner: Runner, programs: Programs, figures: Path, way: str, traffic: str) -> None:
    """Messages of all kinds between random ranks arrive as they were sent."""
    ranks, most, more = TRAFFIC[traffic]
    seed = random.randrange(1, 1 << 32)
    env = {"ONECOPY_STATS": f"{figures}/"}
    if way == "no-heap":
        env["ONECOPY_HEAP"] = "off"
    binary = programs.build("messages", [str(HERE / "messages.c")], "-pthread")
    rounds = max(1, ROUNDS // 8 if most > 4 << 20 else ROUNDS)
    argv = runner.mpirun_argv(
        ranks, binary, str(seed), str(rounds), str(most), *more, preload=WINDOWS if way == "windows" else True
    )
    if way == "container":
        argv.append("two-sided")
        deny = programs.build("deny", ["hazards/deny.c"], compiler="cc")
        argv = [str(deny), *argv]
    done = runner.run(*argv, env=env, timeout=280, check=False)
    assert done.returncode == 0, f"seed {seed}\n{done.stderr}"
    assert "all messages" in done.stdout, f"seed {seed}\n{done.stderr}"
    skip_without_threads(done)
    by = copied(figures)
    asks = way != "container" or runner.open_mpi() == 4  # Open MPI 5 does not, where the kernel would refuse
    assert (by["heap"] > 0) == (way != "no-heap" and asks)
    if ranks > machine.usable_cpus():
        assert not sum(report["helped"] for report in record.read(figures))


@pytest.mark.skipif(not MODULE.exists(), reason="the kernel module is not loaded")
def test_beside_the_module(runner: Runner, programs: Programs, figures: Path) -> None:
    """Where the module is loaded, and the ranks have made regions, messages are what they are without: by a pointer in
    the heap, by the system call elsewhere. tests/kmod runs this in a guest."""
    seed = random.randrange(1, 1 << 32)
    binary = programs.build("messages", [str(HERE / "messages.c")], "-pthread")
    before = counted("regions_created")
    done = runner.mpirun(
        2, binary, str(seed), "30", str(1 << 20), env={"ONECOPY_STATS": f"{figures}/"}, timeout=280, check=False
    )
    assert "all messages" in done.stdout, f"seed {seed}\n{done.stderr}"
    assert counted("regions_created") > before
    by = copied(figures)
    assert by["heap"] > 0
    assert by["cma"] > 0
    assert by["map"] == by["kcopy"] == by["staged"] == 0


@pytest.mark.parametrize("windows", ["", pytest.param("_windows", marks=pytest.mark.long(0.5))])
def test_copies_of_both_ends(runner: Runner, windows: str) -> None:
    """Random ones, a peer that does not help, one that dies over it, one that dies asking."""
    runner.run(runner.build / "tests" / f"test_help{windows}", timeout=240)


def test_waiting_side_helps(runner: Runner, programs: Programs, figures: Path) -> None:
    """In Open MPI's progress engine, where no rank shares its core. It may be late for every message of a short run."""
    if machine.usable_cpus() < 2:
        pytest.skip("two ranks share the one core")
    binary = programs.build("messages", [str(HERE / "messages.c")], "-pthread")
    for seed in range(1, 11):
        runner.mpirun(2, binary, str(seed), "10", str(8 << 20), env={"ONECOPY_STATS": f"{figures}/"}, timeout=120)
        if any(report["helped"] for report in record.read(figures)):
            return
    pytest.fail("no rank helped another")


def test_below_ucx(runner: Runner, programs: Programs, figures: Path) -> None:
    """UCX ends long messages by the same call."""
    env = {
        "ONECOPY_STATS": f"{figures}/",
        "OMPI_MCA_pml": "ucx",
        # Without these Open MPI takes UCX for InfiniBand alone.
        "OMPI_MCA_opal_common_ucx_tls": "any",
        "OMPI_MCA_opal_common_ucx_devices": "any",
        "UCX_TLS": "self,sysv,cma",
    }
    binary = programs.build("messages", [str(HERE / "messages.c")], "-pthread")
    seed = random.randrange(1, 1 << 32)
    done = runner.mpirun(2, binary, str(seed), str(ROUNDS), str(1 << 20), "two-sided", env=env, check=False)
    if "none found" in done.stderr:
        pytest.skip("this Open MPI has no UCX")
    assert "all messages" in done.stdout, f"seed {seed}\n{done.stderr}"
    assert copied(figures)["heap"] > 0
