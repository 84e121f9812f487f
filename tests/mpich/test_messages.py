# SPDX-License-Identifier: BSD-3-Clause
"""Messages of MPIs of the MPICH ABI: those that end by process_vm_readv are copied by a pointer, none is changed."""

from __future__ import annotations

import random

import longform
import pytest
from mpi.programs import HERE, Programs
from onecopy import machine, record
from runner import Runner

ROUNDS = longform.rounds("ONECOPY_TEST_ROUNDS", 20, 300)


@pytest.mark.parametrize("more", [[], ["fork"], ["threads"]], ids=["large", "fork", "threads"])
def test_messages(runner: Runner, programs: Programs, more: list[str]) -> None:
    seed = random.randrange(1, 1 << 32)
    figures = runner.cwd / "figures"
    figures.mkdir()
    most = 1 << 18 if "threads" in more else 4 << 20
    binary = programs.build("messages", [str(HERE.parent / "procvm" / "messages.c")], "-pthread")
    env = {"ONECOPY_STATS": f"{figures}/"}
    if runner.mpi.name == "debian":  # MPICH 4.0 over UCX loses some of what is put and got, by itself
        more = [*more, "two-sided"]
    done = runner.mpirun(2, binary, str(seed), str(ROUNDS), str(most), *more, env=env, timeout=120, check=False)
    assert "all messages" in done.stdout, f"seed {seed}\n{done.stderr}"
    assert sum(report["messages"]["heap"]["bytes"] for report in record.read(figures)) > 0


def test_waiting_side_helps(runner: Runner, programs: Programs) -> None:
    """In the progress engine of MPICH since 4.3, where no rank shares its core. It may be late for every message of a
    short run."""
    if runner.mpi.name != "mpich":
        pytest.skip("this MPI calls nobody while it waits")
    if machine.usable_cpus() < 2:
        pytest.skip("two ranks share the one core")
    figures = runner.cwd / "figures"
    figures.mkdir()
    binary = programs.build("messages", [str(HERE.parent / "procvm" / "messages.c")], "-pthread")
    for seed in range(1, 11):
        runner.mpirun(2, binary, str(seed), "10", str(8 << 20), env={"ONECOPY_STATS": f"{figures}/"}, timeout=120)
        if any(report["helped"] for report in record.read(figures)):
            return
    pytest.fail("no rank helped another")


def test_container(runner: Runner, programs: Programs) -> None:
    """Where the kernel refuses its calls MPICH 5 ends a program at the first long message; not between blocks of the
    heap. Others do not ask it then."""
    seed = random.randrange(1, 1 << 32)
    figures = runner.cwd / "figures"
    figures.mkdir()
    binary = programs.build("messages", [str(HERE.parent / "procvm" / "messages.c")], "-pthread")
    deny = programs.build("deny", ["hazards/deny.c"], compiler="cc")
    argv = runner.mpirun_argv(2, binary, str(seed), str(ROUNDS), str(4 << 20), "heap", "two-sided")
    # Without CMA UCX takes TCP for long messages, with which MPICH 4.0 may never end, by itself.
    env = {"ONECOPY_STATS": f"{figures}/", "UCX_TLS": "posix,sysv,self"}
    done = runner.run(deny, *argv, env=env, timeout=120, check=False)
    assert "all messages" in done.stdout, f"seed {seed}\n{done.stderr}"
    if runner.mpi.name == "mpich":
        assert sum(report["messages"]["heap"]["bytes"] for report in record.read(figures)) > 0
