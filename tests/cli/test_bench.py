# SPDX-License-Identifier: BSD-3-Clause
"""`onecopy bench`: arguments, and one small run whose files are complete and whose data were right."""

from __future__ import annotations

import argparse
import csv
import json
import resource
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from job import Job, wait_until
from onecopy import bench, cells, machine, peers, programs, schedule, tables
from onecopy.cells import FigureRow, Row
from onecopy.results import Results
from onecopy.variant import Variant, choose_variants
from rich.console import Console
from runner import MPI_ENV, Runner

# A busy machine may take seconds for each job's memory.
pytestmark = pytest.mark.timeout(1800)

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ranks", "two"], "no list of numbers"),
        (["--ranks", "0"], "no list of numbers"),
        (["--sizes", "3"], "multiples of 4"),
        (["--sizes", "x"], "is no size"),
        (["--sizes", ",".join(["64"] * 65)], "more than 64 sizes"),
        (["--ranks", "1", "--quick"], "one rank has no peer"),
        (["--ranks", "1", "--what", "overhead,small"], "nothing to measure for small"),
        (["--collectives", "bcast,shout"], "no 'shout'"),
        (["--what", "weather"], "no 'weather'"),
        (["--against", "lam"], "no 'lam'"),
        (["--peer", "lam"], "invalid choice"),
        (["--rounds", "0"], "no number above 0"),
        (["--cache", "much"], "is no size"),
        (["--cache", "0"], "no number of bytes"),
        (["--memory", "tape"], "invalid choice"),
    ],
)
def test_bad_options(onecopy: Command, words: list[str], said: str) -> None:
    done = onecopy("bench", *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_what_cannot_be_measured(onecopy: Command) -> None:
    if not Path("/dev/onecopy").exists():
        done = onecopy("bench", "--mech", "kcopy")
        assert (done.returncode, "load the kernel module" in done.stderr) == (2, True)
    done = onecopy("bench", env={"ONECOPY": "off"})
    assert (done.returncode, "ONECOPY=off is set" in done.stderr) == (2, True)


def test_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What others took while it ran counts, and only where that is not known the load before."""
    facts = {"cpus": 2, "load_average": [3.96, 1, 1]}
    assert machine.busy(facts) == "busy machine: load average 4.0 before, 2 processors"
    assert machine.busy({**facts, "other_work": 0.1}) == ""
    assert machine.busy({**facts, "other_work": 1.26}) == "busy machine: 1.3 of 2 processors had other work"
    assert machine.busy({"cpus": 64, "load_average": [3.96, 1, 1]}) == machine.busy({}) == ""
    # A file that somebody has written by hand.
    for odd in ("x", [], ["a"], {"a": 1}, True, None):
        assert machine.busy({"cpus": odd, "load_average": odd, "other_work": odd}) == ""
    # Two seconds in which 3 processors' worth of work was done, a half by what this process had run.
    moments, busy, own = iter([10.0, 12.0]), iter([100.0, 106.0]), iter([(1, 0, 0, 0, 0), (1, 0, 3, 0, 0)])
    monkeypatch.setattr("onecopy.machine.time.monotonic", lambda: next(moments))
    monkeypatch.setattr(machine, "busy_seconds", lambda: next(busy))
    monkeypatch.setattr("onecopy.machine.os.times", lambda: next(own))
    assert machine.OtherWork().processors() == 1.5


@pytest.mark.parametrize("busy", [False, True])
def test_a_busy_machine_is_told_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, busy: bool
) -> None:
    """Before anything is run, of which there is nothing here."""
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    monkeypatch.setattr("onecopy.bench.signal.signal", lambda *_: None)
    monkeypatch.setattr(bench, "all_tasks", lambda *_: [])
    monkeypatch.setattr("onecopy.machine.os.getloadavg", lambda: (1000.0 * busy, 1.0, 1.0))
    assert bench.main(parser.parse_args(["--what=region", "--output", str(tmp_path / "out")])) == 1
    first = capsys.readouterr().err.splitlines()[0]
    assert ("busy machine: load average 1000.0 before" in first) == busy
    assert first.endswith("figures of now will say little") == busy


def test_work_of_others_is_seen(onecopy: Command, cache: Path, tmp_path: Path) -> None:
    """Of one program that spins beside the run, while what the run itself keeps busy is not counted."""
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        run_bench(
            onecopy,
            cache,
            tmp_path / "out",
            "--ranks=2",
            "--sizes=64",
            "--rounds=1",
            "--what=small",
            "--collectives=bcast",
        )
    finally:
        spinning.kill()
        spinning.wait()
    facts = json.loads((tmp_path / "out" / "machine.json").read_text())
    assert machine.busy(facts)
    assert facts["command"].startswith("onecopy bench --quick --cache=32M --output")


def test_what_the_user_preloads_is_in_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_mpi: Path, stub_libs: Path
) -> None:
    """Like is compared with like; and onecopy is in what is called so alone."""
    ours = stub_libs / "libonecopy-openmpi4.so"
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / ours.name).touch()
    monkeypatch.setenv("PATH", f"{fake_mpi}:/usr/bin:/bin")
    monkeypatch.setenv("ONECOPY_LIBDIR", str(stub_libs))
    monkeypatch.setenv("LD_PRELOAD", "/users.so /old/libonecopy-mpich.so:/more.so")
    args = argparse.Namespace(peer=[], mpi="mpi", against=["mpi", str(tmp_path / "build")], mech=["cma"])
    found = {one.name: one for one in choose_variants(args, Console())}
    assert {name: {**one.mpi.environment(2), **one.env}["LD_PRELOAD"] for name, one in found.items()} == {
        "mpi": "/users.so:/more.so",
        f"build-{tmp_path.name}": f"{tmp_path}/build/{ours.name}:/users.so:/more.so",
        "onecopy": f"{ours}:/users.so:/more.so",
        "onecopy-cma": f"{ours}:/users.so:/more.so",
    }


def test_columns_are_explained() -> None:
    rows = [Row(0, v, "bcast", 64, 2, "off-cache", 0, 1, 1.0, 0, 1e9) for v in ("mpi", "onecopy")]
    text = "\n".join(tables.explained(rows, []))
    for column in ("median us, quartiles", "mpi/onecopy", "ns:", "x memcpy", "off-cache"):
        assert column in text
    assert "warm" not in text
    assert list(tables.explained([], [])) == []
    for table in (*tables.times(rows, "busy"), tables.summary(rows, "busy")):
        assert table is not None
        assert "busy" in str(table.title)


def test_time_left() -> None:
    assert [schedule.duration(s) for s in (0, 40, 200, 4800)] == ["1 s", "40 s", "3 min", "80 min"]
    assert schedule.duration(7260) == "2 h 01 min"


def test_a_peer_that_is_not_installed(onecopy: Command, tmp_path: Path) -> None:
    done = onecopy("bench", "--against", "mpich", env={"XDG_CACHE_HOME": str(tmp_path / "none")})
    assert done.returncode == 1
    assert "--peer mpich" in done.stderr


def test_every_program_has_its_sources() -> None:
    for name in ("collbench", "firstuse", "forks", "mallocheavy", "p2p", "randomaccess", "stream"):
        assert all(path.is_file() for path in programs.sources(name))
    with pytest.raises(programs.BuildError):
        programs.sources("none")


def test_machine_names_no_host() -> None:
    facts = json.dumps(machine.describe())
    assert Path("/proc/sys/kernel/hostname").read_text().strip() not in facts


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the programs are built once for all runs."""
    return tmp_path_factory.mktemp("cache")


def run_bench(
    onecopy: Command, cache: Path, output: Path, *words: str, against: str = "mpi", timeout: float = 550
) -> None:
    if not shutil.which("mpicc"):
        pytest.fail("mpicc is missing: run `make deps`")
    env = {**MPI_ENV, "XDG_CACHE_HOME": str(cache)}
    # What a virtual machine says of its caches may be the host's, for which there is no time here.
    done = onecopy("bench", "--quick", "--cache=32M", "--output", output, *words, env=env, timeout=timeout)
    assert done.returncode == 0, done.stderr + done.stdout
    assert " runs, about " in done.stderr
    facts = json.loads((output / "machine.json").read_text())
    assert set(facts["variants"]) == {against, "onecopy"}


@pytest.mark.long(2)
@pytest.mark.timeout(3600)
def test_every_operation(onecopy: Command, cache: Path, tmp_path: Path) -> None:
    """Verified by collbench itself, on a number of ranks and a size that divide nothing."""
    names = "bcast,scatter,gather,allgather,alltoall,reduce,allreduce,reduce_scatter,reduce_scatter_block,scan,exscan,"
    names += "scatterv,gatherv,allgatherv,alltoallv,strided_allgather,alltoallw,neighbor_alltoall,neighbor_alltoallw,"
    names += "barrier,"
    names += ",".join(cells.MESSAGES)
    words = ("--ranks=3", "--sizes=20", "--rounds=1", f"--collectives={names}")
    run_bench(onecopy, cache, tmp_path / "out", *words, timeout=850)
    rows = cells.read(Row, tmp_path / "out" / "times.csv")
    for variant in ("mpi", "onecopy"):
        for name in names.split(","):
            mine = [r for r in rows if (r.variant, r.collective) == (variant, name)]
            assert [r.bytes for r in mine] == ([0] if name == "barrier" else [20])
    assert all(r.errors == 0 and r.usec > 0 for r in rows)


def test_rounds_alternate(onecopy: Command, cache: Path, tmp_path: Path) -> None:
    run_bench(onecopy, cache, tmp_path / "out", "--ranks=2", "--sizes=64K", "--rounds=2", "--collectives=bcast")
    rows = cells.read(Row, tmp_path / "out" / "times.csv")
    order = list(dict.fromkeys((r.round, r.variant) for r in rows))
    assert order == [(0, "mpi"), (0, "onecopy"), (1, "onecopy"), (1, "mpi")]
    assert all(r.copy_speed > 0 for r in rows)
    assert (tmp_path / "out" / "summary.csv").is_file()
    again = onecopy("bench", "--output", tmp_path / "out", env={"XDG_CACHE_HOME": str(cache)})
    assert again.returncode == 1
    assert "already holds a run" in again.stderr


@pytest.mark.long(0.5)
def test_against_another_build(onecopy: Command, cache: Path, build: Path, tmp_path: Path) -> None:
    """It runs in turns with ours and is no variant of ours: the tables compare the two."""
    other = tmp_path / "old" / "build"
    (other / "preload").mkdir(parents=True)
    for library in (build / "preload").glob("libonecopy-*.so"):
        shutil.copy(library, other / "preload")
    words = [f"--against={other}", "--ranks=2", "--sizes=64K", "--rounds=1", "--collectives=bcast"]
    run_bench(onecopy, cache, tmp_path / "out", *words, against="build-old")
    rows = cells.read(Row, tmp_path / "out" / "times.csv")
    assert {r.variant for r in rows} == {"build-old", "onecopy"}
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "old").symlink_to(other)
    done = onecopy("bench", f"--against={other},{tmp_path}/new/old", "--output", tmp_path / "none")
    assert (done.returncode, "have the same name" in done.stderr) == (1, True)
    shutil.rmtree(other / "preload")
    done = onecopy("bench", f"--against={other}", "--output", tmp_path / "none")
    assert (done.returncode, "holds no libonecopy-" in done.stderr) == (1, True)


