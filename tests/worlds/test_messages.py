# SPDX-License-Identifier: BSD-3-Clause
"""Calls by which messages of MPIs that are not in PATH end, as those of the one that is (tests/procvm); and messages of
processes that were spawned."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import longform
import mpis
import pytest
from job import Finished, mapped_shm_files, shm_files, wait_until
from mpi.programs import Programs
from onecopy import record
from runner import Runner

PROCVM = Path(__file__).resolve().parent.parent / "procvm"
CALLS = longform.rounds("ONECOPY_TEST_CALLS", 300, 5000)
ALONE = 40
KILLS = longform.rounds("ONECOPY_TEST_KILLS", 2, 50)


@pytest.fixture
def figures(runner: Runner) -> Path:
    """Where the ranks keep their records."""
    directory = runner.cwd / "figures"
    directory.mkdir()
    return directory


def by_pointer(figures: Path) -> int:
    return sum(report["messages"]["heap"]["bytes"] for report in record.read(figures))


def run(
    runner: Runner, program: Path, *words: str, env: Mapping[str, str] | None = None, preload: bool = True
) -> Finished:
    """With two ranks. MPICH 5 leaves a file of its own in /dev/shm now and then, also by itself, and others do when
    they are killed: none is onecopy's, and no process stays."""
    before = shm_files()
    job = runner.start_mpi(2, program, *words, env=env, preload=preload)
    done = job.wait(60, leftovers=False)
    assert wait_until(lambda: not job.processes(), 10), done.stderr
    left = shm_files() - before - mapped_shm_files()
    for path in left:
        path.unlink(missing_ok=True)
    assert not {path for path in left if "onecopy" in path.name}
    return done


@pytest.mark.parametrize("mpi", mpis.NAMES, indirect=True)
def test_same_as_the_system_call(runner: Runner, programs: Programs, figures: Path) -> None:
    """Whatever MPI has started the ranks, and whatever it exports itself."""
    seed = random.randrange(1, 1 << 32)
    binary = programs.build("same", [str(PROCVM / "same.c")], "-pthread")
    done = run(runner, binary, str(seed), str(CALLS), env={"ONECOPY_STATS": f"{figures}/"})
    if "no system call" in done.stdout:
        pytest.skip("the system call is refused here")
    assert done.returncode == 0, f"seed {seed}\n{done.stderr}"
    assert "the same" in done.stdout, f"seed {seed}\n{done.stderr}"
    (one,) = [report for report in record.read(figures) if report["world_rank"] == 0]
    assert one["messages"]["heap"]["calls"] > CALLS
    assert one["messages"]["cma"]["calls"] > 0


@pytest.mark.parametrize("mpi", mpis.NAMES, indirect=True)
def test_killed_among_messages(runner: Runner, programs: Programs) -> None:
    """The job ends as it does without onecopy. (One time in six Debian 13's Hydra says that all was well.)"""
    binary = programs.build("messages", [str(PROCVM / "messages.c")], "-pthread")

    def ends_well(seed: int) -> bool:
        argv = (str(seed), "1000000", str(4 << 20), "killed", "two-sided")
        return run(runner, binary, *argv, preload=False).returncode == 0

    for _ in range(KILLS):
        seed = random.randrange(1, 1 << 32)
        done = run(runner, binary, str(seed), "1000000", str(4 << 20), "killed", "two-sided")
        assert done.returncode != 0 or any(ends_well(seed) for _ in range(ALONE)), f"seed {seed}"
        assert "wrong data" not in done.stderr, f"seed {seed}\n{done.stderr}"


@pytest.mark.parametrize("where", ["across", "within"])
def test_spawned(runner: Runner, programs: Programs, figures: Path, where: str) -> None:
    """Between a program and what it has started, messages are the MPI's; those of a world's ranks, where they find each
    other, are a copy each."""
    spawns = programs.build("spawns", [str(PROCVM / "spawns.c")])
    if runner.mpirun(2, spawns, where, preload=False, check=False).returncode:
        pytest.skip("the MPI alone cannot run this")
    runner.mpirun(2, spawns, where, env={"ONECOPY_STATS": f"{figures}/"})
    reports = record.read(figures)
    # Open MPI 5 does not preload what is spawned, and under Hydra such ranks do not find each other.
    joined = [report for report in reports if not report["idle"]]
    assert len(joined) >= 2
    sent = 8 * (1 << 20) if where == "within" else 0
    assert by_pointer(figures) == sent * len(joined)
