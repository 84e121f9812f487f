# SPDX-License-Identifier: BSD-3-Clause
"""Which MPI a command uses, and which programs nothing can be preloaded into."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onecopy import elf, mpi

Command = Callable[..., subprocess.CompletedProcess[str]]

MAIN = "int MPI_Init(void); int main(void) { return MPI_Init(); }"
Compile = Callable[..., Path]


def linked(compile_c: Compile, fake_mpi: Path, soname: str) -> Path:
    return compile_c("program", MAIN, fake_mpi / soname, f"-Wl,-rpath,{fake_mpi}")


@pytest.mark.parametrize(
    ("soname", "name"),
    [
        ("libmpi.so.40", "openmpi4"),
        ("libmpi.so.12", "mpich"),
        ("libmpich.so.12", "mpich"),
        ("libmpi_abi.so.1", "mpi5"),
        ("libmpi.so.99", None),
    ],
)
def test_soname_of_the_program_decides(compile_c: Compile, fake_mpi: Path, soname: str, name: str | None) -> None:
    program = linked(compile_c, fake_mpi, soname)
    abi, refusal = mpi.detect([str(fake_mpi / "mpirun"), "-n", "4", str(program), "--option"])
    assert refusal is None
    assert abi is not None
    assert (abi.name, abi.source) == (name, program)


def test_mpi_behind_another_library(compile_c: Compile, fake_mpi: Path, tmp_path: Path) -> None:
    between = compile_c(
        "libsolver.so",
        "int MPI_Init(void); int solve(void) { return MPI_Init(); }",
        "-shared",
        "-fPIC",
        fake_mpi / "libmpi.so.40",
        f"-Wl,-rpath,{fake_mpi}",
    )
    program = compile_c(
        "solver",
        "int solve(void); int main(void) { return solve(); }",
        between,
        f"-Wl,-rpath,{tmp_path}",
        f"-Wl,-rpath-link,{fake_mpi}",
    )
    assert "libmpi.so.40" not in elf.read(program).needed
    abi, _ = mpi.detect([str(program)])
    assert abi is not None
    assert abi.name == "openmpi4"


def test_script_takes_the_launchers_word(fake_mpi: Path, tmp_path: Path) -> None:
    """Where its Python has no mpi4py, which would have the say."""
    script = tmp_path / "job.py"
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    abi, _ = mpi.detect([str(fake_mpi / "mpirun"), str(script)])
    assert abi is not None
    assert (abi.name, abi.source.name) == ("openmpi4", "mpirun")


def test_calls_the_mpi_has_not_got(compile_c: Compile, fake_mpi: Path, tmp_path: Path) -> None:
    """Of a program that asks by weak references, and one that does not; by an Open MPI with them, and one without."""
    newer = tmp_path / "newer"
    newer.mkdir()
    newest = tmp_path / "newest"
    newest.mkdir()
    source = "int MPI_Init(void) { return 0; } int MPI_Session_init(void) { return 0; }"
    for where, more in ((newer, ""), (newest, "int MPI_Bcast_c(void) { return 0; }")):
        library = compile_c("libmpi.so.40", source + more, "-shared", "-fPIC", "-Wl,-soname,libmpi.so.40")
        library.rename(where / library.name)
    asks = "int MPI_Session_init(void) __attribute__((weak)); "
    asks += MAIN.replace("MPI_Init();", "MPI_Session_init ? 1 : MPI_Init();")
    for main, where, name in (
        (asks, fake_mpi, "openmpi4-mpi3"),
        (asks, newer, "openmpi4"),
        (MAIN, fake_mpi, "openmpi4"),
        (asks, newest, "openmpi4-mpi4"),
        (MAIN, newest, "openmpi4-mpi4"),
    ):
        program = compile_c("program", main, where / "libmpi.so.40", f"-Wl,-rpath,{where}")
        mpi.linked_libraries.cache_clear()
        abi, refusal = mpi.detect([str(program)])
        assert abi is not None
        assert (abi.name, abi.interface, refusal) == (name, "openmpi4", None)


@pytest.mark.parametrize("soname", ["libucp.so.0", "libuct.so.0", "libfabric.so.1"])
def test_messages_without_an_mpi(
    compile_c: Compile, onecopy: Command, fake_mpi: Path, tmp_path: Path, stub_libs: Path, soname: str
) -> None:
    """Any library will do for a program that sends by what MPIs stand on, in a command without an MPI."""
    below = compile_c(soname, "int send(void) { return 0; }", "-shared", "-fPIC", f"-Wl,-soname,{soname}")
    main = "int send(void); int main(void) { return send(); }"
    program = compile_c("sender", main, below, f"-Wl,-rpath,{tmp_path}")
    abi, refusal = mpi.detect(["env", "A=b", str(program)])
    assert refusal is None
    assert abi is not None
    assert (abi.name, abi.source) == (mpi.ANY, program)
    (tmp_path / "bin").mkdir()  # without an mpirun
    (tmp_path / "bin" / "ldd").symlink_to(str(shutil.which("ldd")))
    done = onecopy("run", "--verbose", program, env={"PATH": str(tmp_path / "bin")})
    assert f"preloads {stub_libs}/libonecopy-openmpi4.so" in done.stderr
    assert "nothing to do" not in done.stderr
    both = compile_c(
        "both",
        MAIN + " int send(void); int (*use)(void) = send;",
        below,
        fake_mpi / "libmpi.so.12",
        f"-Wl,-rpath,{tmp_path}:{fake_mpi}",
    )
    abi, _ = mpi.detect([str(program), str(both)])
    assert abi is not None
    assert abi.name == "mpich"


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("mpirun (Open MPI) 5.0.11", "openmpi4"),
        ("mpirun (Open MPI) 6.0.0rc2", "openmpi4-mpi4"),
        ("mpirun (Open MPI) 7.0.0", None),
        ("mpiexec (OpenRTE) 2.1.1", None),
        ("mpiexec (OpenRTE) 4.1.4", "openmpi4"),
        ("HYDRA build details:", "mpich"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.18", "mpich"),
    ],
)
def test_launchers(tmp_path: Path, said: str, name: str | None) -> None:
    launcher = tmp_path / "mpiexec"
    launcher.write_text(f"#!/bin/sh\necho '{said}'\n")
    launcher.chmod(0o755)
    abi = mpi.abi_of_launcher(launcher)
    assert (abi.name if abi else None) == name


def test_program_of_the_working_directory(
    compile_c: Compile, fake_mpi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked(compile_c, fake_mpi, "libmpi.so.40")
    monkeypatch.chdir(tmp_path)
    abi, _ = mpi.detect([str(fake_mpi / "mpirun"), "-n", "2", "program"])
    assert abi is not None
    assert abi.source.name == "program"


def test_arguments_are_looked_for_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty thousand of them took seconds."""
    looks: list[str] = []
    access = os.access

    def counted(path: str, mode: int) -> bool:
        looks.append(path)
        return access(path, mode)

    monkeypatch.setattr("onecopy.mpi.os.access", counted)
    words = ["sh", *(f"no-such-program-{i}" for i in range(20000)), "bad\0word"]
    assert [path.name for path in mpi.executables(words)] == ["sh"]
    assert len(looks) < mpi.MOST * (len(os.get_exec_path()) + 2)


