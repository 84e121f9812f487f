# SPDX-License-Identifier: BSD-3-Clause
"""What containers refuse: system calls, room in /dev/shm."""

from __future__ import annotations

import subprocess

import pytest
from mpi.programs import MakeProgram, Programs
from mpi.stats import served
from runner import NO_SINGLE_COPY, Runner


def may_unshare() -> bool:
    try:
        return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def test_container(runner: Runner, programs: Programs, program: MakeProgram) -> None:
    """Neither ptrace nor process_vm_*, and 1 MB of /dev/shm: served all the same."""
    if not may_unshare():
        pytest.skip("no mount namespaces: needs CAP_SYS_ADMIN")
    deny = programs.build("deny", ["hazards/deny.c"], compiler="cc")
    path = runner.cwd / "stats"
    # The MPI's own segments do not fit into 1 MB: users in such containers point it elsewhere.
    env = {"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path), "OMPI_MCA_btl_vader_backing_directory": str(runner.cwd)}
    script = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$@"'
    for name in ("overwrite", "forks"):
        argv = runner.mpirun_argv(4, program(name))
        runner.run("unshare", "-m", "sh", "-c", script, "sh", deny, *argv, env=env)
    assert served(path, "bcast") == [60] * 4 + [24] * 4 or sorted(served(path, "bcast")) == [24] * 4 + [60] * 4


def test_filter_that_kills(runner: Runner, program: MakeProgram, programs: Programs) -> None:
    """Whoever calls process_vm_*, where the program does not want to know what becomes of its children."""
    deny = programs.build("deny", ["hazards/deny.c"], compiler="cc")
    path = runner.cwd / "stats"
    env = {**NO_SINGLE_COPY, "ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)}
    if runner.open_mpi() >= 6:
        pytest.skip("Open MPI 6 itself calls process_vm_*")
    runner.mpirun(3, deny, "--kill", program("overwrite"), env=env)
    assert served(path, "bcast") == [60] * 3