@pytest.mark.long(0.5)
def test_on_another_mpi(onecopy: Command, tmp_path: Path) -> None:
    """onecopy on MPICH beside MPICH alone, whatever stands in PATH. Debian's stands in for what --peer installs."""
    binaries = tmp_path / "onecopy" / "peers" / "mpich" / "bin"
    binaries.mkdir(parents=True)
    (binaries.parent / ".complete").touch()
    for ours, theirs in (("mpirun", "mpirun.mpich"), ("mpicc", "mpicc.mpich")):
        found = shutil.which(theirs) or pytest.fail(f"{theirs} is missing: run `make deps`")
        (binaries / ours).write_text(f'#!/bin/sh\nexec {found} "$@"\n')
        (binaries / ours).chmod(0o755)
    words = ["--mpi=mpich", "--ranks=2", "--sizes=64K", "--rounds=1", "--collectives=bcast"]
    run_bench(onecopy, tmp_path, tmp_path / "out", *words)
    facts = json.loads((tmp_path / "out" / "machine.json").read_text())
    assert [version.split()[0] for version in facts["variants"].values()] == ["MPICH", "MPICH"]
    rows = cells.read(Row, tmp_path / "out" / "times.csv")
    assert {r.variant for r in rows} == {"mpi", "onecopy"}
    assert all(r.errors == 0 and r.usec > 0 for r in rows)


