# SPDX-License-Identifier: BSD-3-Clause
"""`onecopy run` over several nodes: its variables reach every rank by the launcher's own means, though the agent that
starts processes on other nodes gives them a bare environment. The nodes are network namespaces of this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from job import Finished
from mpi.programs import Programs
from mpi.stats import served, stats
from runner import MPI_ENV, ROOT, Mpi, Runner

HERE = Path(__file__).resolve().parent / "nodes"
# More ranks than cores, which Open MPI cannot see here: without it TCP starves.
OPEN_MPI = ["--mca", "mpi_yield_when_idle", "1", "--mca", "plm_rsh_agent", str(HERE / "agent")]
OPEN_MPI += ["--mca", "oob_tcp_if_include", "10.77.0.0/24", "--mca", "btl_tcp_if_include", "10.77.0.0/24"]
OPEN_MPI += ["--prtemca", "plm_ssh_agent", str(HERE / "agent"), "--prtemca", "oob_tcp_if_include", "10.77.0.0/24"]
HOSTS = ["--host", "10.77.0.1:2,10.77.0.2:2", "--map-by", "slot"]


def refusal() -> str:
    """Why there can be no such nodes here; "" where there can."""
    if os.geteuid():
        return "network namespaces with addresses are for root"
    if not shutil.which("ip"):
        return "no ip command: packaging/install-deps guests"
    done = subprocess.run([HERE / "network", "true"], capture_output=True, text=True, check=False)
    return f"no network namespaces here: {done.stderr.strip()}" if done.returncode else ""


@pytest.fixture(scope="module", autouse=True)
def nodes() -> None:
    if why := refusal():
        pytest.skip(why)


def open_mpi(runner: Runner) -> list[str]:
    old = runner.open_mpi() == 4
    return [*(OPEN_MPI[: OPEN_MPI.index("--prtemca")] if old else OPEN_MPI), *HOSTS]


def run(runner: Runner, *argv: str | Path, env: dict[str, str] | None = None) -> Finished:
    ours = {"ONECOPY_STATS": str(runner.cwd / "stats"), "ONECOPY_LIBDIR": str(runner.build / "preload")}
    command = [HERE / "network", ROOT / "onecopy", "run", "--mech", "heap", *argv]
    return runner.run(*command, env={**ours, **(env or {})}, timeout=120)


def hosts(finished: Finished) -> list[list[str]]:
    return sorted(line.split()[1:] for line in finished.stdout.splitlines() if line.count(" ") == 2)


@pytest.fixture
def program(programs: Programs) -> Path:
    return programs.build("onnodes", ["hazards/onnodes.c"])


def check(runner: Runner, finished: Finished, value: str = "-") -> None:
    assert hosts(finished) == [[f"node{n}", value] for n in (1, 1, 2, 2)], finished.stdout + finished.stderr
    # The broadcasts within a node, on every rank of both.
    assert served(runner.cwd / "stats", "bcast") == [5] * 4
    assert {line["nranks"] for line in stats(runner.cwd / "stats")} == {2}


def test_every_rank_of_every_node(runner: Runner, program: Path) -> None:
    check(runner, run(runner, "mpirun", *open_mpi(runner), "-n", "4", program))


def test_messages(runner: Runner, programs: Programs) -> None:
    """Between the ranks of a node they are copied by a pointer, between nodes they go as they always did. The messages
    of one seed are always the same: each rank has some of either."""
    messages = programs.build("messages", [str(HERE.parent.parent / "procvm" / "messages.c")], "-pthread")
    words = ["7", "24", str(256 << 10), "two-sided"]
    finished = run(runner, "mpirun", *open_mpi(runner), "-n", "4", messages, *words)
    assert "all messages" in finished.stdout, finished.stderr
    lines = stats(runner.cwd / "stats")
    assert [line["nranks"] for line in lines] == [2] * 4
    assert all(line["messages"]["heap"]["bytes"] > 0 for line in lines)


def test_beside_the_users_own_variables(runner: Runner, program: Path) -> None:
    """Open MPI 4 aborts where its two ways to name variables meet. (5.0.7 does whenever there are two programs.)"""
    if runner.open_mpi() != 4:
        pytest.skip("wants Open MPI 4")
    env = {"USER_VARIABLE": "mine"}
    two: list[str | Path] = ["-n", "2", program, ":", "-x", "USER_VARIABLE", "-n", "2", program]
    check(runner, run(runner, "mpirun", "-x", "USER_VARIABLE", *open_mpi(runner), *two, env=env), "mine")


def test_beside_the_users_own_list(runner: Runner, program: Path) -> None:
    env = {"OMPI_MCA_mca_base_env_list": "USER_VARIABLE=mine"}
    check(runner, run(runner, "mpirun", *open_mpi(runner), "-n", "4", program, env=env), "mine")


@pytest.mark.parametrize("said", ["-x USER_VARIABLE=mine", "-mca mca_base_env_list USER_VARIABLE=mine"])
def test_beside_the_users_own_file(runner: Runner, program: Path, said: str) -> None:
    """It runs, served, as without onecopy: Open MPI 4 aborts where the file and the variable meet."""
    if runner.open_mpi() != 4:
        pytest.skip("wants Open MPI 4")
    (runner.cwd / "options").write_text(f"{said}\n")
    check(runner, run(runner, "mpirun", "--tune", "options", *open_mpi(runner), "-n", "4", program), "mine")


@pytest.mark.parametrize("said", ["-x USER_VARIABLE=mine", "-mca mca_base_env_list USER_VARIABLE=mine"])
def test_a_file_on_one_node(runner: Runner, program: Path, said: str) -> None:
    if runner.open_mpi() != 4:
        pytest.skip("wants Open MPI 4")
    (runner.cwd / "options").write_text(f"{said}\n")
    finished = run(runner, "mpirun", "--tune", "options", "-n", "2", program, env=MPI_ENV)
    assert [line[1] for line in hosts(finished)] == ["mine"] * 2, finished.stdout + finished.stderr
    assert served(runner.cwd / "stats", "bcast") == [10, 10]


def test_node_without_the_library(runner: Runner, program: Path) -> None:
    """It runs on the MPI alone; the other is served."""
    private = runner.cwd / "private"
    private.mkdir()
    for library in (runner.build / "preload").glob("libonecopy-*.so"):
        shutil.copy(library, private)
    (runner.cwd / "hidden").write_text(f"{private}\n")
    finished = run(runner, "mpirun", *open_mpi(runner), "-n", "4", program, env={"ONECOPY_LIBDIR": str(private)})
    assert hosts(finished) == [[f"node{n}", "-"] for n in (1, 1, 2, 2)]
    assert served(runner.cwd / "stats", "bcast") == [5, 5]
    command = ["run", "--stats", "mpirun", *open_mpi(runner), "-n", "4"]
    said = runner.run(
        HERE / "network", ROOT / "onecopy", *command, program, env={"ONECOPY_LIBDIR": str(private)}, timeout=120
    ).stderr
    assert "no figures of ranks 2-3: they ran where the library" in said


def summary(runner: Runner, *argv: str | Path, env: Mapping[str, str]) -> dict[str, Any]:
    """What --stats=json says at the end."""
    command = ["run", "--stats=json", "--mech", "heap", "mpirun", *open_mpi(runner)]
    finished = runner.run(HERE / "network", ROOT / "onecopy", *command, *argv, env=env, timeout=120)
    found: dict[str, Any] = json.loads(next(line for line in finished.stderr.splitlines() if line.startswith("{")))
    return found


def test_statistics_of_all_nodes(runner: Runner, program: Path) -> None:
    found = summary(runner, "-n", "4", program, env={"ONECOPY_LIBDIR": str(runner.build / "preload")})
    (job,) = found["jobs"]
    assert sorted(rank["host"] for rank in job["ranks"]) == ["node1", "node1", "node2", "node2"]
    assert sum(rank["calls"]["bcast"]["served"] for rank in job["ranks"]) == 4 * 5
    assert not list(runner.cwd.glob(".onecopy*"))


HYDRA = ["-localhost", "10.77.0.254", "-launcher", "ssh", "-launcher-exec", str(HERE / "agent")]
by_hydra = pytest.mark.parametrize("options", [[], ["-genvnone"], ["-genvlist", "HOME"]], ids=" ".join)


@pytest.fixture
def of_mpich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("mpiexec.hydra"):
        pytest.skip("no mpiexec.hydra: packaging/install-deps nodes")
    mpich = Mpi("debian", "mpich", "mpiexec.hydra", "mpicc.mpich", "mpifort.mpich", lambda n, v: ["-genv", n, v])
    return Programs(tmp_path_factory.mktemp("programs"), mpich).build("onnodes", ["hazards/onnodes.c"])


@by_hydra
def test_hydra(runner: Runner, of_mpich: Path, options: list[str]) -> None:
    there = [*HYDRA, "-hosts", "10.77.0.1,10.77.0.2", "-n", "2"]
    # Not a rank; the program is named to choose a library.
    say = "echo $(hostname) $ONECOPY_MECH ${LD_PRELOAD##*/}"
    finished = run(runner, "mpiexec.hydra", *options, *there, "sh", "-c", say, of_mpich)
    library = "libonecopy-mpich.so"
    assert sorted(finished.stdout.split("\n")[:2]) == [f"node1 heap {library}", f"node2 heap {library}"]


@by_hydra
def test_ranks_of_hydra(runner: Runner, of_mpich: Path, options: list[str]) -> None:
    """On one other node: of Debian 12's MPICH (4.0.2, UCX) every fourth job that spans two hangs in MPI_Finalize, with
    onecopy and without."""
    finished = run(runner, "mpiexec.hydra", *options, *HYDRA, "-hosts", "10.77.0.2", "-n", "2", of_mpich)
    assert hosts(finished) == [["node2", "-"]] * 2, finished.stdout + finished.stderr
    assert served(runner.cwd / "stats", "bcast") == [10, 10]


needs_slurm = pytest.mark.skipif(not shutil.which("slurmctld"), reason="no Slurm: packaging/install-deps nodes")
# --export alone keeps the variables from the ranks.
by_srun = pytest.mark.parametrize("options", [[], ["--export=NONE"], ["--export=USER_VARIABLE"]], ids=" ".join)


def srun(runner: Runner, *words: str | Path, ours: Sequence[str] = (), env: dict[str, str]) -> Finished:
    """`onecopy run srun` where Slurm is; `ours`: options of onecopy's."""
    command = [ROOT / "onecopy", "run", "--mech", "heap", *ours, "srun", *words]
    env = {"USER_VARIABLE": "mine", **MPI_ENV, "ONECOPY_LIBDIR": str(runner.build / "preload"), **env}
    return runner.run(HERE / "network", HERE / "slurm", runner.cwd / "slurm", *command, env=env, timeout=180)


