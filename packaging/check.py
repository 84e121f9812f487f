# SPDX-License-Identifier: BSD-3-Clause
"""Every check that needs no run of the program: format, lint, types, static analysis, licences, man pages.

Run by `make check`. All checks run, whatever the others say; ends with 1 when one complains. A check whose tool is
missing is named as not run.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import calls
import layers

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("ONECOPY_BUILD", ROOT / "build"))
VENV_BIN = Path(sys.prefix) / "bin"

#: What the SPDX line of a file says, by the first directory on this list that holds it.
LICENCES = {
    "kernel": "GPL-2.0-only",
    "vm/patches": "GPL-2.0-only",
    "include/uapi": "(GPL-2.0-only WITH Linux-syscall-note) OR BSD-3-Clause",
    ".": "BSD-3-Clause",
}
LINES = 500  # of a C file
# Prose, pictures and data hold no licence line of their own: the project's licence is theirs.
NO_LICENCE_LINE = {".md", ".csv", ".json", ".png", ".svg", ".txt"}
# sparse 0.6 stumbles over the compiler's vector intrinsics and complex types: it has not checked a file of which it
# says this.
SPARSE_CANNOT = re.compile(r"undefined identifier '__builtin_|_Complex|^/usr/.*error:", re.MULTILINE)
# Where the analyzer's idea of malloc() does not hold: in malloc() itself.
ANALYZER_OFF = {"preload/malloc.c": ["-Wno-analyzer-malloc-leak"]}


class NotRunError(Exception):
    """The tool, or what it works on, is missing."""


def files(*suffixes: str) -> list[Path]:
    """What git tracks or would: new files are checked before they are committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    paths = (ROOT / os.fsdecode(name) for name in sorted(set(listed.split(b"\0"))) if name)
    return [p for p in paths if p.is_file() and not p.is_symlink() and (not suffixes or p.suffix in suffixes)]


def tool(name: str) -> str:
    """The tool of this environment, whose version is pinned, before the system's."""
    found = shutil.which(name, path=f"{VENV_BIN}{os.pathsep}{os.environ.get('PATH', '')}")
    if not found:
        raise NotRunError(f"{name} is not installed")
    return found


def run(*argv: str | Path) -> tuple[int, str]:
    done = subprocess.run([str(a) for a in argv], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).strip()


def complaints(*argv: str | Path) -> list[str]:
    """A tool that fails has complained."""
    status, text = run(*argv)
    return [text or f"{argv[0]} ended with {status}"] if status else []


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def together(work: Callable[[Path], list[str]], paths: Iterable[Path]) -> list[str]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [line for lines in pool.map(work, paths) for line in lines]


def c_format() -> list[str]:
    name = tool("clang-format")
    return together(
        lambda path: [f"{relative(path)}: `make format` changes it"] * bool(run(name, "--dry-run", "-Werror", path)[0]),
        files(".c", ".h", ".cc", ".hh"),
    )


def c_length() -> list[str]:
    counted = ((path, len(path.read_text().splitlines())) for path in files(".c", ".h", ".cc", ".hh"))
    return [f"{relative(path)}: {count} lines, more than {LINES}" for path, count in counted if count > LINES]


def ruff() -> list[str]:
    return complaints(tool("ruff"), "check", "--quiet") + complaints(tool("ruff"), "format", "--check", "--quiet")


def mypy() -> list[str]:
    return complaints(tool("mypy"), *files(".py"))


def shell_scripts() -> list[Path]:
    return [path for path in files() if re.match(rb"#!.*\b(ba)?sh\b", path.read_bytes()[:64])]


def shellcheck() -> list[str]:
    return complaints(tool("shellcheck"), *shell_scripts())


def spelling() -> list[str]:
    return complaints(tool("codespell"), *files())


def compile_commands() -> dict[Path, list[str]]:
    """How the build compiles each of our C files, without what it writes."""
    database = BUILD / "compile_commands.json"
    if not database.exists():
        raise NotRunError(f"no {database}: build first")
    commands = {}
    for entry in json.loads(database.read_text()):
        path = (Path(entry["directory"]) / entry["file"]).resolve()
        if path.suffix != ".c" or not path.is_relative_to(ROOT):
            continue
        words = shlex.split(entry["command"])
        keep: list[str] = []
        skip = False
        first = 2 if Path(words[0]).name == "ccache" else 1
        for word in words[first:-1]:
            if skip or word in ("-o", "-MF", "-MQ", "-c"):
                skip = not skip and word != "-c"
                continue
            if not word.startswith(("-MD", "-W", "-O")):
                keep.append(re.sub(r"^-I(?!/)", f"-I{entry['directory']}/", word))
        commands[path] = keep
    return commands


def sparse() -> list[str]:
    name = tool("sparse")
    commands = compile_commands()

    def one(path: Path) -> list[str]:
        _, text = run(name, "-Wno-decl", "-Wno-non-pointer-null", *commands[path], path)
        if SPARSE_CANNOT.search(text):
            return []
        return [line for line in text.splitlines() if re.search(r"(warning|error):", line)]

    return together(one, commands)


def analyzer() -> list[str]:
    """gcc's own walk through every path of a function: leaks, double frees, null pointers."""
    name = tool("gcc")
    commands = compile_commands()
    flags = ["-fanalyzer", "-fdiagnostics-path-format=none", "-fdiagnostics-color=never", "-O2"]
    flags += ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-S", "-o", "/dev/null"]

    def one(path: Path) -> list[str]:
        return complaints(name, *commands[path], *flags, *ANALYZER_OFF.get(relative(path), []), path)

    # A test that finds no memory may well crash.
    return together(one, (path for path in commands if not path.is_relative_to(ROOT / "tests")))