@pytest.mark.parametrize("memory", bench.MEMORIES)
def test_memory_of_buffers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, memory: str) -> None:
    """It is what the program is told, for collectives and messages."""
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    args = parser.parse_args(["--memory", memory, "--what=collectives,p2p", "--ranks=2", "--cache=32M", "--rounds=1"])
    told: list[str] = []

    def hear(argv: Sequence[str], *_: object) -> tuple[str, str]:
        told.append(shlex.join(argv))
        return "", ""

    monkeypatch.setattr(programs, "find", lambda name, *_: Path(name))
    monkeypatch.setattr(programs, "output_of", hear)
    one = Variant("mpi", peers.Mpi("mpi", Path("mpirun"), None, {}), {})
    for task in bench.all_tasks(bench.Bench([one], bench.settings_of(args), Results(tmp_path, {})), args):
        task.do()
    assert len(told) == len(bench.COLLECTIVES) + len(cells.MESSAGES)
    assert all(f" --memory={memory} " in f"{line} " for line in told)


def test_messages_on_the_stack(onecopy: Command, cache: Path, tmp_path: Path) -> None:
    """Which holds them, though the limit of whoever calls is too low."""
    words = ("--what=p2p", "--memory=stack", "--warm", "--ranks=2", "--sizes=64K", "--rounds=1")
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, hard))
    try:
        run_bench(onecopy, cache, tmp_path / "out", *words, "--collectives=pingpong")
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
    rows = cells.read(Row, tmp_path / "out" / "times.csv")
    assert sorted((r.variant, r.collective, r.bytes, r.errors) for r in rows) == [
        ("mpi", "pingpong", 65536, 0),
        ("onecopy", "pingpong", 65536, 0),
    ]
    assert json.loads((tmp_path / "out" / "machine.json").read_text())["settings"]["memory"] == "stack"


