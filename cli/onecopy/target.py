# SPDX-License-Identifier: BSD-3-Clause
"""`onecopy doctor PROGRAM`: what `onecopy run` would preload into it, and why it might not help. Nothing is started but
ldd and `mpirun --version`."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onecopy import elf, mpi, run, script

#: What a program that looks MPI up by itself, with dlopen and dlsym, has among its strings.
LOOKED_UP = re.compile(rb"\0(libmpi(?:ch|_abi)?\.so[.\d]*)\0")
READ_MOST = 256 << 20
#: What libmpi_abi.so of Open MPI 6 needs.
OPEN_MPI = "libopen_mpi.so."
#: What launchers are called: everywhere, and on Debian, where those of several MPIs are beside each other.
LAUNCHERS = ("mpirun", "mpiexec", "mpirun.openmpi", "mpirun.mpich", "mpiexec.hydra")
#: Interpreters whose MPI comes with a module: mpi4py, Rmpi, Perl's.
INTERPRETERS = re.compile(r"^(python|pypy|R$|Rscript|perl|ruby|octave)")


def find(word: str) -> str | None:
    """As the launchers look for programs: PATH, then the working directory."""
    return shutil.which(word) or (shutil.which(f"./{word}") if "/" not in word else None)


def looked_up(path: Path) -> str:
    """The MPI library whose name is among a program's strings, "" for none."""
    try:
        with path.open("rb") as file:
            match = LOOKED_UP.search(file.read(READ_MOST))
    except OSError:
        return ""
    return match[1].decode() if match else ""


def _mpi_of(path: Path, program: elf.Elf) -> tuple[mpi.Abi | None, str]:
    """The MPI it is linked with, and how."""
    abi = mpi.abi_of_program(path, program)
    if abi is None:
        return None, ""
    names = [name for name in program.needed if mpi.LIBRARY.match(name)]
    for name, file in mpi.linked_libraries(path):
        if mpi.LIBRARY.match(name):
            way = "linked" if name in names else "linked through another library"
            return abi, f"{abi.title}, {way}: {file or name + ', which is not found'}"
    return abi, f"{abi.title}, linked: {', '.join(names)}"


def _elf_facts(path: Path, program: elf.Elf) -> dict[str, Any]:
    """{"kind", "mpi", "note", "why", "fix"} of a binary, what there is of it."""
    linkage = "statically" if program.is_static else "dynamically"
    facts: dict[str, Any] = {"kind": f"{linkage} linked program, {program.bits}-bit"}
    if refusal := mpi.refusal_of(path, program):
        return {**facts, "why": f"it {refusal.why}, so nothing can be preloaded", "fix": refusal.fix}
    missing = [name for name, file in mpi.linked_libraries(path) if file is None]
    abi, facts["mpi"] = _mpi_of(path, program)
    if missing:
        return {**facts, "why": f"it does not start: {', '.join(missing)} not found", "fix": "see `ldd`"}
    if abi is not None:
        return facts
    if mpi.sends_by_itself(path):
        facts["note"] = "long messages by UCX or libfabric are copied by a pointer between programs run under onecopy"
    elif INTERPRETERS.match(path.name):
        facts["note"] = "an interpreter: modules bring the MPI; mpi4py, ctypes and the like are served"
    elif name := looked_up(path):
        facts["mpi"] = f"{name}, which it loads itself (dlopen)"
    else:
        facts["why"] = "it is linked with no MPI; what it starts may be: name that program"
    return facts


def _unfound(word: str) -> dict[str, Any]:
    path = Path(word)
    if not path.exists():
        return {"path": word, "why": "no such program", "fix": ""}
    fix = "chmod +x" if path.is_file() else ""
    if path.suffix == ".py":
        fix = f"chmod +x, or name what starts it: onecopy doctor python3 {shlex.quote(word)}"
    return {"path": word, "why": "not an executable file", "fix": fix}


def examine(word: str, arguments: Sequence[str] = ()) -> dict[str, Any]:
    """{"path", "arguments", "kind", "mpi", "preload", "launcher", "note", "why", "fix"}, what there is of it; "why"
    only where it cannot be helped. "launcher" is what to type, "" where there is none."""
    found = find(word)
    if found is None:
        return _unfound(word)
    path = Path(found)
    command = [found, *arguments]
    facts: dict[str, Any] = {"path": found, **({"arguments": list(arguments)} if arguments else {})}
    try:
        facts.update(_elf_facts(path, elf.read(path)))
    except elf.NotElfError:
        line = " ".join(script.first_line(path))
        facts["kind"] = f"script of {line}" if line else "no ELF file, perhaps a script of the shell"
        if (interpreter := script.interpreter(path)) and not shutil.which(interpreter):
            return {
                **facts,
                "why": f"it does not start: {interpreter} not found",
                "fix": "install what its first line names",
            }
        facts["note"] = "what it starts decides; where its text does not tell, the MPI of the mpirun in PATH does"
    if mpi.is_launcher(path):
        facts["why"] = "it is an MPI's launcher: name the program that it starts"
    if "why" in facts:
        return facts
    abi, _ = mpi.detect(command)
    if abi and not facts.get("mpi"):
        facts["mpi"] = f"{abi.title}, as {abi.source} tells"
    library, why = run.choose(command)
    if library is None:
        return {**facts, "why": why}
    return {**facts, "preload": str(library), **_launcher_facts(path, abi)}


def _launcher(path: Path, abi: mpi.Abi) -> str:
    """A launcher of the program's MPI: of the installation that its library is in, else one in PATH. "" for none."""
    linked = mpi.linked_libraries(path)
    # Of the standard's ABI there are libraries, which have the launcher of their MPI.
    names: tuple[str, ...] = (abi.interface,)
    if abi.interface == "mpi5":
        names = ("openmpi4",) if any(name.startswith(OPEN_MPI) for name, _ in linked) else ("mpi5", "mpich")
    libraries = [Path(file) for name, file in linked if file and mpi.LIBRARY.match(name)]
    beside = [str(file.parent.parent / "bin" / name) for file in libraries for name in LAUNCHERS]
    found = map(shutil.which, (*beside, *LAUNCHERS))
    for launcher in filter(None, found):
        of_launcher = mpi.abi_of_launcher(Path(launcher))
        if of_launcher and of_launcher.interface in names:
            name = Path(launcher).name
            return name if shutil.which(name) == launcher else launcher
    return ""


def _launcher_facts(path: Path, abi: mpi.Abi | None) -> dict[str, str]:
    """{"launcher"}, and a "note" where that is not the mpirun in PATH, which belongs to another MPI."""
    if abi is None or abi.name == mpi.ANY:
        return {}
    default = shutil.which("mpirun") or shutil.which("mpiexec")
    launcher = _launcher(path, abi)
    if not default or (launcher and shutil.which(launcher) == default):
        return {"launcher": launcher}
    how = f"{launcher} is its own" if launcher else "start it by the launcher of its own MPI"
    other = mpi.abi_of_launcher(Path(default))
    same = other and other.interface == abi.interface
    of_which = "another installation" if same else other.title if other else "another MPI"
    return {"launcher": launcher, "note": f"{default} belongs to {of_which}: {how}"}