def headers() -> list[str]:
    """Every header compiles alone and twice in a row; the public ones for C99 and C++ users too."""
    name = tool("cc")
    ours = [
        path for path in files(".h") if not path.is_relative_to(ROOT / "kernel")
    ]  # the kernel's build compiles those
    # By its path from there: what lies below lib, and in include/onecopy.
    paths = {ROOT / "include", ROOT / "lib"}
    names = {path.parent for path in ours if ROOT / "lib" not in path.parents and path.parent.name != "onecopy"}
    directories = sorted(paths | names)
    include = [f"-I{directory}" for directory in directories]
    programs = [ROOT / name for name in ("tests", "bench", "examples")]
    mpi_flags = run(tool("mpicc"), "--showme:compile")[1].split()

    def one(path: Path) -> list[str]:
        # Programs are made for an MPI, the library for its ABI.
        mpi = mpi_flags if any(map(path.is_relative_to, programs)) else [f"-I{ROOT}/abi/openmpi4"]
        kinds = [["-x", "c", "-std=gnu11", "-D_GNU_SOURCE", *mpi]]
        if path.is_relative_to(ROOT / "include"):
            kinds += [["-x", "c", "-std=c99", "-pedantic"], ["-x", "c++", "-std=c++11", "-pedantic"]]
        argv = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unused-parameter"]
        argv += [*include, "-include", str(path), "-include", str(path), "/dev/null"]
        return [line for kind in kinds for line in complaints(name, *kind, *argv)]

    return together(one, ours)


def licences() -> list[str]:
    """One SPDX line a file, with the licence of its directory, whose text is here."""
    found = []
    for path in files():
        if path.suffix in NO_LICENCE_LINE or "LICENSES" in path.parts or path.name in (".gitignore", ".clang-format"):
            continue
        # debian/copyright speaks for its neighbours, most of which can hold no comment; not for programs.
        if path.is_relative_to(ROOT / "debian") and not path.read_bytes().startswith(b"#!"):
            continue
        head = "\n".join(path.read_text(errors="replace").splitlines()[:5])
        tags = re.findall(r"SPDX-License-Identifier: (.+?)(?: \*/)?$", head, re.MULTILINE)
        wanted = next(tag for area, tag in LICENCES.items() if path.is_relative_to(ROOT / area))
        if len(tags) != 1:
            found.append(f"{relative(path)}: {len(tags)} SPDX lines in its first five lines, not one")
        elif tags[0] != wanted:
            found.append(f"{relative(path)}: {tags[0]}, not {wanted}")
    named = {word for tag in LICENCES.values() for word in re.findall(r"[\w.+-]{5,}", tag)}
    found += [
        f"LICENSES/{name}.txt is missing" for name in sorted(named) if not (ROOT / "LICENSES" / f"{name}.txt").exists()
    ]
    return found


def rooms() -> list[str]:
    """Who may use whom: the table of docs/design.md."""
    if not (BUILD / "compile_commands.json").exists():
        raise NotRunError(f"no build in {BUILD}")
    return layers.check(ROOT, BUILD, files(".c", ".h", ".cc", ".hh", ".py"))


def table_of_calls() -> list[str]:
    """What docs/mpi.md says is served: what the libraries export, and the sources say of it."""
    if missing := [abi for abi in ("openmpi4", "mpich") if not (BUILD / f"preload/libonecopy-{abi}.so").exists()]:
        raise NotRunError(f"no preload library in {BUILD} for {', '.join(missing)}")
    return calls.check(ROOT, BUILD)


def order_of_functions() -> list[str]:
    """What preload/hot.ld puts together is there."""
    words = {word for path in files(".c", ".h") for word in re.findall(r"\w+", path.read_text())}
    names = re.findall(r"\(\.(?:text|bss)\.(\w+)[ )]", (ROOT / "preload/hot.ld").read_text())
    return [f"preload/hot.ld: {name} is in no source" for name in names if name not in words]


def man_pages() -> list[str]:
    pages = [path for path in files() if re.fullmatch(r"\.[1-8]", path.suffix)]
    if not pages:
        raise NotRunError("there are no man pages")
    return complaints(tool("mandoc"), "-Tlint", "-Wwarning", *pages)


CHECKS: dict[str, Callable[[], list[str]]] = {
    "C format": c_format,
    "C file length": c_length,
    "headers alone": headers,
    "layers": rooms,
    "table of calls": table_of_calls,
    "order of functions": order_of_functions,
    "sparse": sparse,
    "gcc -fanalyzer": analyzer,
    "Python lint": ruff,
    "Python types": mypy,
    "shell": shellcheck,
    "spelling": spelling,
    "licences": licences,
    "man pages": man_pages,
}


def main() -> int:
    failed, not_run = [], []
    for name, check in CHECKS.items():
        try:
            found = check()
        except NotRunError as reason:
            not_run.append(f"{name}: {reason}")
            continue
        print(f"{'FAIL' if found else 'ok':4} {name}", flush=True)
        if found:
            failed.append(name)
            print("\n".join(found))
    for line in not_run:
        print(f"not run  {line}")
    if failed:
        print(f"check: {len(failed)} of {len(CHECKS)} failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
