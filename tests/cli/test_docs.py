# SPDX-License-Identifier: BSD-3-Clause
"""What the documents promise: links lead somewhere, figures are those of bench/results."""

from __future__ import annotations

import argparse
import importlib
import re
import subprocess
from pathlib import Path

import pytest
from onecopy import cells
from onecopy.cells import Cell, Row

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
DOCUMENTS = subprocess.run(
    ["git", "-C", ROOT, "ls-files", "*.md"], capture_output=True, text=True, check=False
).stdout.split()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text()
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" not in link and not link.startswith("#"):
            assert ((ROOT / name).parent / link.partition("#")[0]).exists(), link


def test_links_of_installed_documents(tmp_path: Path) -> None:
    subprocess.run([ROOT / "packaging" / "install-docs", tmp_path], check=True)
    documents = sorted(tmp_path.rglob("*.md"))
    assert tmp_path / "docs" / "design.md" in documents
    links = [(path, link) for path in documents for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text())]
    assert (tmp_path / "README.md", "docs/design.md") in links
    for path, link in links:
        assert "://" in link or link.startswith("#") or (path.parent / link.partition("#")[0]).exists(), (path, link)
    assert (tmp_path / "examples" / "regions" / "regions.c").is_file()


def test_one_directory_for_each_kind_of_measurement() -> None:
    index = (RESULTS / "README.md").read_text()
    for directory in (path for path in RESULTS.iterdir() if path.is_dir()):
        assert re.search(rf"^\| \[{directory.name}\]\({directory.name}\) \| `[^`]+` \|", index, re.MULTILINE)
        assert (directory / "machine.json").is_file()
        assert list(directory.glob("*.csv"))


LINE = r"^\| (Open MPI 4|Open MPI 5|MPICH|Intel MPI)[ \d.]*(?:, (\d) ranks)? \| (.*) \|$"
#: Of each MPI beside it alone: collectives, and messages where they were measured.
PLACES = {
    "Open MPI 4": ("collectives", "messages"),
    "Open MPI 5": ("on-openmpi5", "messages-on-openmpi5"),
    "MPICH": ("on-mpich", "messages-on-mpich"),
    "Intel MPI": ("on-intelmpi", "messages-on-intelmpi"),
}


def shown_means(page: Path, header: str) -> list[tuple[str, str, dict[str, str]]]:
    """Of a table: of each line the MPI, the number of ranks if it is said there, and what each column shows."""
    names, body = re.findall(rf"^\| {header} \| (.*) \|\n\|[-|]*\n((?:\|.*\n)*)", page.read_text(), re.MULTILINE)[0]
    found = re.findall(LINE, body, re.MULTILINE)
    assert len(found) == body.count("\n")
    columns = names.lower().split(" | ")
    return [
        (mpi, ranks, dict(zip(columns, shown.replace("*", "").split(" | "), strict=True)))
        for mpi, ranks, shown in found
    ]


def like_ratios(place: str, ranks: int, variant: str = "mpi") -> dict[Cell, float]:
    """At like speed, as the raw times say."""
    like = cells.like_ratios(cells.read(Row, RESULTS / place / "times.csv"), variant, "onecopy")
    return {cell: ratio for cell, ratio in like.items() if cell.ranks == ranks}


def check_means(shown: dict[str, str], ratios: dict[Cell, float]) -> None:
    """Of each operation and of all."""
    for name, text in shown.items():
        mean = cells.geometric_mean(r for cell, r in ratios.items() if name in ("mean", cell.collective))
        assert text == f"{mean:.1f}", name


def test_the_table_of_means() -> None:
    """README's, which has no more. MPICH has no whole line of 4 ranks."""
    lines = shown_means(ROOT / "README.md", "times as fast as it is alone")
    assert [mpi for mpi, _, _ in lines] == list(PLACES)
    for mpi, _, shown in lines:
        collectives, messages = PLACES[mpi]
        wanted = {
            "collectives, 2 ranks": like_ratios(collectives, 2),
            "collectives, 4 ranks": like_ratios(collectives, 4),
            "messages, 2 ranks": like_ratios(messages, 2) if messages else {},
        }
        assert list(shown) == list(wanted)
        for column, ratios in wanted.items():
            if not ratios or (mpi, column) == ("MPICH", "collectives, 4 ranks"):
                assert shown[column] == "-"
            else:
                check_means({"mean": shown[column]}, ratios)


def test_the_table_of_collectives() -> None:
    """On each MPI beside it alone."""
    lines = shown_means(RESULTS / "README.md", "on, times as fast as it is alone")
    assert len(lines) == 2 * len(PLACES) - 1
    for mpi, ranks, shown in lines:
        check_means(shown, like_ratios(PLACES[mpi][0], int(ranks)))


def test_the_table_of_messages() -> None:
    """On Open MPI 4, beside each MPI."""
    variants = {"Open MPI 4": "mpi", "Open MPI 5": "openmpi5", "MPICH": "mpich", "Intel MPI": "intelmpi"}
    lines = shown_means(RESULTS / "README.md", "on Open MPI 4.1.4, times as fast as")
    assert len(lines) == len(variants)
    for mpi, ranks, shown in lines:
        check_means(shown, like_ratios("messages", int(ranks), variants[mpi]))


@pytest.mark.parametrize("command", ["run", "doctor", "bench", "plot"])
def test_the_page_has_every_option(command: str) -> None:
    parser = argparse.ArgumentParser()
    importlib.import_module(f"onecopy.{command}").add_arguments(parser)
    page = (ROOT / "docs" / "man" / "onecopy.1").read_text().replace("Fl -", "--")
    mine = page[page.index(f".It Cm {command}\n") :]
    options = re.findall(r"--[a-z][a-z-]*", parser.format_help())
    assert options
    for option in set(options) - {"--help"}:
        assert re.search(rf"{option}\b", mine), option
