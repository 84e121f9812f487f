# SPDX-License-Identifier: BSD-3-Clause
"""The example of onecopy(3), as a user compiles it, and that the page shows the same lines."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from runner import ROOT, Runner

SOURCE = ROOT / "examples" / "regions" / "regions.c"
PAGE = ROOT / "docs" / "man" / "onecopy.3"


def test_it_runs(runner: Runner, tmp_path: Path) -> None:
    library = runner.build / "lib"
    program = tmp_path / "regions"
    flags = ["-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", f"-L{library}", f"-Wl,-rpath,{library}"]
    subprocess.run(["cc", "-o", program, SOURCE, *flags, "-lonecopy"], check=True)
    for mech in (None, "staged"):
        done = runner.run(program, env={"ONECOPY_MECH": mech} if mech else {}, timeout=120, check=False)
        assert (done.returncode, done.stdout) == (0, "read 1048576 bytes, the last one is 'x'\n"), done.stderr


def test_the_page_shows_its_lines() -> None:
    blocks = re.findall(r"^\.Bd -literal -offset indent\n(.*?)^\.Ed$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    source = SOURCE.read_text()
    assert len(blocks) == 2
    for block in blocks:
        assert block.replace("\\e", "\\") in source


def plain(text: str) -> str:
    """Words alone: without the marks of man pages, comments and Markdown."""
    text = re.sub(r"^\.\w+ ", "", text, flags=re.MULTILINE)
    return " ".join(re.sub(r"[`*]", " ", text).split()).replace(" ,", ",")


def test_header_pages_and_security_say_the_same() -> None:
    """Word for word, on what a cookie is worth and what is pinned."""
    cookies = (
        "A cookie holds 42 random bits beside the numbers of its owner and its slot. It keeps mistakes out: a wrong or "
        "outdated one is refused, but for one in 2^42. It is no secret among the processes of a node, which have the "
        "tables of all regions mapped, so guesses are not limited; a process outside the node cannot look one up "
        "at all."
    )
    pinning = (
        "If the kernel module is loaded and RLIMIT_MEMLOCK, which all processes of a user share, and the module's "
        "limits allow it, memory of regions of 32 KiB and more outside the heap is pinned while they exist; "
        "otherwise nothing is pinned."
    )
    for path in ("include/onecopy/onecopy.h", "docs/man/onecopy.3", "docs/man/oc_region_create.3", "docs/security.md"):
        text = plain((ROOT / path).read_text())
        assert cookies in text, path
        assert pinning in text, path
    bits = dict(
        re.findall(
            r"#define OC_COOKIE_(OWNER|SLOT)_BITS\s+(\d+)", (ROOT / "lib" / "region" / "region_ref.h").read_text()
        )
    )
    assert 64 - sum(map(int, bits.values())) == 42


HEADER = ROOT / "include" / "onecopy" / "onecopy.h"
PAGES = [path.name for path in sorted((ROOT / "docs" / "man").glob("oc_*.3"))]


def header_errors() -> dict[str, set[str]]:
    """Of each function: what the comment before it, or before those it stands with, names."""
    found: dict[str, set[str]] = {}
    comment = ""
    for part in re.findall(
        r"/\*.*?\*/|^#.*?$|^[\w ]+\**oc_\w+\([^;]*;|^$", HEADER.read_text(), re.MULTILINE | re.DOTALL
    ):
        if part.startswith("/*"):
            comment = part
        elif name := re.search(r"(oc_\w+)\(", part):
            found[name[1]] = set(re.findall(r"-(E[A-Z]+)\b", comment))
            for other in re.findall(r"errors as (oc_\w+)", comment):
                found[name[1]] |= found[other]
        else:
            comment = ""
    return found


@pytest.mark.parametrize("name", PAGES)
def test_header_and_pages_name_the_same_errors(name: str) -> None:
    """What the functions of a page return, as its list has them."""
    page = (ROOT / "docs" / "man" / name).read_text()
    declared = header_errors()
    functions = re.findall(r"^\.F[no] (oc_\w+)", page[: page.index(".Sh DESCRIPTION")], re.MULTILINE)
    assert functions
    listed = re.findall(r"^\.It Bq Er (E[A-Z]+)$", page, re.MULTILINE)
    assert listed == sorted(set(listed))
    assert set(listed) == set().union(*(declared[function] for function in functions))


def test_every_function_has_its_page() -> None:
    pages = [(ROOT / "docs" / "man" / name).read_text() for name in PAGES]
    described = {function for page in pages for function in re.findall(r"^\.F[no] (oc_\w+)", page, re.MULTILINE)}
    assert header_errors().keys() - {"oc_version"} == described