def passed(options: list[str]) -> str:
    return "-" if options == ["--export=NONE"] else "mine"


@pytest.mark.long(2)
@needs_slurm
@by_srun
def test_slurm(runner: Runner, program: Path, options: list[str]) -> None:
    """On one node."""
    finished = srun(runner, *options, "-n", "2", program, env={"ONECOPY_STATS": str(runner.cwd / "stats")})
    value = passed(options)
    assert [line[1] for line in hosts(finished)] == [value] * 2, finished.stdout + finished.stderr
    assert len(stats(runner.cwd / "stats")) == 2
    assert served(runner.cwd / "stats", "bcast") == [10, 10]


@pytest.mark.long(2)
@needs_slurm
@by_srun
def test_slurm_over_two_nodes(runner: Runner, program: Path, options: list[str]) -> None:
    """Every rank of both is served, and one summary is of all."""
    two = ["--partition", "two", "--nodes", "2", "--ntasks-per-node", "2", "-n", "4"]
    finished = srun(runner, *options, *two, program, ours=["--stats=json"], env={"OMPI_MCA_mpi_yield_when_idle": "1"})
    said = finished.stdout + finished.stderr
    assert hosts(finished) == [[f"node{n}", passed(options)] for n in (1, 1, 2, 2)], said
    (job,) = json.loads(next(line for line in finished.stderr.splitlines() if line.startswith("{")))["jobs"]
    assert sorted(rank["host"] for rank in job["ranks"]) == ["node1", "node1", "node2", "node2"]
    assert [rank["calls"]["bcast"]["served"] for rank in job["ranks"]] == [5] * 4, said
    assert not list(runner.cwd.glob(".onecopy*"))