def test_overhead_within_one_process(onecopy: Command, cache: Path, tmp_path: Path) -> None:
    words = ("--what=overhead", "--ranks=2", "--sizes=8,4K", "--rounds=1", "--collectives=bcast,barrier,alltoallv")
    run_bench(onecopy, cache, tmp_path / "out", *words)
    rows = cells.read(Row, tmp_path / "out" / "times.csv")
    cells_wanted = {("bcast", 8), ("bcast", 4096), ("barrier", 0), ("alltoallv", 8), ("alltoallv", 4096)}
    for variant in ("mpi", "onecopy"):
        assert {(r.collective, r.bytes) for r in rows if r.variant == variant} == cells_wanted
    assert all(r.mode == "same-process" and r.errors == 0 and r.usec > 0 for r in rows)


def test_beneath_is_past_what_is_preloaded(runner: Runner, tmp_path: Path) -> None:
    """Under a library whose MPI_Alltoall does nothing."""
    source, library = tmp_path / "deaf.c", tmp_path / "libdeaf.so"
    source.write_text("int MPI_Alltoall(void) { return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    words: list[str | Path] = [
        runner.build / "bench/collbench",
        "--collectives=alltoall",
        "--sizes=64",
        "--warm",
        "--seconds=0.01",
    ]
    argv = runner.mpirun_argv(2, *words, "--beneath", preload=False)
    done = runner.run(*argv, env={"LD_PRELOAD": str(library)}, check=False)
    errors = {row["mode"]: int(row["errors"]) for row in csv.DictReader(done.stdout.splitlines())}
    assert errors["warm"] > 0
    assert errors["beneath"] == 0


def test_ended_by_a_batch_system(environment: dict[str, str], cache: Path, tmp_path: Path) -> None:
    """SIGTERM ends the programs too, and what was measured is kept."""
    out = tmp_path / "out"
    words = ["--quick", "--cache=32M", "--ranks=2", "--sizes=64K", "--collectives=bcast", "--rounds=500"]
    argv = [sys.executable, "-m", "onecopy", "bench", *words, "--output", str(out)]
    bench = Job(argv, {**environment, **MPI_ENV, "XDG_CACHE_HOME": str(cache)}, tmp_path)
    try:
        wait_until(lambda: rows_of(out / "times.csv"), 100)
        bench.process.terminate()
        finished = bench.wait(60)  # with everything it started
    finally:
        bench.close()
    assert finished.returncode == 130
    assert rows_of(out / "times.csv")


def rows_of(path: Path) -> list[Row]:
    return cells.read(Row, path) if path.exists() else []


@pytest.mark.long(1)
def test_programs_that_cannot_be_helped(onecopy: Command, cache: Path, tmp_path: Path) -> None:
    run_bench(onecopy, cache, tmp_path / "out", "--ranks", "2", "--what", "programs", "--rounds", "1")
    rows = cells.read(FigureRow, tmp_path / "out" / "figures.csv")
    assert {r.program for r in rows} == {"stream", "randomaccess", "mallocheavy", "forks", "p2p"}
    assert all(r.value > 0 for r in rows)


def test_a_program_is_built_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = programs.build("firstuse", peers.installed())
    made = first.stat().st_mtime_ns
    assert programs.build("firstuse", peers.installed()).stat().st_mtime_ns == made
