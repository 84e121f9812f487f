# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are in no job, started one by one: what UCX and libfabric copy between them is copied by a pointer."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import sys
import time
from pathlib import Path

import pytest
from mpi.programs import Programs
from mpi.stats import served
from onecopy.mpi import linked_libraries
from runner import ROOT, Runner

HERE = Path(__file__).resolve().parent
FOR_ROOT = ("users", "nobody", "inside", "namespaces", "reused")
COPIES = re.compile(r"messages: (\d+) copies by a pointer \((\d+) bytes\), (\d+) by the kernel")


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    programs = Programs(tmp_path_factory.mktemp("lone"))
    return programs.build("lone", [str(HERE / "lone.c")], "-pthread", "-rdynamic", compiler="cc")


def by_pointer(said: str) -> int:
    return sum(int(calls) for calls, _, _ in COPIES.findall(said))


@pytest.mark.parametrize(
    "what",
    ["memories", "lists", "deaths", "exec", "children", "closed", "threads", *FOR_ROOT],
)
def test_same_as_the_system_call(runner: Runner, lone: Path, what: str) -> None:
    """Peers of all sorts, found and lost."""
    if what in FOR_ROOT and os.geteuid():
        pytest.skip("needs root, to become another user or to make a PID namespace")
    env = {"LD_PRELOAD": str(runner.library()), "ONECOPY_VERBOSE": "1"}
    done = runner.run(lone, what, env=env)
    if "no /proc of its own here" in done.stdout:
        pytest.skip("nothing can be mounted here, not even in a namespace")
    wanted = int(done.stdout.split()[-1])
    assert by_pointer(done.stderr) == wanted if wanted else by_pointer(done.stderr) > 300


@pytest.mark.parametrize("variable", ["ONECOPY", "ONECOPY_HEAP", "ONECOPY_MESSAGES"])
def test_off(runner: Runner, lone: Path, variable: str) -> None:
    env = {"LD_PRELOAD": str(runner.library()), "ONECOPY_VERBOSE": "1", variable: "off"}
    assert not by_pointer(runner.run(lone, "memories", env=env).stderr)


def test_filtered(runner: Runner, programs_deny: Path, lone: Path) -> None:
    """Behind a filter of system calls nothing is looked for: who comes out of line there may be killed."""
    env = {"LD_PRELOAD": str(runner.library()), "ONECOPY_VERBOSE": "1"}
    done = runner.run(programs_deny, lone, "memories", env=env)
    assert not by_pointer(done.stderr)


@pytest.fixture(scope="module")
def programs_deny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Programs(tmp_path_factory.mktemp("deny")).build("deny", ["hazards/deny.c"], compiler="cc")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_for_server(port: int) -> None:
    wanted = f":{port:04X} "
    for _ in range(200):
        listening = [line for line in Path("/proc/net/tcp").read_text().splitlines() if line.split()[3] == "0A"]
        if any(wanted in line for line in listening):
            return
        time.sleep(0.05)
    pytest.fail("the server does not listen")


def run_pair(runner: Runner, port: int, server: list[str], client: list[str], env: dict[str, str]) -> str:
    """Two programs under `onecopy run`, of which the first waits for the second: what both said on stderr."""
    env = {**env, "ONECOPY_BUILD": str(runner.build)}
    start = [str(ROOT / "onecopy"), "run", "--verbose", "--"]
    first = runner.start(*start, *server, env=env)
    wait_for_server(port)
    second = runner.run(*start, *client, env=env, timeout=60)
    return first.expect_success(first.wait(60)).stderr + second.stderr


def test_libfabric(runner: Runner) -> None:
    """Its provider shm, whose data the program checks."""
    if platform.machine() != "x86_64":
        pytest.skip("libfabric calls by number, which is answered on x86-64")
    if not shutil.which("fi_pingpong"):
        pytest.skip("fi_pingpong is missing: run `make deps`")
    port = free_port()
    pingpong = ["fi_pingpong", "-p", "shm", "-e", "rdm", "-m", "tagged", "-c", "-S", "262144", "-I", "50"]
    said = run_pair(runner, port, [*pingpong, "-B", str(port)], [*pingpong, "-P", str(port), "127.0.0.1"], {})
    assert by_pointer(said) >= 100


@pytest.mark.parametrize(
    "what", ["-t tag_bw", "-d memory -x cma -t put_bw -D zcopy", "-d memory -x cma -t get -D zcopy"]
)
def test_ucx(runner: Runner, what: str) -> None:
    """Its transport cma. The program takes its buffers from UCX, which has to take them from malloc, as others do."""
    program = shutil.which("ucx_perftest")
    if not program:
        pytest.skip("ucx_perftest is missing: run `make deps`")
    if any(name.startswith("libmpi") for name, _ in linked_libraries(Path(program))):
        pytest.skip("this ucx_perftest is an MPI program, which starts no server")
    port = free_port()
    env = {"UCX_TLS": "self,sysv,cma", "UCX_ALLOC_PRIO": "heap", "UCX_CMA_ALLOC": "heap"}
    perftest = ["ucx_perftest", "-p", str(port), *what.split(), "-s", "262144", "-n", "200", "-w", "10"]
    said = run_pair(runner, port, perftest, [*perftest, "127.0.0.1"], env)
    assert by_pointer(said) >= 200


def test_becomes_a_rank(runner: Runner, tmp_path: Path) -> None:
    """A program with UCX that loads an MPI later: from MPI_Init on it is in its job."""
    programs = Programs(tmp_path)
    ucx = programs.build("libucx.so", [str(HERE / "ucx.c")], "-shared", "-fPIC", compiler="cc")
    plugin = programs.build("plugin.so", ["hazards/plugin.c"], "-shared", "-fPIC")
    interpreter = HERE.parent / "mpi" / "hazards" / "interpreter.py"
    path = tmp_path / "stats"
    preload = f"LD_PRELOAD={runner.library()}:{ucx}"
    env = {"ONECOPY_MIN": "1", "ONECOPY_STATS": str(path)}
    runner.mpirun(2, "env", preload, sys.executable, interpreter, plugin, env=env, preload=False)
    assert served(path, "bcast") == [20, 20]
