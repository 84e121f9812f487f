# SPDX-License-Identifier: BSD-3-Clause
"""Random collectives with and without onecopy: the same bytes at every rank.

The driver checks each call against what the standard says; here the digests of what every rank received are compared
with those of the MPI alone: some hundred calls, thousands in the long form. ONECOPY_TEST_EXAMPLES=n runs n scripts
instead, ONECOPY_TEST_SEED repeats a run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import hypothesis
import longform
import mpis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from mpi.programs import MakeProgram, Programs
from mpi.script import SIZES, Script, scripts
from mpi.stats import moved, stats
from runner import NO_SINGLE_COPY, OPEN_MPI, Mpi, Runner

EXAMPLES = longform.rounds("ONECOPY_TEST_EXAMPLES", 2, 24)
SEED = int(os.environ["ONECOPY_TEST_SEED"])

# With ONECOPY_MIN=1 every call with data is served, so sums of floats must be folded in rank order.
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "all": {"ONECOPY_MIN": "1"},
    "heap off": {"ONECOPY_MIN": "1", "ONECOPY_HEAP": "off"},
    "cma": {"ONECOPY_MIN": "1", "ONECOPY_MECH": "cma"},
    "staged": {"ONECOPY_MIN": "1", "ONECOPY_MECH": "staged"},
    "windows": {"ONECOPY_MIN": "1", "ONECOPY_MECH": "heap,staged", "ONECOPY_TEST_WINDOWS": str(64 << 20)},
    "proc": {"ONECOPY_MIN": "1", "ONECOPY_MECH": "proc"},
}
LIBRARIES = {
    # Peers' arenas in windows of 2 MiB, of which there is room for a few: tests/conform/small_windows.c.
    "windows": "tests/libonecopy-windows-{abi}.so",
    # One mechanism more: conform/access/mech_proc.c.
    "proc": "tests/libonecopy-proc-{abi}.so",
}
if Path("/dev/onecopy").exists():
    SETTINGS = {**SETTINGS, "module": {"ONECOPY_MIN": "1", "ONECOPY_MECH": "map,kcopy"}}

# Those of them that the short form of a test has where each takes long: where most is served, by most of the code.
WHERE_MOST = ("all", "windows")

# MPIs' own single copy hangs (Open MPI) or fails (MPICH) on buffers that process_vm_readv() refuses; and without it
# messages need their sender's progress, which is what a rank inside one of our collectives must not withhold.
MPI_ENV = NO_SINGLE_COPY

# Of the driver's communicators, those that have all ranks.
WHOLE = (0, 1, 3)
# Lines that use communicators of all ranks for four such calls each, besides others: how many of these.
USES: Mapping[str, Callable[..., int]] = {
    "leak": lambda: 4,
    "churn": lambda n: 4 * ((n + 2) // 3),
    "threads": lambda threads, turns: 4 * threads * turns,
}
EQUAL_BLOCKS = ("bcast", "scatter", "gather", "allgather", "alltoall")


def shortest_served(mpi: Mpi, call: str) -> int:
    """The shortest block that is served unless ONECOPY_MIN says another: docs/tuning.md, "From which size on"."""
    rooted = call == "bcast" and mpi.abi != OPEN_MPI.abi
    return 16 << 10 if rooted or mpi.name in mpis.INTEL else 4 << 10


def served_at_least(mpi: Mpi, script: Script, env: Mapping[str, str]) -> int:
    """Calls that every rank must have been served: those on all ranks whose blocks are equal. There may be more."""
    chosen = env.get("ONECOPY_MIN")
    wanted = 0 if chosen else 256 << 10  # bytes that a communicator must have been asked for
    asked = dict.fromkeys(WHOLE, 0)
    calls = 0
    for line in script.lines:
        fields = line.split()
        if fields[0] in USES and not wanted:
            calls += USES[fields[0]](*map(int, fields[1:]))
        if fields[0] != "call" or fields[1] not in EQUAL_BLOCKS or int(fields[2]) not in WHOLE:
            continue
        comm, block = int(fields[2]), int(fields[4]) * SIZES[fields[5]]
        if block >= (int(chosen) if chosen else shortest_served(mpi, fields[1])):
            asked[comm] += block
            calls += asked[comm] >= wanted
    return calls


def digests(
    runner: Runner,
    programs: Programs,
    script: Script,
    name: str,
    env: Mapping[str, str] | None,
    least: int = 0,
) -> list[list[str]]:
    """What each rank received, a line a call; without onecopy if env is None. With it, at least so many calls are
    served on each rank, and as many as the script says."""
    source = runner.cwd / "script"
    ordered = ["ordered"] if env and "ONECOPY_MIN" in env else []
    # Calls of several threads that are left to the MPI hang in its own message layer now and then.
    lines = [line if ordered or not line.startswith("threads") else "wait" for line in script.lines]
    source.write_text("\n".join(lines) + "\n")
    out = runner.cwd / name.replace(" ", "-")
    report = Path(f"{out}.stats")
    report.unlink(missing_ok=True)  # of the example before
    runner.mpirun(
        script.ranks,
        programs.driver(),
        source,
        out,
        *ordered,
        env={**MPI_ENV, "ONECOPY_STATS": str(report), **(env or {})},
        preload=LIBRARIES.get(name, True) if env is not None else False,
        timeout=240,  # the driver works out every element of every rank, on a machine that may be busy
    )
    if env is not None:
        least = max(least, served_at_least(runner.mpi, script, env))
        calls = [sum(call["served"] for call in line["calls"].values()) for line in stats(report)]
        assert len(calls) == script.ranks, name
        assert min(calls) >= least, f"{name}: {calls} calls were served, not {least}\n{script.text()}"
        assert not least or sum(moved(report).values()) > 0, name
    return [Path(f"{out}.{rank}").read_text().splitlines() for rank in range(script.ranks)]


@pytest.mark.timeout(1200 + 60 * EXAMPLES)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    # Without shrinking: each attempt is six MPI jobs. The seed repeats the failure, the script is in the message.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@hypothesis.seed(SEED)
@given(script=scripts())
def test_same_bytes(runner: Runner, programs: Programs, script: Script) -> None:
    if has_used_up(runner):
        return
    compare(runner, programs, script)


def has_used_up(runner: Runner) -> bool:
    """Whether a slow machine has had time enough for random scripts: those it has run have their verdict."""
    return time.monotonic() - runner.since > 40 * EXAMPLES


def compare(runner: Runner, programs: Programs, script: Script, alone: bool = True) -> None:
    """The script with the MPI alone, and under each of the settings for which the build has a library. Not `alone`:
    under those that serve all alone."""
    chosen = {name: env for name, env in SETTINGS.items() if alone or "ONECOPY_MIN" in env}
    first = digests(runner, programs, script, "alone", None if alone else chosen["all"])
    expect_same(runner, programs, script, first, chosen)


def expect_same(
    runner: Runner, programs: Programs, script: Script, first: list[list[str]], chosen: Mapping[str, Mapping[str, str]]
) -> None:
    """That under each of the settings every rank receives what it did first."""
    print(f"ONECOPY_TEST_SEED={SEED}, {script.ranks} ranks, {len(script.lines)} lines")
    for name, env in chosen.items():
        library = runner.library(LIBRARIES.get(name, True))
        if not library or not library.exists():
            continue
        ours = digests(runner, programs, script, name, env)
        for rank in range(script.ranks):
            for mine, theirs in zip(ours[rank], first[rank], strict=True):
                number = int(mine.split()[0])
                assert mine == theirs, f"{name}, rank {rank}: {script.lines[number - 1]}\n{script.text()}"


CHURN = Script(4, ("init single", "churn 300"))
THREADS = Script(3, ("init multiple", "threads 4 40"))
# What the MPI alone cannot do (see script.py): types that differ from rank to rank in an allgatherv.
MIXED = Script(
    4,
    (
        "init single",
        *(
            f"call allgatherv 0 0 {count} double sum {turn % 2} 0 {kinds} plain,vector,indexed,struct 0 {count}"
            for turn, count in enumerate((12, 1020, 4092, 65532))
            for kinds in ("heap", "heap,stack,static")
        ),
    ),
)


@pytest.mark.parametrize("script", [CHURN, THREADS, MIXED], ids=["communicators", "threads", "mixed types"])
def test_many(runner: Runner, programs: Programs, script: Script) -> None:
    """Communicators created and freed by the hundred, one a thread; types that differ. The driver checks the bytes."""
    digests(runner, programs, script, "many", {"ONECOPY_MIN": "1"}, least=1)


@pytest.mark.parametrize(
    ("ranks", "name"),
    [
        longform.param(ranks, name, short=ranks == 3 or name in WHERE_MOST, minutes=0.1)
        for ranks in (3, 7)
        for name in SETTINGS
    ],
)
def test_blocks(runner: Runner, program: MakeProgram, ranks: int, name: str) -> None:
    """Thousands of v-collectives, blocks large, small and none drawn pair by pair: ranks that have no large one run
    ahead by hundreds of calls."""
    print(f"ONECOPY_TEST_SEED={SEED}")
    path = runner.cwd / "stats"
    # Small blocks are small under all settings.
    env = {**SETTINGS[name], "ONECOPY_MIN": "2000", "ONECOPY_STATS": str(path)}
    runner.mpirun(ranks, program("blocks"), str(SEED), "6000", env=env, preload=LIBRARIES.get(name, True), timeout=120)
    for line in stats(path):
        for call in ("scatterv", "gatherv", "alltoallv", "alltoallw"):
            assert line["calls"][call]["served"] > 20
            assert line["calls"][call]["passed"] > 20
