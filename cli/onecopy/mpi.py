# SPDX-License-Identifier: BSD-3-Clause
"""Which MPI a command uses: found without running any of its programs (a Python is asked for its mpi4py)."""

from __future__ import annotations

import functools
import os
import re
import shutil
import stat
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from onecopy import elf, python, script

#: soname of the MPI library -> (our name of its binary interface, what people call it)
ABIS = {
    "libmpi.so.40": ("openmpi4", "Open MPI 4, 5 or 6"),
    "libmpi.so.12": ("mpich", "MPICH or Intel MPI"),
    "libmpich.so.12": ("mpich", "MPICH"),  # Debian's name
    "libmpi_abi.so.0": ("mpi5", "the MPI 5 standard ABI"),
    "libmpi_abi.so.1": ("mpi5", "the MPI 5 standard ABI"),
}
#: Beside a binary interface's name: where the MPI has what MPI 3 has, and a program asks it for more; where it has what
#: MPI 4 has, large counts, too.
MPI_3, MPI_4 = "-mpi3", "-mpi4"
#: Calls that came with MPI 4, among the names of programs and libraries, perhaps as the end of PMPI_Session_init.
SESSION, LARGE_COUNT = b"MPI_Session_init\0", b"MPI_Bcast_c\0"
LOADER_CACHE = Path("/etc/ld.so.cache")
#: Of a program without an MPI, for which every library will do.
ANY = "any"
#: What MPIs stand on: programs that use these without an MPI end long messages in the same way.
BELOW = re.compile(r"^lib(ucp|uct|fabric)\.so\.\d+$")
SYSTEM = {Path(name) for name in ("/bin", "/sbin", "/usr/bin", "/usr/sbin")}
#: An MPI library's name, whoever's it is.
LIBRARY = re.compile(r"^libmpi(ch|_abi)?\.so\.\d+$")
LAUNCHERS = re.compile(r"^(mpirun|mpiexec|orterun|prterun)([.-]\w+)*$")


MOST = 1000  # words of a command that are looked for


class Abi(NamedTuple):
    #: As in libonecopy-NAME.so; None for an MPI nobody has heard of.
    name: str | None
    #: For messages.
    title: str
    #: What told: a program, or a launcher.
    source: Path

    @property
    def interface(self) -> str:
        """The same for all programs of an MPI; "" for one nobody has heard of."""
        return (self.name or "").removesuffix(MPI_3).removesuffix(MPI_4)


class Refusal(NamedTuple):
    """A program no library can be preloaded into."""

    program: Path
    why: str
    fix: str


def _executable(word: str) -> Path | None:
    if "\0" in word:
        return None
    places = [""] if "/" in word else ["./", *(f"{place}/" for place in os.get_exec_path())]
    if not any(os.access(place + word, os.X_OK) for place in places):  # for most words, and soon said
        return None
    path = shutil.which(word)
    if path is None and "/" not in word:
        path = shutil.which("./" + word)  # mpirun runs a program of the working directory without a path
    return Path(path) if path else None


def executables(command: Sequence[str]) -> list[Path]:
    """The words of a command line that name executable files, in order. Options never do; a bare word may be found
    through PATH, as the launchers look for programs. Behind the first MOST only arguments are expected."""
    found = []
    for i, word in enumerate(command[:MOST]):
        if not word or (i > 0 and word.startswith("-")):
            continue
        if path := _executable(word):
            found.append(path)
    return found


def is_launcher(path: Path) -> bool:
    return bool(LAUNCHERS.match(path.name))


