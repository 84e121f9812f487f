# SPDX-License-Identifier: BSD-3-Clause
"""The table of docs/mpi.md: which MPI calls onecopy serves, and which blocking collectives it leaves to the MPI. It is
made of what the preload libraries export and of what the sources of the adapter say of their calls.

    packaging/calls.py          writes it
    make check                  complains if it is not what this would write

A comment `Serves MPI_Bcast, MPI_Barrier: when.` in a source of mpi/ says under which conditions calls are served. That
and what the libraries export have to agree: each call under both of its names, in every library but for large counts,
which came with MPI 4.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

PAGE = "docs/mpi.md"
BEGIN = "<!-- calls: written by packaging/calls.py -->"
END = "<!-- calls: end -->"

#: The standard's blocking collectives on data (MPI 4.1, chapters 6 and 8).
COLLECTIVES = (
    *("Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv"),
    *("Alltoall", "Alltoallv", "Alltoallw", "Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block"),
    *("Scan", "Exscan", "Neighbor_allgather", "Neighbor_allgatherv"),
    *("Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_alltoallw"),
)
#: One-sided transfers (chapter 12).
TRANSFERS = ("Put", "Get", "Rput", "Rget")
#: Those that count nothing, and so have no form with large counts.
UNCOUNTED = ("Barrier",)
#: Libraries for MPIs that lack the large forms.
BEFORE_MPI_4 = ("openmpi4", "openmpi4-mpi3")


def conditions(text: str) -> dict[str, str]:
    """From a C source: the calls that it serves, without MPI_, and when."""
    found = {}
    for calls, when in re.findall(r"/\* Serves ((?:MPI_\w+(?:, | and )?)+): (.+?)\.? ?\*/", text, re.DOTALL):
        for name in re.findall(r"MPI_(\w+)", calls):
            found[name] = re.sub(r"\s*\n\s*\*\s*", " ", when)
    return found


def exported(library: Path) -> set[str]:
    """Functions of MPI, with their prefixes."""
    listed = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    return set(re.findall(r" T (P?MPI_\w+)$", listed.stdout, re.MULTILINE))


def counts(name: str) -> bool:
    """Whether a call has a form with large counts."""
    return name in (*COLLECTIVES, *TRANSFERS) and name not in UNCOUNTED


def row(name: str, when: str | None) -> str:
    cells = [f"`MPI_{name}`", "served" if when and counts(name) else "", when or "left to the MPI"]
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def others(libraries: Mapping[str, set[str]], when: Mapping[str, str]) -> list[str]:
    """Calls that are ours to see, and passed on."""
    names = {name.removeprefix("PMPI_") for names in libraries.values() for name in names if name.startswith("PMPI_")}
    return sorted(name for name in names if name not in when and name.removesuffix("_c") not in when)


def table(libraries: Mapping[str, set[str]], when: Mapping[str, str]) -> str:
    rows = [row(name, when.get(name)) for name in COLLECTIVES]
    rows += [row(name, when[name]) for name in TRANSFERS if name in when]
    rows += [row(name, when[name]) for name in sorted(when) if name not in (*COLLECTIVES, *TRANSFERS)]
    seen = ", ".join(f"`MPI_{name}`" for name in others(libraries, when))
    return "\n".join(
        [
            BEGIN,
            "| call | large counts (`_c`) | served when |",
            "|---|---|---|",
            *rows,
            "",
            f"Seen beside these, and passed on: {seen}.",
            "All other calls, the non-blocking and the persistent collectives among them, never come here.",
            END,
        ]
    )


def disagreements(libraries: Mapping[str, set[str]], when: Mapping[str, str]) -> list[str]:
    """Between what is exported and what is said."""
    found = []
    for abi, names in libraries.items():
        for name in sorted(names):
            twin = name.removeprefix("P") if name.startswith("PMPI_") else f"P{name}"
            if twin not in names:
                found.append(f"libonecopy-{abi}.so exports {name} without {twin}")
            base = name.removeprefix("P").removeprefix("MPI_")
            if base.removesuffix("_c") in COLLECTIVES and base.removesuffix("_c") not in when:
                found.append(f"{name} is exported (libonecopy-{abi}.so), and no comment says when it is served")
        for name in when:
            if f"PMPI_{name}" not in names:
                found.append(f"MPI_{name} is said to be served, and libonecopy-{abi}.so does not export it")
            large = f"PMPI_{name}_c" in names
            if counts(name) and large == (abi in BEFORE_MPI_4):
                found.append(f"libonecopy-{abi}.so {'exports' if large else 'lacks'} MPI_{name}_c")
    return found


def page_with(page: str, text: str) -> str:
    """The page with the table in its place."""
    head, _, rest = page.partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        raise ValueError(f"{PAGE} has no place for the table of calls: {BEGIN}, {END}")
    return head + text + tail


def libraries_of(build: Path) -> dict[str, set[str]]:
    found = sorted((build / "preload").glob("libonecopy-*.so"))
    return {path.stem.removeprefix("libonecopy-"): exported(path) for path in found}


def said(sources: Iterable[Path]) -> dict[str, str]:
    return {name: when for path in sorted(sources) for name, when in conditions(path.read_text()).items()}


def check(root: Path, build: Path) -> list[str]:
    libraries, when = libraries_of(build), said((root / "mpi").glob("*.c"))
    page = (root / PAGE).read_text()
    found = disagreements(libraries, when)
    if page_with(page, table(libraries, when)) != page:
        found.append(f"{PAGE}: the table of calls is not what `python3 packaging/calls.py` makes of the code")
    return found


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    build = Path(os.environ.get("ONECOPY_BUILD", root / "build"))
    libraries, when = libraries_of(build), said((root / "mpi").glob("*.c"))
    found = disagreements(libraries, when)
    print("\n".join(found), end="\n" if found else "")
    page = root / PAGE
    page.write_text(page_with(page.read_text(), table(libraries, when)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
