# SPDX-License-Identifier: BSD-3-Clause
"""The check of who may use whom (packaging/layers.py) finds what it is for."""

from __future__ import annotations

from pathlib import Path

import layers

TABLE = """
| room | holds | uses |
|---|---|---|
| `lib/low` | bytes | |
| `lib/high` | plans | `lib/low` |
| `mpi` | all else | `lib/low`, `lib/high` |
"""
FILES = ["lib/low/a.c", "lib/low/b.c", "lib/high/c.c", "lib/high/c.h", "mpi/d.c"]


def complaints(*edges: tuple[str, str], table: str = TABLE, files: list[str] = FILES) -> list[str]:
    return layers.complaints({edge: {"names x"} for edge in edges}, layers.read_table(table), files)


def test_what_the_table_allows() -> None:
    assert not complaints(
        ("lib/high/c.c", "lib/low/a.c"), ("mpi/d.c", "lib/high/c.h"), ("lib/high/c.c", "lib/high/c.h")
    )


def test_an_arrow_upwards() -> None:
    (line,) = complaints(("lib/low/a.c", "lib/high/c.c"))
    assert line == "lib/low/a.c names x of lib/high/c.c: lib/low may not use lib/high"


def test_an_arrow_that_is_not_in_the_table() -> None:
    (line,) = complaints(("mpi/d.c", "lib/low/b.c"), table=TABLE.replace("`lib/low`, `lib/high`", "`lib/high`"))
    assert "mpi may not use lib/low" in line


def test_a_circle_of_files() -> None:
    (line,) = complaints(("lib/low/a.c", "lib/low/b.c"), ("lib/low/b.c", "lib/low/a.c"))
    assert line == "files in a circle: lib/low/a lib/low/b"


def test_a_circle_outside_lib() -> None:
    """A header and the source of one MPI are one file, as it were."""
    (line,) = complaints(("mpi/abi_openmpi4.c", "mpi/b.c"), ("mpi/b.c", "mpi/abi.h"))
    assert line == "files in a circle: mpi/abi mpi/b"


def test_a_circle_of_the_command(tmp_path: Path) -> None:
    """Also by an import that is put off."""
    texts = {
        "cli/onecopy/a.py": "from onecopy.b import thing\nimport json\n",
        "cli/onecopy/b.py": "def late() -> None:\n    from onecopy import a, __version__\n",
        "cli/onecopy/c.py": "from onecopy import a, b\nfrom pathlib import Path\n",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (line,) = layers.complaints(layers.imported(tmp_path, [tmp_path / name for name in texts]), {}, [])
    assert line == "files in a circle: cli/onecopy/a cli/onecopy/b"


def test_a_circle_in_the_module(tmp_path: Path) -> None:
    """By what is called, without a header that says so; comments and one's own header are no use of anybody."""
    texts = {
        "kernel/a.h": "int ock_a(void);\nint ock_b(int one,\n\t  int two);\n",
        "kernel/a.c": '#include "a.h"\nint ock_a(void)\n{\n\treturn ock_b(1, 2);\n}\n',
        "kernel/b.c": '#include "a.h"\nint ock_b(int one,\n\t  int two)\n{\n\treturn ock_a();\n}\n',
        "kernel/c.c": '#include "a.h"\n/* Not of ock_c(). */\nint ock_c(void)\n{\n\treturn ock_a();\n}\n',
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    found = layers.called(tmp_path, [tmp_path / name for name in texts])
    assert set(found) == {("kernel/a.c", "kernel/b.c"), ("kernel/b.c", "kernel/a.c"), ("kernel/c.c", "kernel/a.c")}
    (line,) = layers.complaints(found, {}, [])
    assert line == "files in a circle: kernel/a kernel/b"


def test_a_table_that_uses_upwards() -> None:
    assert "docs/design.md: lib/low uses mpi, which is not above it" in complaints(
        table=TABLE.replace("| bytes | |", "| bytes | `mpi` |")
    )


def test_rooms_and_rows() -> None:
    found = complaints(files=[*FILES, "lib/new/e.c"], table=TABLE + "| `lib/gone` | nothing | |\n")
    assert found == ["docs/design.md has no row for lib/new", "docs/design.md: there is no lib/gone"]


def test_too_many_files() -> None:
    many = [f"lib/low/f{n}.c" for n in range(layers.MOST)]
    (line,) = complaints(files=[*FILES, *many])
    assert line == f"lib/low: {layers.MOST + 2} C files, more than {layers.MOST}"


def test_includes(tmp_path: Path) -> None:
    """By the path from lib, and from beside the file."""
    texts = {"lib/low/a.h": "", "lib/low/a.c": '#include "low/a.h"\n', "coll/b.c": '#include "b.h"\n', "coll/b.h": ""}
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = layers.included(tmp_path, [tmp_path / name for name in texts])
    assert set(found) == {("lib/low/a.c", "lib/low/a.h"), ("coll/b.c", "coll/b.h")}