@functools.cache
def linked_libraries(path: Path) -> list[tuple[str, str | None]]:
    """What the dynamic loader would load: (name, file or None when it is not found). Empty when it cannot tell."""
    import subprocess  # as seldom as this is needed: each program's start waits for its import

    try:
        listing = subprocess.run(
            ["ldd", str(path)], capture_output=True, text=True, timeout=20, errors="replace", check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    libraries: list[tuple[str, str | None]] = []
    for line in listing.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if arrow:
            libraries.append((Path(name).name, None if "not found" in rest else rest.split(" (")[0]))
    return libraries


def _abi_of_names(names: Sequence[str], source: Path) -> Abi | None:
    for name in names:
        if name in ABIS:
            return Abi(*ABIS[name], source)
    for name in names:
        if LIBRARY.match(name):
            return Abi(None, f"an MPI whose library is {name}", source)
    return None


def _in_the_cache(name: str) -> list[Path]:
    """Files of that name which the dynamic loader finds by itself (ldconfig)."""
    try:
        paths = set(re.findall(rb"\0(/[^\0]*/" + re.escape(os.fsencode(name)) + rb")(?=\0)", LOADER_CACHE.read_bytes()))
    except OSError:
        return []
    return [Path(os.fsdecode(path)) for path in paths]


def _library_of(path: Path, program: elf.Elf, interface: str) -> Path | None:
    """The file of its MPI. The dynamic loader is asked only where its cache does not say."""
    names = [name for name in program.needed if ABIS.get(name, ("",))[0] == interface]
    if names and not program.has_path and not os.environ.get("LD_LIBRARY_PATH"):
        cached = _in_the_cache(names[0])
        if len(cached) == 1:
            return cached[0]
    listed = linked_libraries(path)
    return next((Path(file) for name, file in listed if file and ABIS.get(name, ("",))[0] == interface), None)


def _for_its_version(abi: Abi | None, path: Path, program: elf.Elf, library: Path | None) -> Abi | None:
    """The same, for Open MPI with the name of the library that shows what this one has: @library, or what the dynamic
    loader finds for the program."""
    if not abi or abi.name != "openmpi4":
        return abi
    library = library or _library_of(path, program, abi.name)
    try:
        has = elf.read(library).strings if library else b""
    except elf.NotElfError:
        return abi
    if LARGE_COUNT in has:
        return abi._replace(name=abi.name + MPI_4)
    lacks = library and SESSION in program.strings and SESSION not in has
    return abi._replace(name=abi.name + MPI_3) if lacks else abi


def abi_of_program(path: Path, program: elf.Elf, library: Path | None = None) -> Abi | None:
    """By the soname of the MPI library, linked directly or through other libraries. @library: its file, where another
    than the dynamic loader's is loaded before."""
    if program.is_static:
        return None
    abi = _abi_of_names(program.needed, path)
    if not abi and not is_launcher(path):  # a launcher is no MPI program, whatever it loads
        abi = _abi_of_names([name for name, _ in linked_libraries(path)], path)
    return _for_its_version(abi, path, program, library)


def sends_by_itself(path: Path) -> bool:
    """Whether a program is linked to UCX or libfabric and to no MPI: mpi/alone.c."""
    names = [name for name, _ in linked_libraries(path)]
    return any(BELOW.match(name) for name in names) and _abi_of_names(names, path) is None


def missing_libraries(path: Path) -> list[str]:
    """Libraries the dynamic loader would not find for a library. What this process itself has loaded is there, which
    spares asking in all but odd installations."""
    try:
        loaded = {Path(line.split()[-1]).name for line in Path("/proc/self/maps").read_text().splitlines()}
        if set(elf.read(path).needed) <= loaded:
            return []
    except (OSError, elf.NotElfError):
        pass
    return [name for name, file in linked_libraries(path) if file is None]


def abi_of_launcher(path: Path) -> Abi | None:
    """By what `mpirun --version` says. Open MPI 4 calls itself OpenRTE where it is not called mpirun."""
    import subprocess

    try:
        text = subprocess.run(
            [str(path), "--version"], capture_output=True, text=True, timeout=20, errors="replace", check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    if match := re.search(r"(?:Open MPI|OpenRTE)\)?\s+v?(\d+)\.", text):
        abi = Abi(*ABIS["libmpi.so.40"], path)
        if match[1] == "6":
            return abi._replace(name=f"{abi.name}{MPI_4}")
        return abi if match[1] in ("3", "4", "5") else Abi(None, f"Open MPI {match[1]}", path)
    if re.search(r"HYDRA|Intel\(R\) MPI|MPICH", text):
        return Abi(*ABIS["libmpi.so.12"], path)
    return None


def refusal_of(path: Path, program: elf.Elf) -> Refusal | None:
    """Why the dynamic loader would ignore LD_PRELOAD for this program."""
    if program.is_static:
        return Refusal(path, "is statically linked", "link it with shared libraries (without -static)")
    try:
        mode = path.stat()
    except OSError:
        return None
    if (mode.st_mode & stat.S_ISUID and mode.st_uid != os.geteuid()) or (
        mode.st_mode & stat.S_ISGID and mode.st_gid != os.getegid()
    ):
        return Refusal(
            path, "changes its user or group (setuid, setgid)", "run it as that user, or a copy without that mode"
        )
    try:
        capabilities = bool(os.getxattr(path, "security.capability"))
    except OSError:
        capabilities = False
    if capabilities:
        return Refusal(path, "has file capabilities", "remove them: setcap -r")
    return None


def _linked(paths: Sequence[Path]) -> tuple[Abi | None, Refusal | None]:
    """The first program linked with an MPI, or else the first that sends by what MPIs stand on, and why nothing can be
    preloaded into it. Without one, why not into the first that is no launcher."""
    refusal: Refusal | None = None
    sender: tuple[Abi, Refusal | None] | None = None
    launched = False
    for path in paths:
        launched = launched or is_launcher(path)
        try:
            program = elf.read(path)
        except elf.NotElfError:
            continue
        why = refusal_of(path, program)
        if abi := abi_of_program(path, program):
            return abi, why
        if not sender and not is_launcher(path) and sends_by_itself(path):
            sender = Abi(ANY, "no MPI", path), why
        # A static program before others may be what starts them, and hands LD_PRELOAD on.
        starts = program.is_static and not launched and path != paths[-1]
        if why and refusal is None and not is_launcher(path) and not starts:
            refusal = why
    if sender:
        return sender
    return None, refusal


def _abi_of_python(path: Path) -> Abi | None:
    found = python.extension(path)
    if not found:
        return None
    try:
        return abi_of_program(found.module, elf.read(found.module)._replace(interpreter=""), found.library)
    except elf.NotElfError:
        return None


def _abi_of_script(words: Sequence[str], depth: int) -> Abi | None:
    """Of what a script may start: a program that is linked with an MPI, a Python, another script, a launcher."""
    paths = [path for word in words if (path := _executable(word))]
    for path in paths:
        try:
            program = elf.read(path)
        except elf.NotElfError:
            continue
        # What the system brings is linked with an MPI directly, if at all: ldd for every command would take long.
        likely = path.parent not in SYSTEM or _abi_of_names(program.needed, path)
        if likely and (abi := abi_of_program(path, program)):
            return abi
    return _abi_of_starters(paths, depth) or next(filter(None, map(abi_of_launcher, filter(is_launcher, paths))), None)


def _abi_of_starters(paths: Sequence[Path], depth: int = 3) -> Abi | None:
    """Of what brings its MPI only as it runs: a Python with mpi4py, a script."""
    for path in paths:
        if is_launcher(path) or not depth:
            continue
        if python.NAME.match(path.name):
            abi = _abi_of_python(path)
        elif python.NAME.match(Path(script.interpreter(path)).name):
            found = _executable(script.interpreter(path))
            abi = _abi_of_python(found) if found else None
        else:
            abi = _abi_of_script(script.words(script.text_of(path), path.parent), depth - 1)
        if abi:
            return abi
    return None


def _spoken(command: Sequence[str]) -> Abi | None:
    """Of what a shell is told in a word of the command: sh -c "..."."""
    for option, text in pairwise(command):
        if re.fullmatch(r"-\w*c", option) and re.search(r"\s", text) and (abi := _abi_of_script(script.words(text), 2)):
            return abi
    return None


def detect(command: Sequence[str]) -> tuple[Abi | None, Refusal | None]:
    """The MPI of a command. The first program linked with an MPI decides. Without one the first that sends by what MPIs
    stand on does, then a Python's mpi4py or what a script starts, then the launcher, and at last the mpirun in PATH. A
    refusal is about the program that decides, or, when none does, about the first that is no launcher."""
    paths = executables(command)
    abi, refusal = _linked(paths)
    if not abi and not refusal:
        abi = _abi_of_starters(paths) or _spoken(command)
    if abi:
        return abi, refusal
    launchers = [path for path in paths if is_launcher(path)]
    if not launchers and (default := shutil.which("mpirun")):
        launchers = [Path(default)]
    for path in launchers:
        if abi := abi_of_launcher(path):
            return abi, refusal
    return None, refusal
