# SPDX-License-Identifier: BSD-3-Clause
"""What tests/mpi has for Open MPI, over MPIs of the MPICH ABI: random collectives with and without onecopy."""

from __future__ import annotations

import re

import hypothesis
import longform
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from job import JobError
from mpi.programs import Programs
from mpi.script import Script, scripts
from mpi.test_differential import SEED, THREADS, compare, digests, has_used_up
from onecopy import machine
from runner import Runner

EXAMPLES = longform.rounds("ONECOPY_TEST_EXAMPLES", 2, 16)
# An MPICH whose ranks share cores takes milliseconds for a message.
RANKS = max(2, min(8, machine.usable_cpus()))


CHURN = Script(RANKS, ("init single", "churn 300"))


def ends_alone(runner: Runner, programs: Programs, script: Script) -> bool:
    """Whether the MPI by itself gets through: Intel MPI crashes now and then."""
    try:
        digests(runner, programs, script, "alone", None)
    except JobError as trouble:
        print(f"{runner.mpi.name} alone: {trouble}")
        return False
    return True


def without_in_place(lines: list[str], names: str, kind: str) -> list[str]:
    """The lines but for calls of these names in place, with elements of this kind."""
    dropped = re.compile(rf"^call {names} \S+ \S+ \S+ {kind} \S+ 1 ")
    return [line for line in lines if not dropped.search(line)]


@pytest.mark.timeout(1200 + 120 * EXAMPLES)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@hypothesis.seed(SEED)
@given(script=scripts(max_ranks=RANKS))
def test_same_bytes(runner: Runner, programs: Programs, script: Script) -> None:
    if has_used_up(runner):
        return
    lines = list(script.lines)
    if runner.mpi.name.startswith("intelmpi"):  # alone it crashes in alltoallv and alltoallw in place
        lines = without_in_place(lines, "alltoall[vw]", r"\S+")
    if runner.mpi.name == "debian":
        # MPICH 4.0 ends the job where a rank has such a block for itself, of a type with a gap, and no other.
        lines = without_in_place(lines, "alltoall[vw]", r"(short|long|double|ldouble)_int")
        # It crashes at a root other than 0 in a reduction of such a type, and those by a user's operator are its own.
        lines = [line for line in lines if not re.search(r"^call reduce .* lower 1 ", line)]
        # Over UCX it does where process_vm_readv refuses a buffer.
        lines = [re.sub(r"\b(readonly|writeonly)\b", "private", line) for line in lines]
    # Alone MPICH 4.0 crashes there, too, and both end calls with an error where types differ: all is served but what
    # never is.
    script = Script(script.ranks, tuple(lines))
    alone = runner.mpi.name.startswith("intelmpi") and ends_alone(runner, programs, script)
    compare(runner, programs, script, alone)


@pytest.mark.parametrize("script", [CHURN, THREADS], ids=["communicators", "threads"])
def test_many(runner: Runner, programs: Programs, script: Script) -> None:
    digests(runner, programs, script, "many", {"ONECOPY_MIN": "1"}, least=1)
