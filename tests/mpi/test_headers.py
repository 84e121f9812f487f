# SPDX-License-Identifier: BSD-3-Clause
"""abi/ says of each ABI what the mpi.h of its MPIs say: types, constants and functions are compared with those of each
that is here."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from onecopy import peers
from runner import ROOT

ABI = ROOT / "abi"


def installed(*places: str | Path) -> list[Path]:
    return list({path.resolve(): path for path in map(Path, places) if (path / "mpi.h").exists()})


def of_debian(name: str) -> list[Path]:
    return installed(*Path("/usr/lib").glob(f"*/{name}/include"), *Path("/usr/include").glob(f"*/{name}"))


def of_peer(name: str) -> list[Path]:
    return installed(peers.cache() / "peers" / name / "include")


#: abi -> directories that hold an mpi.h of it; those of the standard's ABI have it in another file.
THERE = {
    "openmpi4": [*of_debian("openmpi"), *of_peer("openmpi5")],
    "mpich": [*of_debian("mpich"), *of_peer("mpich"), *of_peer("intelmpi")],
    "mpi5": [path for name in ("mpich", "intelmpi") for path in of_peer(name) if (path / "mpi_abi.h").exists()],
}
PEERS = {"openmpi5": "openmpi4", "mpich": "mpich", "intelmpi": "mpich"}
MISSING = [
    pytest.param(abi, Path(name), marks=pytest.mark.skip(reason=f"{name} is not installed: make peers"))
    for name, abi in PEERS.items()
    if not of_peer(name)
]
CASES = [*((abi, where) for abi, found in THERE.items() for where in found), *MISSING]

CONSTANT = re.compile(r"^#define (MPI_\w+)", re.MULTILINE)
STRUCT = re.compile(r"^typedef struct (?:\w+ )?\{\n((?:\t.*\n)+)\} (MPI_\w+);", re.MULTILINE)
TYPE = re.compile(r"^typedef [\w ]+?\*?(MPI_\w+);", re.MULTILINE)


def questions(text: str) -> dict[str, str]:
    """What a header of ours says, as C expressions that are integers."""
    asked = {name: f"(long long)(intptr_t)({name})" for name in CONSTANT.findall(text)}
    for name in [*TYPE.findall(text), *(struct for _, struct in STRUCT.findall(text))]:
        asked[f"size of {name}"] = f"(long long)sizeof({name})"
        asked[f"alignment of {name}"] = f"(long long)_Alignof({name})"
    for name in TYPE.findall(text):
        asked[f"pointer {name}"] = f"(long long)__builtin_types_compatible_p({name}, int)"
    for members, name in STRUCT.findall(text):
        for member in re.findall(r"\b(\w+)(?:\[\d+\])?;", members):
            asked[f"{name}.{member}"] = f"(long long)offsetof({name}, {member})"
    return asked


def ask(tmp_path: Path, name: str, asked: dict[str, str], *flags: str) -> dict[str, int]:
    source = tmp_path / f"{name}.c"
    lines = "".join(f'\tprintf("%s\\t%lld\\n", "{key}", {value});\n' for key, value in asked.items())
    includes = "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <mpi.h>\n"
    source.write_text(f"{includes}int main(void)\n{{\n{lines}}}\n")
    program = tmp_path / name
    command = ["cc", "-std=gnu11", *flags, "-o", program, source]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    return {key: int(value) for key, _, value in (line.partition("\t") for line in said.splitlines())}


#: A file of ours -> what came with it, which of Open MPI's one ABI not all versions have.
LATER = {"calls_sessions.inc": "MPI_Session", "calls_large.inc": "MPI_Bcast_c"}


def has(header: Path, name: str) -> bool:
    return name in header.read_text(errors="replace")


@pytest.mark.parametrize(("abi", "where"), CASES, ids=lambda value: str(value).strip("/"))
def test_headers_agree(tmp_path: Path, abi: str, where: Path) -> None:
    if abi == "mpi5" and "MPI_ABI" not in (where / "mpi.h").read_text(errors="replace"):
        # Intel's mpi.h does not lead to it.
        (tmp_path / "mpi.h").symlink_to(where / "mpi_abi.h")
        where = tmp_path
    asked = questions((ABI / abi / "mpi.h").read_text())
    assert len(asked) > 80
    if not has(where / "mpi.h", "MPI_Session"):
        asked = {key: value for key, value in asked.items() if "MPI_Session" not in key}
    ours = ask(tmp_path, "ours", asked, f"-I{ABI / abi}")
    theirs = ask(tmp_path, "theirs", asked, f"-I{where}", *(["-DMPI_ABI"] if abi == "mpi5" else []))
    assert {key: (ours[key], theirs[key]) for key in asked if ours[key] != theirs[key]} == {}


@pytest.mark.parametrize(("abi", "where"), CASES, ids=lambda value: str(value).strip("/"))
def test_functions_agree(tmp_path: Path, abi: str, where: Path) -> None:
    """A declaration that differs from an earlier one is an error."""
    header = where / ("mpi_abi.h" if abi == "mpi5" else "mpi.h")
    source = tmp_path / "functions.c"
    calls = re.findall(r"calls\w*\.inc", (ABI / abi / "mpi.h").read_text())
    assert set(calls) == {"calls.inc", *LATER}
    calls = [name for name in calls if name not in LATER or has(header, LATER[name])]
    source.write_text("\n".join([f'#include "{header}"', *(f'#include "{ABI / name}"' for name in calls), ""]))
    done = subprocess.run(
        ["cc", "-std=gnu11", "-fsyntax-only", "-Werror", f"-I{where}", str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def dependencies(build: Path, target: str) -> dict[str, list[Path]]:
    """The files that each object of a target was made from."""
    done = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True)
    found: dict[str, list[Path]] = {}
    for line in done.stdout.splitlines():
        if line[:1].strip():
            name = line.partition(":")[0]
        elif line.strip() and re.match(target, name):
            found.setdefault(name, []).append((build / line.strip()).resolve())
    return found


@pytest.mark.parametrize("abi", THERE)
def test_no_other_headers(build: Path, abi: str) -> None:
    """What is preloaded is built from abi/ alone: a machine has one MPI, another one or none."""
    made = dependencies(build, rf"preload/libonecopy-{abi}\.so\.p/.*")
    assert len(made) > 40
    used = {path for paths in made.values() for path in paths}
    assert {path for path in used if path.name.startswith(("mpi.h", "mpi_abi", "mpi_proto"))} == {ABI / abi / "mpi.h"}
    assert {path for path in used if re.search("openmpi|mpich|/mpi/", str(path)) and ROOT not in path.parents} == set()
