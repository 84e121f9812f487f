# SPDX-License-Identifier: BSD-3-Clause
"""Messages where ranks do not see each other as they mostly do: namespaces, no room in /dev/shm, peers that die."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import longform
import pytest
from mpi.programs import Programs
from onecopy import record
from runner import NO_SINGLE_COPY, Runner

HERE = Path(__file__).resolve().parent
ROUNDS = longform.rounds("ONECOPY_TEST_ROUNDS", 30, 300)
KILLS = longform.rounds("ONECOPY_TEST_KILLS", 4, 100)

# Ranks whose PIDs differ, each in its own namespace, as with a container a rank.
OWN_PIDS = """i=0; while [ $i -le $OMPI_COMM_WORLD_RANK ]; do /bin/true; i=$((i+1)); done; "$@"; exit $?"""


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Programs(tmp_path_factory.mktemp("hosts")).build("messages", [str(HERE / "messages.c")], "-pthread")


def may(*options: str) -> bool:
    try:
        return subprocess.run(["unshare", *options, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def by_pointer(figures: Path) -> int:
    return sum(report["messages"]["heap"]["bytes"] for report in record.read(figures))


@pytest.mark.parametrize("options", [["--user", "--map-root-user"], []], ids=["user", "pid"])
def test_pid_namespaces(runner: Runner, messages: Path, options: list[str]) -> None:
    """A PID means another process to each rank: the system answers as it always did, and what is put or got would be
    tried again for ever. With user namespaces, too, Open MPI 4.1 finds out that it must not ask after it has chosen
    how to send, and of some messages loses the end: it is told."""
    options = [*options, "--pid", "--fork"]
    if not may(*options):
        pytest.skip(f"unshare {' '.join(options)} is not allowed here")
    figures = runner.cwd / "figures"
    figures.mkdir()
    seed = random.randrange(1, 1 << 32)
    told = NO_SINGLE_COPY if "--user" in options else {}
    sized = [str(seed), str(ROUNDS // 3), str(1 << 20)]
    command = ["unshare", *options, "sh", "-c", OWN_PIDS, "sh", str(messages), *sized, "two-sided"]
    done = runner.mpirun(2, *command, env={**told, "ONECOPY_STATS": f"{figures}/"}, check=False)
    assert "all messages" in done.stdout, f"seed {seed}\n{done.stderr}"
    assert len(record.read(figures)) == 2
    assert not by_pointer(figures)


@pytest.mark.parametrize(
    "turns", [longform.param(3, short=True, minutes=0.1), longform.param(40, short=False, minutes=0.5)]
)
def test_pid_of_a_thread(runner: Runner, messages: Path, turns: int) -> None:
    """A rank's PID in its namespace is a thread's of its peer in the peer's: without huge pages nothing is started
    before that thread. Whoever asks the kernel gets a copy of its own memory; the MPI is told that there is nobody."""
    options = ["--pid", "--fork"]
    if not may(*options):
        pytest.skip("unshare --pid --fork is not allowed here")
    for _ in range(turns):
        seed = random.randrange(1, 1 << 32)
        command = ["unshare", *options, "sh", "-c", OWN_PIDS, "sh", str(messages), str(seed), "30", str(1 << 20)]
        done = runner.mpirun(2, *command, "two-sided", env={"ONECOPY_THP": "never"}, check=False)
        assert "all messages" in done.stdout, f"seed {seed}\n{done.stderr}"


def test_descriptors_closed(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Ranks that cannot ask whether others in PID namespaces of their own live take them to be alive."""
    if not may("--pid", "--fork"):
        pytest.skip("unshare --pid --fork is not allowed here")
    program = Programs(tmp_path_factory.mktemp("closes")).build("closes", ["hazards/closes.c"])
    command = ["unshare", "--pid", "--fork", "sh", "-c", OWN_PIDS, "sh", str(program), "late", "all"]
    runner.mpirun(2, *command, env={**NO_SINGLE_COPY, "ONECOPY_MIN": "1"})


def test_small_dev_shm(runner: Runner, messages: Path) -> None:
    if not may("-m"):
        pytest.skip("no mount namespaces: needs CAP_SYS_ADMIN")
    figures = runner.cwd / "figures"
    figures.mkdir()
    seed = random.randrange(1, 1 << 32)
    # The MPI's own segments do not fit into 1 MB: users in such containers point it elsewhere.
    env = {"ONECOPY_STATS": f"{figures}/", "OMPI_MCA_btl_vader_backing_directory": str(runner.cwd)}
    script = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$@"'
    # One-sided windows of Open MPI are in /dev/shm.
    argv = runner.mpirun_argv(3, messages, str(seed), str(ROUNDS), str(1 << 20), "two-sided")
    done = runner.run("unshare", "-m", "sh", "-c", script, "sh", *argv, env=env, check=False)
    assert "all messages" in done.stdout, f"seed {seed}\n{done.stderr}"
    assert by_pointer(figures) > 0


@pytest.mark.parametrize("ranks", [2, 4])
def test_killed_among_messages(runner: Runner, messages: Path, ranks: int) -> None:
    """The job ends as it does without onecopy, and nothing of it stays: no process that waits, no file. One that is
    killed with a window open leaves Open MPI's own file, so none has any."""
    for _ in range(KILLS // 2):
        seed = random.randrange(1, 1 << 32)
        words = (str(seed), "1000000", str(4 << 20), "killed", "two-sided")
        done = runner.mpirun(ranks, messages, *words, timeout=30, check=False)
        assert done.returncode != 0, f"seed {seed}"
        assert "wrong data" not in done.stderr, f"seed {seed}\n{done.stderr}"
        assert "signal 9" in done.stderr, f"seed {seed}\n{done.stderr}"
