# SPDX-License-Identifier: BSD-3-Clause
"""What tests/mpi has for the MPI in PATH, over the others: random collectives with and without onecopy."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import hypothesis
import longform
import mpis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from job import JobError
from mpi.programs import Programs
from mpi.script import Script, scripts
from mpi.test_differential import CHURN, MIXED, SEED, SETTINGS, THREADS, compare, digests, expect_same, has_used_up
from onecopy import machine
from runner import OPEN_MPI, Mpi, Runner

EXAMPLES = longform.rounds("ONECOPY_TEST_EXAMPLES", 2, 16)
AS_ALONE = longform.rounds("ONECOPY_TEST_EXAMPLES", 1, 16)


def most_ranks(mpi: Mpi) -> int:
    """An MPICH whose ranks share cores takes milliseconds for a message."""
    return 8 if mpi.abi == OPEN_MPI.abi else max(2, min(8, machine.usable_cpus()))


def without_in_place(lines: list[str], names: str, kind: str) -> list[str]:
    """The lines but for calls of these names in place, with elements of this kind."""
    dropped = re.compile(rf"^call {names} \S+ \S+ \S+ {kind} \S+ 1 ")
    return [line for line in lines if not dropped.search(line)]


def of_one_type(line: str) -> str:
    """The call with the same types at all ranks."""
    words = line.split()
    if words[0] == "call":
        words[10] = words[10].split(",")[0]
    return " ".join(words)


def gets_through(mpi: Mpi, script: Script) -> Script:
    """As many ranks and those calls of it that the MPI gets through where all is served but what never is."""
    lines = list(script.lines)
    if mpi.name in mpis.INTEL:  # alone it crashes in alltoallv and alltoallw in place
        lines = without_in_place(lines, "alltoall[vw]", r"\S+")
    if mpi.name == mpis.DEBIAN:
        # MPICH 4.0 ends the job where a rank has such a block for itself, of a type with a gap, and no other.
        lines = without_in_place(lines, "alltoall[vw]", r"(short|long|double|ldouble)_int")
        # It crashes in a reduction in place by a user's operator that commutes, at a root other than 0.
        lines = [line for line in lines if not re.search(r"^call reduce .* (lower|add) 1 ", line)]
        # Over UCX it does where process_vm_readv refuses a buffer.
        lines = [re.sub(r"\b(readonly|writeonly)\b", "private", line) for line in lines]
    return Script(min(script.ranks, most_ranks(mpi)), tuple(lines))


def gets_through_alone(mpi: Mpi, script: Script) -> Script:
    """What it gets through by itself: MPICH ends calls with an error where types differ."""
    script = gets_through(mpi, script)
    if mpi.abi == OPEN_MPI.abi:
        return script
    return replace(script, lines=tuple(map(of_one_type, script.lines)))


def drawn(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test of so many random scripts."""
    limits = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    return lambda test: limits(hypothesis.seed(SEED)(given(script=scripts())(test)))


@pytest.mark.timeout(1200 + 120 * EXAMPLES)
@drawn(EXAMPLES)
def test_same_bytes(runner: Runner, programs: Programs, script: Script) -> None:
    """Under each of the settings that serve all."""
    if not has_used_up(runner):
        compare(runner, programs, gets_through(runner.mpi, script), alone=False)


def alone(runner: Runner, programs: Programs, script: Script) -> list[list[str]] | None:
    """What each rank received of the MPI by itself; nothing where that does not get through, as some now and then."""
    try:
        return digests(runner, programs, script, "alone", None)
    except JobError as trouble:
        print(f"{runner.mpi.name} alone: {trouble}")
        return None


@pytest.mark.timeout(1200 + 120 * AS_ALONE)
def test_as_alone(runner: Runner, programs: Programs) -> None:
    """By default, and with all served: what the MPI by itself makes of it."""
    ended: list[bool] = []

    @drawn(AS_ALONE)
    def compare_one(script: Script) -> None:
        if has_used_up(runner):
            return
        script = gets_through_alone(runner.mpi, script)
        first = alone(runner, programs, script)
        ended.append(first is not None)
        if first is not None:
            expect_same(runner, programs, script, first, {name: SETTINGS[name] for name in ("default", "all")})

    compare_one()
    print(f"{sum(ended)} of {len(ended)} scripts")
    if not any(ended):
        pytest.skip(f"{runner.mpi.name} alone gets through none of {len(ended)} scripts")


@pytest.mark.parametrize("script", [CHURN, THREADS, MIXED], ids=["communicators", "threads", "mixed types"])
def test_many(runner: Runner, programs: Programs, script: Script) -> None:
    if script is MIXED and runner.mpi.abi != OPEN_MPI.abi:
        pytest.skip("MPICH ends an allgatherv that is left to it with an error where types differ")
    if script is CHURN:
        script = replace(script, ranks=min(script.ranks, most_ranks(runner.mpi)))
    digests(runner, programs, script, "many", {"ONECOPY_MIN": "1"}, least=1)
