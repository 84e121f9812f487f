# SPDX-License-Identifier: BSD-3-Clause
"""Messages of each MPI: those that end by process_vm_readv are copied by a pointer, none is changed."""

from __future__ import annotations

import random

import longform
import pytest
from mpi.programs import HERE, Programs
from onecopy import record
from procvm.test_procvm import skip_without_threads
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
    skip_without_threads(done)
    # Of Intel MPI's only what is put and got may come here.
    assert any(
        report["messages"]["heap"]["bytes"] + report["transfers"]["served"]["bytes"] for report in record.read(figures)
    )


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
