# SPDX-License-Identifier: BSD-3-Clause
"""Which MPI a command uses that brings it only as it runs: scripts, and Pythons with mpi4py."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from onecopy import mpi

MAIN = "int MPI_Init(void); int main(void) { return MPI_Init(); }"
Compile = Callable[..., Path]
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def program(compile_c: Compile, fake_mpi: Path) -> Path:
    """Of an MPI that neither mpirun in PATH nor fake_mpi's belongs to."""
    return compile_c("bin/solver", MAIN, fake_mpi / "libmpi_abi.so.1", f"-Wl,-rpath,{fake_mpi}")


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def name_of(*command: str | Path) -> str | None:
    abi, refusal = mpi.detect([str(word) for word in command])
    assert refusal is None
    return abi.name if abi else None


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/sh\nexec {program} --fast\n",
        '#!/usr/bin/env bash\nset -e\nAPP={program}\n"$APP" "$@"\n',
        "#!/bin/sh\nwhere=$(dirname \"$0\")\nOMP_NUM_THREADS=1 '$where/bin/solver' >out 2>&1\n",
        '#!/bin/bash\n# {launcher} is not what this starts\ncd "${{0%/*}}" && time ./bin/solver | tee log\n',
        "#!/bin/sh\ntaskset -c 0 \\\n  {program} $*\n",
        "{program}\n",
    ],
    ids=["path", "variable", "directory", "comment", "continued", "no interpreter"],
)
def test_script_of_the_shell(
    program: Path, fake_mpi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    start = script(tmp_path / "start", text.format(program=program, launcher=fake_mpi / "mpirun"))
    assert name_of(fake_mpi / "mpirun", "-n", "2", start) == "mpi5"
    around = script(tmp_path / "around", f"#!/bin/sh\n{start}\n")
    assert name_of(fake_mpi / "mpirun", "-n", "2", "env", "A=1", around) == "mpi5"


def test_script_below_a_directory_with_a_backslash(program: Path, tmp_path: Path) -> None:
    r"""Home directories of Windows domains are such: /home/CORP\erik."""
    directory = tmp_path / r"CORP\erik\1"
    directory.mkdir()
    (directory / "solver").symlink_to(program)
    start = script(directory / "start", '#!/bin/sh\nexec "$(dirname "$0")/solver"\n')
    assert name_of(start) == "mpi5"


def test_script_without_a_hint_takes_the_launchers_word(fake_mpi: Path, tmp_path: Path) -> None:
    start = script(tmp_path / "start", '#!/bin/sh\nexec "$1" $(cat choice)\n')
    assert name_of(fake_mpi / "mpirun", start, "/bin/true") == "openmpi4"
    itself = script(tmp_path / "itself", f"#!/bin/sh\n{tmp_path}/itself\n")
    assert name_of(fake_mpi / "mpirun", itself) == "openmpi4"


def test_launcher_in_a_script(tmp_path: Path) -> None:
    launcher = script(tmp_path / "mpiexec", "#!/bin/sh\necho HYDRA build details:\n")
    start = script(tmp_path / "start", f"#!/bin/sh\n{launcher} -n 2 python something.py\n")
    assert name_of(start) == "mpich"


def test_words_of_a_shell(program: Path) -> None:
    assert name_of("sh", "-ec", f"cd / && {shlex.quote(str(program))} 1 2") == "mpi5"


@pytest.mark.parametrize("wrapped", [False, True], ids=["python", "script"])
@pytest.mark.parametrize(
    ("soname", "name"), [("libmpi.so.40", "openmpi4"), ("libmpi.so.12", "mpich"), ("libmpi_abi.so.1", "mpi5")]
)
def test_mpi4py(
    compile_c: Compile,
    fake_mpi: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    soname: str,
    name: str,
    wrapped: bool,
) -> None:
    """The module that this Python would import decides, whatever mpirun is used."""
    module = compile_c(
        "site/mpi4py/MPI.abi3.so",
        "int MPI_Init(void); int use(void) { return MPI_Init(); }",
        "-shared",
        "-fPIC",
        fake_mpi / soname,
        f"-Wl,-rpath,{fake_mpi}",
    )
    (module.parent / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(module.parent.parent))
    work = script(tmp_path / "work.py", f"#!{sys.executable}\nfrom mpi4py import MPI\n")
    command = [work] if wrapped else [sys.executable, "-u", work]
    abi, _ = mpi.detect([str(fake_mpi / "mpirun"), "-n", "2", *map(str, command)])
    assert abi is not None
    assert (abi.name, abi.source) == (name, module)


def test_mpi4py_that_loads_a_library(compile_c: Compile, fake_mpi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As PyPI's does, to choose its module: what it asks for is looked for in that library, and not in the one that the
    dynamic loader finds for the module."""
    source = "int MPI_Init(void) { return 0; } int MPI_Session_init(void) { return 0; }"
    newer = compile_c("libmpi.so.40", source, "-shared", "-fPIC", "-Wl,-soname,libmpi.so.40")
    asks = "int MPI_Session_init(void) __attribute__((weak)); int use(void) { return MPI_Session_init != 0; }"
    library = fake_mpi / "libmpi.so.40"
    flags = ("-shared", "-fPIC", "-Wl,--no-as-needed", library, f"-Wl,-rpath,{fake_mpi}")
    module = compile_c("site/mpi4py/MPI.abi3.so", asks, *flags)
    (module.parent / "__init__.py").write_text("import ctypes, os\nctypes.CDLL(os.environ['MPI4PY_LIBMPI'])\n")
    monkeypatch.setenv("PYTHONPATH", str(module.parent.parent))
    for loaded, name in ((newer, "openmpi4"), (library, "openmpi4-mpi3")):
        monkeypatch.setenv("MPI4PY_LIBMPI", str(loaded))
        assert name_of(fake_mpi / "mpirun", sys.executable, "-c", "from mpi4py import MPI") == name


def test_python_without_mpi4py(fake_mpi: Path, tmp_path: Path) -> None:
    python = script(tmp_path / "python3", "#!/bin/sh\necho\n")
    assert name_of(fake_mpi / "mpirun", python, "x.py") == "openmpi4"


def test_doctor_says_what_told(onecopy: Command, program: Path, tmp_path: Path) -> None:
    start = script(tmp_path / "start", f"#!/bin/sh\nexec {program}\n")
    said = onecopy("doctor", start).stdout
    assert "MPI 5 standard" in said
    assert str(program) in said
    assert "libonecopy-mpi5.so" in said


def test_doctor_of_an_interpreters_script(
    onecopy: Command, environment: dict[str, str], compile_c: Compile, fake_mpi: Path, tmp_path: Path
) -> None:
    source = "int MPI_Init(void); int use(void) { return MPI_Init(); }"
    flags = ("-shared", "-fPIC", fake_mpi / "libmpi.so.12", f"-Wl,-rpath,{fake_mpi}")
    module = compile_c("site/mpi4py/MPI.abi3.so", source, *flags)
    (module.parent / "__init__.py").touch()
    work = tmp_path / "work.py"
    work.write_text("from mpi4py import MPI\n")
    env = {"PYTHONPATH": f"{environment['PYTHONPATH']}:{module.parent.parent}"}
    said = onecopy("doctor", sys.executable, work, env=env).stdout
    assert str(module) in said
    assert "libonecopy-mpich.so" in said
    assert f"{sys.executable} {work}" in said.splitlines()[-1]
    # Not executable, it is not what a launcher would start.
    done = onecopy("doctor", work, env=env)
    assert done.returncode == 1
    assert f"onecopy doctor python3 {work}" in done.stdout