def test_static_program_is_refused(compile_c: Compile, onecopy: Command) -> None:
    program = compile_c("static", "int main(void) { return 5; }", "-static")
    _, refusal = mpi.detect([str(program)])
    assert refusal is not None
    done = onecopy("run", program)
    assert done.returncode == 5
    assert "statically linked" in done.stderr
    assert "without -static" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a file of another owner with the setuid bit")
def test_setuid_program_is_refused(compile_c: Compile) -> None:
    program = compile_c("setuid", "int main(void) { return 0; }")
    os.chown(program, 12345, -1)
    program.chmod(0o4755)
    _, refusal = mpi.detect([str(program)])
    assert refusal is not None
    assert "setuid" in refusal.why


@pytest.mark.parametrize(
    ("soname", "library"),
    [
        ("libmpi.so.40", "libonecopy-openmpi4.so"),
        ("libmpi.so.12", "libonecopy-mpich.so"),
        ("libmpich.so.12", "libonecopy-mpich.so"),
        ("libmpi_abi.so.1", "libonecopy-mpi5.so"),
    ],
)
def test_each_abi_has_a_library_of_its_own(
    compile_c: Compile, fake_mpi: Path, onecopy: Command, soname: str, library: str
) -> None:
    program = linked(compile_c, fake_mpi, soname)
    assert library in onecopy("run", "--verbose", program).stderr
    nowhere = {"ONECOPY_LIBDIR": str(fake_mpi), "ONECOPY_BUILD": str(fake_mpi)}
    done = onecopy("run", program, env=nowhere)
    assert done.returncode == 0
    assert f"{library} is missing" in done.stderr


def test_unresolved_need_of_our_library(compile_c: Compile, fake_mpi: Path, onecopy: Command, tmp_path: Path) -> None:
    program = linked(compile_c, fake_mpi, "libmpi.so.40")
    gone = compile_c("libgone.so", "int gone(void) { return 1; }", "-shared", "-fPIC", "-Wl,-soname,libgone.so")
    compile_c(
        "libs/libonecopy-openmpi4.so",
        "int gone(void); int use(void) { return gone(); }",
        "-shared",
        "-fPIC",
        gone,
    )
    gone.unlink()
    done = onecopy("run", program, env={"ONECOPY_LIBDIR": str(tmp_path / "libs")})
    assert done.returncode == 0
    assert "needs libgone.so, which is not installed" in done.stderr


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_are_an_elf_file_or_an_error(data: bytes, wide: bool) -> None:
    head = b"\x7fELF" + bytes([2 if wide else 1, 1])
    with contextlib.suppress(elf.NotElfError):
        elf.parse(head + data)


@given(st.data())
def test_damaged_programs_are_read_or_refused(data: st.DataObject) -> None:
    true = Path(shutil.which("true") or "/bin/true").read_bytes()
    end = data.draw(st.integers(0, len(true)))
    at = data.draw(st.integers(0, 600))
    damaged = bytearray(true[:end])
    damaged[at : at + 4] = data.draw(st.binary(min_size=4, max_size=4))
    with contextlib.suppress(elf.NotElfError):
        elf.parse(bytes(damaged))
