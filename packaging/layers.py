# SPDX-License-Identifier: BSD-3-Clause
"""Who uses whom, from the sources and the built objects, against the table of docs/design.md.

A room is a directory of C files. It uses another if a file of it includes a header from there, or if an object of it
names a symbol that one from there defines. The table's rows are in order: a room uses rooms above it, and those
only that its row names. Files are in no circle either, nor those of the kernel module, nor the modules of the command.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOMS = ("lib", "coll", "mpi", "preload", "procvm")
LIB = "lib/"
MODULE = "kernel"  # built elsewhere: its objects are not here to be asked
COMMAND = "cli"  # Python
MOST = 20  # C files of a room of lib, those of each architecture being one
# Programs call these by name, and the library with them, whoever defines them: the preload does.
ALLOCATES = r"(m|c|re|p?v)alloc|free|(posix_)?memalign|aligned_alloc|malloc_usable_size"
PROGRAM = re.compile(
    ALLOCATES + r"|(pkey_)?mprotect|[gs]etrlimit(64)?|prlimit(64)?|syscall|prctl|dlsym|P?MPI_\w+|p?mpi_\w+"
)

Edges = Mapping[tuple[str, str], set[str]]


def read_table(design: str) -> dict[str, set[str]]:
    """Rows of the form `| `room` | what it holds | `room`, `room` |`, in their order."""
    rows = re.findall(r"^\| `([a-z/]+)` \|[^|]*\|([^|]*)\|$", design, re.MULTILINE)
    return {room: set(re.findall(r"`([a-z/]+)`", uses)) for room, uses in rows}


def room_of(path: str) -> str:
    return str(Path(path).parent)


def unit_of(path: str) -> str:
    """A header and its sources, of which there may be one for each architecture, kind of thread or MPI, are one."""
    return re.sub(r"_(any|x86|kthread|task|openmpi\d+|mpich|mpi5|constant)$", "", str(Path(path).with_suffix("")))


def included(root: Path, files: Iterable[Path]) -> Edges:
    """From file to file."""
    known = {str(path.relative_to(root)) for path in files}
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name in known:
        for line in re.findall(r'^#include "([^"]+)"', (root / name).read_text(), re.MULTILINE):
            places = (str(Path(name).parent / line), f"lib/{line}", f"coll/{line}", f"mpi/{line}")
            target = next((place for place in places if place in known), None)
            if target:
                found[name, target].add(f"includes {line}")
    return found


def named(build: Path, root: Path) -> Edges:
    """From file to file, by symbols of their objects."""
    defined: dict[str, set[str]] = defaultdict(set)
    wanted: dict[str, set[str]] = defaultdict(set)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = (Path(entry["directory"]) / entry["file"]).resolve()
        if not source.is_relative_to(root):
            continue
        name = str(source.relative_to(root))
        output = Path(entry["directory"]) / entry["output"]
        if name.split("/")[0] not in ROOMS or not output.exists():
            continue
        said = subprocess.run(["nm", "-P", output], capture_output=True, text=True, check=True).stdout
        for line in said.splitlines():
            symbol, kind = line.split()[:2]
            if kind == "U":
                wanted[symbol].add(name)
            elif kind.isupper():
                defined[symbol].add(name)
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for symbol, users in wanted.items():
        for user in users if not PROGRAM.fullmatch(symbol) else ():
            for owner in defined.get(symbol, ()):
                found[user, owner].add(f"names {symbol}")
    return found


def called(root: Path, files: Iterable[Path]) -> Edges:
    """From file to file of the module, by functions, which begin in the first column with ock_ in their name."""
    texts = {str(path.relative_to(root)): path.read_text() for path in files}
    owners: dict[str, set[str]] = defaultdict(set)
    for name, text in texts.items():
        if name.endswith(".c"):
            for function in re.findall(r"^(?!static)\w[\w *]*?\b(ock_\w+)\([^;{}]*\)\n\{", text, re.MULTILINE):
                owners[function].add(name)
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, text in texts.items():
        for function in set(re.findall(r"\bock_\w+", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))):
            # Headers declare what their own files define, and what others are to.
            for owner in owners[function] - {name} if name.endswith(".c") else ():
                found[name, owner].add(f"names {function}")
    return found


def imported(root: Path, files: Iterable[Path]) -> Edges:
    """From module to module of one package, also where a function imports."""
    known = {path.relative_to(root) for path in files}
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name in known:
        for node in ast.walk(ast.parse((root / name).read_text())):
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            package, _, module = node.module.partition(".")
            for word in [module] if module else [alias.name for alias in node.names]:
                target = (name.parent / word).with_suffix(".py")
                if package == name.parent.name and target in known:
                    found[str(name), str(target)].add(f"imports {word}")
    return found


def circles(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Sets of nodes each of which leads to all others (Tarjan, "Depth-first search and linear graph algorithms")."""
    after: dict[str, set[str]] = defaultdict(set)
    for one, other in edges:
        if one != other:
            after[one].add(other)
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        path.append(node)
        for other in sorted(after[node]):
            if other not in index:
                visit(other)
            if other in path:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            at = path.index(node)
            if len(path) - at > 1:
                found.append(sorted(path[at:]))
            del path[at:]

    for node in sorted(after):
        if node not in index:
            visit(node)
    return found


def complaints(edges: Edges, table: Mapping[str, set[str]], files: Iterable[str]) -> list[str]:
    """What the table does not allow, one line each."""
    rows = list(table)
    found = [
        f"docs/design.md: {room} uses {other}, which is not above it"
        for room in rows
        for other in sorted(table[room])
        if other not in rows[: rows.index(room)]
    ]
    rooms = {room_of(name) for name in files}
    found += [f"docs/design.md has no row for {room}" for room in sorted(rooms - set(rows))]
    found += [f"docs/design.md: there is no {room}" for room in sorted(set(rows) - rooms)]
    for (user, owner), how in sorted(edges.items()):
        one, other = room_of(user), room_of(owner)
        if one != other and other not in table.get(one, ()):
            found.append(f"{user} {', '.join(sorted(how)[:3])} of {owner}: {one} may not use {other}")
    units = {(unit_of(user), unit_of(owner)) for user, owner in edges}
    found += [f"files in a circle: {' '.join(circle)}" for circle in circles(units)]
    sources = [name for name in files if name.endswith((".c", ".cc")) and name.startswith(LIB)]
    for room in sorted({room_of(name) for name in sources}):
        count = len({unit_of(name) for name in sources if room_of(name) == room})
        if count > MOST:
            found.append(f"{room}: {count} C files, more than {MOST}")
    return found


def check(root: Path, build: Path, files: Sequence[Path]) -> list[str]:
    """The whole: `files` are the C files, headers and Python files of the project."""
    ours = [path for path in files if path.relative_to(root).parts[0] in ROOMS]
    module = [path for path in files if path.relative_to(root).parts[:-1] == (MODULE,)]
    edges: dict[tuple[str, str], set[str]] = defaultdict(set)
    command = [path for path in files if path.relative_to(root).parts[0] == COMMAND]
    for source in (
        included(root, ours),
        named(build, root),
        included(root, module),
        called(root, module),
        imported(root, command),
    ):
        for pair, how in source.items():
            edges[pair] |= how
    names = [str(path.relative_to(root)) for path in ours]
    return complaints(edges, read_table((root / "docs/design.md").read_text()), names)
